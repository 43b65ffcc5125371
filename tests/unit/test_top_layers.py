"""`--method top-layers`: the layers below run once, and nothing else is different."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heedful import checkpoints
from heedful.contracts.methods import build_classifier, make_batch
from heedful.data import load_task
from heedful.data.features import Features
from heedful.errors import UserError
from heedful.methods import make
from heedful.models import Classifier, build
from heedful.objectives import Classify, ClassifyTopLayers, features
from heedful.objectives.base import Ints
from heedful.options.training import AdaptOptions
from heedful.runs.checksums import file_checksum
from heedful.runs.directory import Run
from heedful.text import load as load_tokenizer
from heedful.training.loop import Loop
from heedful.training.rescore import evaluate_split
from heedful.training.train import train_run
from tiny import make_model, make_task


@pytest.fixture(scope="module")
def options(tmp_path_factory: pytest.TempPathFactory) -> AdaptOptions:
    root = tmp_path_factory.mktemp("top")
    return AdaptOptions(
        model=str(make_model(root / "model")), task=str(make_task(root / "task")), precision="float32",
        threads=1, max_len=32, lr=5e-3, epochs=2, batch_size=8, train_rows=50, method="top-layers",
        method_options=("layers=1",), select="last", out=root / "run",
    )  # fmt: skip


@pytest.fixture(scope="module")
def run(options: AdaptOptions) -> Run:
    return Run(train_run(options).folder)


@pytest.mark.parametrize("family", ["bert", "bert mean", "roberta", "distilbert", "gpt2"])
def test_lower_and_upper_layers_are_the_whole_model_to_the_bit(family: str) -> None:
    model = build_classifier(family.partition(" ")[0], "top-layers").eval()
    if family.endswith("mean"):
        mean = build(model.config.replace(pool="mean"), "classify")
        assert isinstance(mean, Classifier)
        model = mean.eval()
    inputs = make_batch(model)
    ids, mask = inputs["input_ids"], inputs["attention_mask"]
    with torch.no_grad():
        whole = model.body.pooled(ids, mask)
        for layers in range(2):
            states = model.body.run_lower(ids, mask, None, layers)  # type: ignore[union-attr]
            assert torch.equal(model.body.pooled_above(states, ids, mask, layers), whole)  # type: ignore[union-attr]


def test_training_on_kept_states_is_the_same_mathematics(options: AdaptOptions, tmp_path: Path) -> None:
    task, tokenizer = load_task(options.task), load_tokenizer(options.model)

    def make_loop(kept: bool) -> Loop:
        torch.manual_seed(0)
        model = checkpoints.load(options.model, head="classify", n_classes=2).double()
        assert isinstance(model, Classifier)
        method = make("top-layers", layers=1)
        method.attach(model)
        objective = Classify(task, tokenizer, max_len=32, with_types=True, train_rows=41)
        if kept:
            objective = ClassifyTopLayers(objective, model, 1)
            for split, rows in (("train", objective.rows), ("dev", np.arange(30))):
                objective.features[split] = Features(exact_states(model, objective, split, rows), 0.0)
        steps = AdaptOptions(batch_size=12, epochs=2, precision="float32")
        run = Run.create(tmp_path / str(kept))
        return Loop(model.eval(), method.trainable(model), objective, steps, 1e-2, run)

    plain, kept = make_loop(False), make_loop(True)
    for loop in (plain, kept):
        for step in range(loop.plan.total):
            loop.step(step)
    for name, parameter in plain.parameters.items():
        assert (parameter - kept.parameters[name]).abs().max() < 1e-10, name
    a, b = (loop.objective.evaluate(loop.model, "dev") for loop in (plain, kept))
    assert a.loss == pytest.approx(b.loss, abs=1e-10)


def exact_states(model: Any, objective: ClassifyTopLayers, split: str, rows: Ints) -> Any:
    """The states of the lower layer in float64, which the cache rounds."""
    t = Classify.inputs(objective, split, rows).tensors
    with torch.no_grad():
        states = model.body.run_lower(t["ids"], t["mask"], t.get("types"), 1)
    return states[t["mask"]].numpy()


def test_dev_and_test_are_scored_as_the_whole_model_scores_them(options: AdaptOptions, run: Run) -> None:
    results = run.read_results()
    for split in ("dev", "test"):
        again = evaluate_split(run.path, split)
        assert (again.value, again.loss) == (results.splits[split].value, results.splits[split].loss)
    assert {check.name: check.status for check in run.read_checks().checks}["reload"] == "passed"


def test_the_lower_layers_stay_and_the_others_move(options: AdaptOptions, run: Run) -> None:
    before, after = checkpoints.load(options.model), checkpoints.load(run.best, head="classify").body
    still = {
        name for name, tensor in before.state_dict().items() if torch.equal(tensor, after.state_dict()[name])
    }
    expected = {name for name in before.state_dict() if name.startswith(("embed.", "stack.layers.0."))}
    assert (
        still - {"stack.layers.1.attn.k_proj.bias"} == expected
    )  # softmax ignores what is added to all keys


def test_a_cold_and_a_warm_cache_give_the_same_bits(
    options: AdaptOptions, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(features, "iterate_by_length", lambda *_: pytest.fail("the lower layers ran again"))
        train_run(replace(options, out=tmp_path / "warm"))
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    train_run(replace(options, out=tmp_path / "cold"))
    names = [path.relative_to(run.path) for path in (run.path / "best").rglob("*") if path.is_file()]
    for name in ("metrics.jsonl", "predictions_dev.jsonl", "predictions_test.jsonl", *names):
        of_run = file_checksum(run.path / name)
        assert file_checksum(tmp_path / "warm" / name) == file_checksum(tmp_path / "cold" / name) == of_run


def test_what_cannot_be_is_refused_in_one_line(options: AdaptOptions) -> None:
    with pytest.raises(UserError, match="cannot run the lower layers of t5 alone; full works there"):
        make("top-layers").attach(build_classifier("t5", "top-layers"))
    with pytest.raises(UserError, match="top-layers: layers 3: this model has 2"):
        make("top-layers", layers=3).attach(build_classifier("bert", "top-layers"))
    with pytest.raises(UserError, match="top-layers: layers 0: must be at least 1"):
        make("top-layers", layers=0)
