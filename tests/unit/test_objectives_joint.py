"""Joint training: the classification loss plus a weighted masked loss."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heedful import checkpoints, methods
from heedful.data import load_task, tokenize
from heedful.errors import UserError
from heedful.objectives import Classify, Inputs, Joint, Losses, MaskedText
from heedful.options.training import AdaptOptions
from heedful.runs.checksums import file_checksum
from heedful.runs.directory import Run
from heedful.text import load as load_tokenizer
from heedful.training import checkpoint
from heedful.training.loop import Loop
from heedful.training.train import train_run
from tiny import make_model, make_task


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    root = tmp_path_factory.mktemp("tiny")
    text = root / "more.txt"
    text.write_text("\n".join(f"{'unseen1 ' * (1 + i % 3)}film plot" for i in range(30)), "utf-8")
    return make_model(root / "model", dropout=0.0, words=5), make_task(root / "task"), text


def parts(places: tuple[Path, Path, Path], **more: Any) -> tuple[Any, Joint]:
    tokenizer = load_tokenizer(places[0])
    torch.manual_seed(0)
    model = checkpoints.load(places[0], head="classify", n_classes=2, head_dropout=0.0)
    other = checkpoints.load(places[0], head="masked")
    model.masked_head = other.head
    model.masked_head.out.weight = model.body.embed.tokens.weight
    model.double().train()
    classify = Classify(load_task(str(places[1])), tokenizer, max_len=32, with_types=True)
    masked = MaskedText(tokenize(places[2], tokenizer, max_len=32), tokenizer, batch_size=8)
    return model, Joint(classify, masked, **{"mlm_weight": 0.3, **more})


def gradient(model: Any, loss: Tensor) -> dict[str, Tensor]:
    model.zero_grad()
    loss.backward()
    return {n: p.grad.clone() for n, p in model.body.named_parameters() if p.grad is not None}


def test_the_body_s_gradient_is_the_weighted_sum(places: tuple[Path, Path, Path], tmp_path: Path) -> None:
    model, joint = parts(places)
    options = AdaptOptions(batch_size=8, clip=0.0, accumulate=3)
    loop = Loop(model, dict(model.named_parameters()), joint, options, 1e-3, Run.create(tmp_path))
    examples = loop.choose_examples(2)
    (labeled,) = joint.classify.prepare(examples, 2)
    (hidden,) = joint.masked.prepare(2)
    one = gradient(model, joint.classify.losses(model, labeled).sums["classify"] / 8)
    count = hidden.counts["masked"]
    two = gradient(model, joint.masked.losses(model.body, model.masked_head, hidden).sums["masked"] / count)
    model.zero_grad()
    found: dict[str, Tensor] = {}
    loop.optimizer.step = lambda: found.update(  # type: ignore[method-assign, assignment, misc]
        {n: p.grad.clone() for n, p in model.body.named_parameters() if p.grad is not None}
    )
    loop.step(2)
    assert found.keys() == one.keys() | two.keys()
    for name, both in found.items():
        expected = one.get(name, torch.zeros(())) + 0.3 * two.get(name, torch.zeros(()))
        assert (both - expected).abs().max() < 1e-10, name
    assert set(loop.state.running_loss) == {"classify", "masked"}


def test_the_classifier_sees_unmasked_text_and_the_other_text_comes_from_the_file(
    places: tuple[Path, Path, Path],
) -> None:
    _, joint = parts(places)
    mask_id = joint.masked.tokenizer.mask_id
    rows = np.arange(8)
    (both,) = joint.prepare(rows, 3)
    (plain,) = joint.classify.prepare(rows, 3)
    for name, tensor in plain.tensors.items():
        assert torch.equal(both.tensors[name], tensor)
    assert not (both.tensors["ids"] == mask_id).any()
    assert (both.tensors["masked_ids"] == mask_id).any()
    labels, hidden = both.tensors["masked_labels"], both.tensors["masked_ids"]
    whole = torch.where(labels >= 0, labels, hidden)[both.tensors["masked_mask"]]
    assert set(whole.tolist()) <= set(joint.masked.tokens.ids.tolist())
    (again,) = joint.prepare(rows, 3)
    (later,) = joint.prepare(rows, 4)
    assert torch.equal(again.tensors["masked_ids"], hidden)
    assert later.tensors["masked_ids"].shape != hidden.shape or not torch.equal(
        later.tensors["masked_ids"], hidden
    )


@pytest.fixture(scope="module")
def options(places: tuple[Path, Path, Path]) -> AdaptOptions:
    return AdaptOptions(
        model=str(places[0]), task=str(places[1]), epochs=2, batch_size=8, lr=5e-3, max_len=32,
        precision="float32", threads=1, dropout=0.1,
    )  # fmt: skip


def trained(folder: Path) -> dict[str, Tensor]:
    run = Run(folder)
    return checkpoint.load_weights(run, checkpoint.steps(run)[-1])


def test_weight_0_is_classification_bit_for_bit(
    places: tuple[Path, Path, Path], options: AdaptOptions, tmp_path: Path
) -> None:
    train_run(replace(options, out=tmp_path / "plain"))
    train_run(
        replace(options, objective="joint", mlm_weight=0.0, unlabeled=places[2], out=tmp_path / "joint")
    )
    plain, joint = trained(tmp_path / "plain"), trained(tmp_path / "joint")
    for name, tensor in plain.items():
        assert torch.equal(tensor, joint[name]), name
    for name in (
        "metrics.jsonl",
        "predictions_dev.jsonl",
        "predictions_test.jsonl",
        "best/model.safetensors",
    ):
        assert file_checksum(tmp_path / "plain" / name) == file_checksum(tmp_path / "joint" / name), name


def test_masked_steps_first_have_their_own_schedule_and_row(
    places: tuple[Path, Path, Path], options: AdaptOptions, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[set[str]] = []
    losses = Joint.losses

    def watched(self: Joint, model: nn.Module, inputs: Inputs) -> Losses:
        found = losses(self, model, inputs)
        seen.append(set(found.sums))
        return found

    monkeypatch.setattr(Joint, "losses", watched)
    sequential = replace(options, objective="joint", mlm_weight=0.0, mlm_first=5, unlabeled=places[2])
    train_run(replace(sequential, out=tmp_path))
    assert seen == [{"masked"}] * 5 + [{"classify"}] * 16
    # the fitted head is scored before the first step
    rows = [row for row in Run(tmp_path).read_metrics() if row.step]
    assert [(row.step, row.split) for row in rows[:2]] == [(5, "train"), (13, "train")]
    assert rows[0].losses is not None
    assert rows[0].loss == rows[0].losses["masked"]
    assert rows[0].value is None
    assert rows[1].losses is None


def test_the_sequential_phase_moves_the_body_even_with_weight_0(
    places: tuple[Path, Path, Path], tmp_path: Path
) -> None:
    model, joint = parts(places, mlm_weight=0.0, first_steps=3)
    way = methods.make("full")
    way.attach(model)
    loop = Loop(
        model, way.trainable(model), joint, AdaptOptions(batch_size=8, epochs=1), 1e-2, Run.create(tmp_path)
    )
    assert [loop.rate(s) for s in (0, 1, 2)] == pytest.approx([1e-2 * n / 3 for n in (3, 2, 1)])
    assert loop.rate(3) == 1e-2
    before = model.body.stack.layers[0].ff.in_proj.weight.detach().clone()
    loop.step(0)
    assert not torch.equal(model.body.stack.layers[0].ff.in_proj.weight, before)


def test_both_losses_are_logged_and_dev_s_accuracy_chooses(options: AdaptOptions, tmp_path: Path) -> None:
    done = train_run(replace(options, objective="joint", mlm_weight=0.5, epochs=3, out=tmp_path))
    rows = Run(tmp_path).read_metrics()
    train_rows = [row for row in rows if row.split == "train"]
    assert all(row.losses is not None and set(row.losses) == {"classify", "masked"} for row in train_rows)
    for row in train_rows:
        assert row.losses is not None
        assert row.loss == pytest.approx(row.losses["classify"] + 0.5 * row.losses["masked"])
    dev = [(row.value, -(row.loss or 0.0), -row.step) for row in rows if row.split == "dev" and row.step]
    assert done.results.best_step == -max(dev)[2]
    assert next(c for c in done.checks.checks if c.name == "reload").status == "passed"


def test_a_negative_weight_and_a_frozen_body_are_refused(options: AdaptOptions, tmp_path: Path) -> None:
    for more, words in (
        ({"mlm_weight": -1.0}, "--mlm-weight -1: must be at least 0"),
        ({"method": "head"}, "--method head keeps it frozen"),
    ):
        with pytest.raises(UserError, match=words):
            train_run(replace(options, objective="joint", out=tmp_path / "x", **more))  # type: ignore[arg-type]
    with pytest.raises(UserError, match="belongs to --objective joint"):
        train_run(replace(options, mlm_first=3, out=tmp_path / "x"))
