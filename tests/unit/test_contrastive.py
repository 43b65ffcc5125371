"""Contrastive tuning: its loss, its batches, and the head that is fitted whenever the model is scored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from heedful.errors import UserError
from heedful.objectives.contrastive import LabelBatches, supervised_contrastive_loss
from heedful.options.training import AdaptOptions
from heedful.runs.checksums import file_checksum
from heedful.runs.directory import Run
from heedful.training.build.adapt import build_adapt
from heedful.training.build.settings import TaskFacts, choose_settings
from heedful.training.rescore import add_split
from heedful.training.train import train_run
from tiny import make_model, make_task


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> AdaptOptions:
    root = tmp_path_factory.mktemp("tiny")
    return AdaptOptions(
        model=str(make_model(root / "model", words=20)), task=str(make_task(root / "task")), steps=12, pool="mean",
        method="contrastive", batch_size=8, lr=5e-3, max_len=32, precision="float32", threads=1, eval_every=4,
    )  # fmt: skip


def test_the_loss_is_khosla_s_equation_2() -> None:
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(7, 5, generator=generator, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1, 0, 2, 1, 2, 0])
    losses = supervised_contrastive_loss(states, labels, 0.3)
    unit = (states / states.norm(dim=1, keepdim=True)).detach()
    for i in range(7):
        others = [k for k in range(7) if k != i]
        total = sum(torch.exp(unit[i] @ unit[k] / 0.3) for k in others)
        same = [k for k in others if labels[k] == labels[i]]
        expected = -sum(torch.log(torch.exp(unit[i] @ unit[k] / 0.3) / total) for k in same) / len(same)
        assert abs(losses[i].item() - float(expected)) < 1e-12
    losses.sum().backward()
    assert states.grad is not None
    assert states.grad.isfinite().all()


@pytest.mark.parametrize(("counts", "size"), [([30, 20], 16), ([40, 3, 1], 8), ([1] * 77, 16), ([2, 5], 1)])
def test_batches_have_each_label_at_least_twice_and_reach_every_text(counts: list[int], size: int) -> None:
    labels = np.repeat(np.arange(len(counts)), counts)
    batches = LabelBatches(labels, size, seed=3)
    reached = set()
    for step in range(200):
        batch = batches.choose(step)
        assert len(batch) <= max(size, 2)
        assert np.unique(labels[batch], return_counts=True)[1].min() >= 2
        reached |= set(batch.tolist())
    assert reached == set(range(len(labels)))
    assert (LabelBatches(labels, size, seed=3).choose(7) == batches.choose(7)).all()


def test_the_steps_follow_the_labels_and_not_the_rows() -> None:
    options = AdaptOptions(model="minilm", task="t", method="contrastive")
    facts = TaskFacts(
        rows=50, labels=np.array([25, 25]), dev_labels=None, lengths=np.full(9, 20), room=512, width=384,
        new_linear_head=True,
    )  # fmt: skip
    few, reasons = choose_settings(options, facts)
    assert (few.steps, few.epochs, few.eval_every, few.lr) == (40, None, 20, 1e-4)
    assert {"steps", "eval_every"} < reasons.keys()
    assert choose_settings(options, replace(facts, rows=9000))[0].steps == few.steps
    assert choose_settings(options, replace(facts, labels=np.full(77, 9)))[0].steps == 200
    given = choose_settings(replace(options, epochs=2), facts)[0]
    assert (given.steps, given.epochs) == (None, 2)


def test_the_head_that_is_scored_and_saved_is_fitted_to_the_tuned_body(
    base: AdaptOptions, tmp_path: Path
) -> None:
    finished = train_run(replace(base, out=tmp_path / "run", score_test=False))
    assert finished.results.method == "contrastive"
    assert {check.name: check.status for check in finished.checks.checks}["reload"] == "passed"
    dev = finished.results.splits["dev"].value
    assert dev is not None
    assert dev >= 0.8
    before = file_checksum(tmp_path / "run" / "best" / "head" / "model.safetensors")
    assert add_split(tmp_path / "run", "test").value is not None
    assert file_checksum(tmp_path / "run" / "best" / "head" / "model.safetensors") == before


def test_without_anything_to_score_the_head_is_fitted_at_the_end(base: AdaptOptions, tmp_path: Path) -> None:
    unscored = {"score_dev": False, "score_test": False, "train_eval_rows": 0}
    train_run(replace(base, out=tmp_path / "run", **unscored))  # type: ignore[arg-type]
    assert (add_split(tmp_path / "run", "test").value or 0) >= 0.8
    assert Run.open(tmp_path / "run").read_results().splits


def test_rows_of_pairs_and_labels_with_one_row_are_trained(base: AdaptOptions, tmp_path: Path) -> None:
    rows = [f"a film {i},the plot {i % 3},{['yes', 'no', 'perhaps'][min(i, 2)]}" for i in range(8)]
    (tmp_path / "train.csv").write_text("\n".join(["text,pair,label", *rows, ""]), "utf-8")
    options = replace(base, task=str(tmp_path / "train.csv"), split="none", pair_column="pair", steps=2)
    train_run(replace(options, out=tmp_path / "run", eval_every=None))
    assert (tmp_path / "run" / "best" / "head").is_dir()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": "joint"}, "compares texts by their labels"),
        ({"head": "family"}, "fits a linear head"),
        (
            {"batch_size": None, "token_budget": 100},
            "--token-budget has no meaning with --method contrastive",
        ),
        ({"label_smoothing": 0.1}, "--label-smoothing has no meaning with --method contrastive"),
        ({"method_options": ("temperature=0",)}, "temperature must be above 0"),
    ],
)
def test_options_without_meaning_are_refused(
    base: AdaptOptions, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        build_adapt(replace(base, **changes))  # type: ignore[arg-type]
