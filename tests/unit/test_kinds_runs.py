"""Runs whose answers are several labels, numbers or ordered classes: every method trains them, or says why not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import heedful
from heedful.cli import main as run_command
from heedful.errors import UserError
from heedful.linear.ordinal import fit_ordinal
from heedful.models import PRESETS
from heedful.models.heads import OrdinalHead
from heedful.options.training import AdaptOptions
from heedful.runs.directory import Run
from heedful.training.build import build_job
from heedful.training.rescore import evaluate_split
from heedful.training.train import train_run
from tiny import make_kind, make_model

CONFIG = PRESETS["bert-tiny"].config.replace(d_model=4, n_heads=1, d_head=4)
KINDS = ("labels", "number", "ordered")
METHODS = ("full", "head", "prompt", "prefix", "lora", "bitfit", "top-layers")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("kinds")
    make_model(root / "model")
    for kind in KINDS:
        make_kind(root / kind, kind)
    return root


def make_options(root: Path, kind: str, out: str, **changes: Any) -> AdaptOptions:
    options = AdaptOptions(
        model=str(root / "model"), task=str(root / kind), kind=kind, precision="float32", threads=1,
        max_len=32, batch_size=8, lr=5e-3, epochs=1, train_rows=24, train_eval_rows=0, out=root / out,
    )  # fmt: skip
    return replace(options, **changes)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS)
def test_every_method_trains_every_kind_and_its_saved_model_scores_the_same(
    root: Path, kind: str, method: str
) -> None:
    metric = "rmse" if kind == "number" else None  # of predictions that hardly differ, too
    options = make_options(root, kind, f"{kind}-{method}", method=method, metric=metric)
    if method == "prefix":
        options = replace(options, method_options=("length=2",))
    finished = train_run(options)
    checks = {check.name: check.status for check in finished.checks.checks}
    assert checks["reload"] == "passed"
    for split in ("dev", "test"):
        stored, again = finished.results.splits[split], evaluate_split(finished.folder, split)
        assert again.value == pytest.approx(stored.value, abs=1e-3)
        assert stored.other_metrics


@pytest.fixture(scope="module")
def runs(root: Path) -> dict[str, Path]:
    return {
        kind: train_run(make_options(root, kind, f"{kind}-again", epochs=2, train_rows=None)).folder
        for kind in KINDS
    }


def test_several_labels_are_predicted_by_their_thresholds(runs: dict[str, Path], tmp_path: Path) -> None:
    predictor = heedful.load(runs["labels"])
    results = Run(runs["labels"]).read_results()
    rows = Run(runs["labels"]).read_predictions("test")
    assert results.thresholds is not None
    thresholds = np.array(list(results.thresholds.values()))
    answers = predictor.predict([str(row.text) for row in rows])
    for row, answer in zip(rows, answers, strict=True):
        assert row.label is None
        assert answer.labels == row.predicted_labels
        pairs = zip(row.probabilities.items(), thresholds, strict=True)
        over = [name for (name, probability), threshold in pairs if probability >= threshold]
        assert list(answer.labels) == over
    others = results.splits["test"].other_metrics
    assert others is not None
    assert {"macro_f1", "jaccard", "micro_f1_at_half", "f1:good", "f1:bad"} <= set(others)
    out = tmp_path / "out.csv"
    command = ["predict", str(runs["labels"]), "--in", str(runs["labels"].parent / "labels/test.csv")]
    assert run_command([*command, "--out", str(out)]) == 0
    header = out.read_text().splitlines()[0]
    assert header == "text,good,bad,labels,predicted_good,predicted_bad"


def test_numbers_are_predicted_in_their_own_unit(runs: dict[str, Path], tmp_path: Path) -> None:
    predictor = heedful.load(runs["number"])
    rows = Run(runs["number"]).read_predictions("test")
    values = [answer.value for answer in predictor.predict([str(row.text) for row in rows])]
    np.testing.assert_allclose(values, [row.predicted_value for row in rows], atol=1e-4)
    assert 4 < float(np.mean(values)) < 16
    with pytest.raises(UserError, match="one label per text"):
        predictor.predict(["fine"], min_confidence=0.9)
    out = tmp_path / "out.csv"
    command = ["predict", str(runs["number"]), "--in", str(runs["number"].parent / "number/test.csv")]
    assert run_command([*command, "--out", str(out)]) == 0
    assert out.read_text().splitlines()[0] == "text,score,number"


@pytest.mark.parametrize("kind", KINDS)
def test_a_stopped_run_goes_on_to_the_same_bits(root: Path, kind: str, runs: dict[str, Path]) -> None:
    options = make_options(root, kind, f"{kind}-stopped", epochs=2, train_rows=None, eval_every=4)
    whole = train_run(replace(options, out=root / f"{kind}-whole"))

    def stop(row: Any) -> None:
        if row.split == "dev" and row.step == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_run(options, on_row=stop)
    resumed = train_run(replace(options, resume=True))
    weights = [Run(done.folder).best / "model.safetensors" for done in (whole, resumed)]
    assert weights[0].read_bytes() == weights[1].read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_joint_loss(root: Path, kind: str) -> None:
    options = make_options(root, kind, f"{kind}-joint", objective="joint", mlm_weight=0.5)
    done = train_run(options)
    again = evaluate_split(done.folder, "test")
    assert again.loss == pytest.approx(done.results.splits["test"].loss, abs=1e-4)


def test_what_needs_one_label_per_text_says_so(root: Path) -> None:
    for changes, message in (
        ({"method": "contrastive"}, "compares texts by"),
        ({"objective": "classify"}, "--objective classify: labels has any number of labels per text"),
        ({"expect_shares": "equal"}, "one label per text"),
    ):
        options = replace(make_options(root, "labels", "refused"), batch_size=None, **changes)
        with pytest.raises(UserError, match=message):
            train_run(options)


@pytest.mark.parametrize("kind", ["labels", "number"])
def test_heads_and_losses_are_those_of_transformers(root: Path, kind: str, runs: dict[str, Path]) -> None:
    from transformers import AutoModelForSequenceClassification

    job = build_job(make_options(root, kind, "parity", train_rows=None, head_start="random", epochs=1))
    reading, objective = job.objective.reading, job.objective
    theirs = AutoModelForSequenceClassification.from_pretrained(runs[kind] / "best").eval()
    ours = heedful.load(runs[kind]).model
    inputs = objective.inputs("train", np.arange(8))
    t = inputs.tensors
    targets = t["labels"].float()
    with torch.no_grad():
        wanted = theirs(t["ids"], t["mask"].long(), t.get("types"), labels=targets)
        logits = ours(t["ids"], t["mask"], t.get("types"))
        if kind == "number":
            loss = reading.sum_loss((logits - reading.mean) / reading.std, targets, None, 0.0) / 8
            loss = loss * reading.std**2
            assert theirs.config.problem_type == "regression"
        else:
            loss = reading.sum_loss(logits, targets, None, 0.0) / 8
            assert theirs.config.problem_type == "multi_label_classification"
            assert theirs.config.id2label == {0: "good", 1: "bad"}
    torch.testing.assert_close(logits, wanted.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(loss, wanted.loss, atol=1e-4, rtol=1e-4)


def test_the_ordinal_head_is_a_cumulative_link_and_its_fit_the_minimum() -> None:
    head = OrdinalHead(CONFIG, 4).double().eval()
    thresholds = torch.tensor([-1.0, 0.5, 2.0], dtype=torch.float64)
    head.set_thresholds(thresholds)
    states = torch.randn(50, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    below = torch.sigmoid(thresholds - head.out(states))
    edges = torch.cat([torch.zeros(50, 1), below, torch.ones(50, 1)], 1)
    torch.testing.assert_close(head(states).exp(), edges.diff())
    rng = np.random.default_rng(0)
    features = rng.normal(size=(400, 3))
    labels = np.digitize(features @ [1.0, -2.0, 0.5] + rng.logistic(size=400), [-1.0, 1.0])
    doubled = np.r_[0:400, np.flatnonzero(labels == 1)]
    balanced = fit_ordinal(features[doubled], labels[doubled], 3, balanced=True, strengths=[1e6])
    plain = fit_ordinal(features, labels, 3, balanced=True, strengths=[1e6])
    np.testing.assert_allclose(balanced[0].weight, plain[0].weight, atol=0.02)  # shares have no weight
    fit, cuts = fit_ordinal(features, labels, 3, strengths=[1e6])
    np.testing.assert_allclose(fit.weight[0], [1.0, -2.0, 0.5], atol=0.35)
    np.testing.assert_allclose(cuts, [-1.0, 1.0], atol=0.35)
