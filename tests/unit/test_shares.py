"""Probabilities for other shares of the labels than those of training."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from tests.tiny import make_model, make_task

from heedful import adapt, evaluate
from heedful.errors import UserError
from heedful.inference.loading import load_run
from heedful.runs.directory import Run
from heedful.statistics.shares import correct_probabilities, find_shares, log_correction, read_shares

OPTIONS: dict[str, Any] = {
    "epochs": 1, "lr": 0.01, "batch_size": 16, "max_len": 32, "threads": 1, "precision": "float32",
    "head_start": "random", "class_weights": "none",
}  # fmt: skip


def posterior(x: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Return p(label | x) of three normal densities with these shares, by Bayes' rule."""
    joint = np.stack(
        [share * stats.norm.pdf(x, mean) for share, mean in zip(shares, (-1, 0, 2), strict=True)], 1
    )
    return joint / joint.sum(1, keepdims=True)


def test_the_correction_is_bayes_rule_with_other_shares() -> None:
    x = np.linspace(-3, 4, 50)
    trained, expected = np.array([0.7, 0.2, 0.1]), np.array([0.2, 0.3, 0.5])
    corrected = correct_probabilities(posterior(x, trained), log_correction(trained, expected))
    np.testing.assert_allclose(corrected, posterior(x, expected), rtol=1e-12)
    back = correct_probabilities(corrected, log_correction(expected, trained))
    np.testing.assert_allclose(back, posterior(x, trained), rtol=1e-12)


def test_shares_are_equal_those_of_train_or_numbers() -> None:
    labels, counts = ["ham", "spam"], [80, 20]
    assert read_shares("equal", labels, counts).tolist() == [0.5, 0.5]
    assert read_shares("train", labels, counts).tolist() == [0.8, 0.2]
    assert read_shares("0.9,0.1", labels, counts).tolist() == pytest.approx([0.9, 0.1])
    assert find_shares([10, 0]).min() > 0
    for text, message in (
        ("even", "is equal, train, or numbers such as 0.2,0.8 for ham, spam"),
        ("0.2,0.3,0.5", "has 3 shares; there are 2 labels: ham, spam"),
        ("0.5,0.6", "add up to 1"),
        ("0,1", "above 0"),
    ):
        with pytest.raises(UserError, match=message):
            read_shares(text, labels, counts)


def read_probabilities(run: Path, split: str = "dev") -> np.ndarray:
    rows = Run.open(run).read_predictions(split)
    return np.array([[row.probabilities[label] for label in ("no", "yes")] for row in rows])


@pytest.mark.parametrize(("method", "weights"), [("full", "none"), ("head", "balanced"), ("lora", "none")])
def test_a_run_gives_corrected_probabilities_and_its_model_has_them(
    tmp_path: Path, method: str, weights: str
) -> None:
    model, task = make_model(tmp_path / "model"), make_task(tmp_path / "task")
    options = {**OPTIONS, "method": method, "class_weights": weights}
    plain = adapt(str(model), str(task), **options, out=tmp_path / "plain")
    other = adapt(str(model), str(task), **options, expect_shares="0.2,0.8", out=tmp_path / "other")
    correction = log_correction(np.array([0.5, 0.5]), np.array([0.2, 0.8]))
    for split in ("dev", "test"):
        wanted = correct_probabilities(read_probabilities(plain.folder, split), correction)
        # The correction is added to float32 logits where the model is saved, and in float64 before.
        np.testing.assert_allclose(read_probabilities(other.folder, split), wanted, atol=1e-6)
    texts = ["the film was fine", "a rude plot", "music"]
    wanted = correct_probabilities(load_run(plain.folder).predict_proba(texts), correction)
    np.testing.assert_allclose(load_run(other.folder).predict_proba(texts), wanted, atol=1e-6)
    assert evaluate(other, split="test").value == other.results.splits["test"].value
    checks = {check.name: check.status for check in other.checks.checks}
    assert checks["reload"] == "passed"


def test_a_linear_model_is_corrected_too(tmp_path: Path) -> None:
    task = make_task(tmp_path / "task")
    plain = adapt("tfidf", str(task), class_weights="none", out=tmp_path / "plain")
    other = adapt("tfidf", str(task), class_weights="none", expect_shares="0.9,0.1", out=tmp_path / "other")
    correction = log_correction(np.array([0.5, 0.5]), np.array([0.9, 0.1]))
    wanted = correct_probabilities(read_probabilities(plain.folder), correction)
    np.testing.assert_allclose(read_probabilities(other.folder), wanted, atol=1e-6)


def test_an_export_has_the_correction_in_its_bias(tmp_path: Path, heedful: Callable[..., Any]) -> None:
    transformers = pytest.importorskip("transformers")
    model, task = make_model(tmp_path / "model"), make_task(tmp_path / "task")
    options = {**OPTIONS, "head": "family", "pool": "family"}
    biases = []
    for name, shares in (("plain", None), ("other", "0.2,0.8")):
        run = adapt(
            str(model), str(task), **options, train_rows=20, expect_shares=shares, out=tmp_path / name
        )
        done = heedful("export", run.folder, tmp_path / f"{name}-export")
        assert done.status == 0, done.err
        loaded = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / f"{name}-export")
        biases.append(loaded.classifier.bias.detach())
    rows = json.loads((tmp_path / "plain" / "results.json").read_text())
    assert rows["labels"] == ["no", "yes"]
    counts = np.array([10, 10])  # the shares of the labels are kept in the rows that are chosen
    correction = log_correction(find_shares(counts), np.array([0.2, 0.8]))
    torch.testing.assert_close(biases[1] - biases[0], torch.tensor(correction).float(), atol=1e-6, rtol=0)


def test_a_number_of_shares_that_does_not_fit_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    model, task = make_model(tmp_path / "model"), make_task(tmp_path / "task")
    with pytest.raises(UserError, match=r"has 3 shares; there are 2 labels: no, yes"):
        adapt(str(model), str(task), **OPTIONS, expect_shares="0.3,0.3,0.4", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    with pytest.raises(UserError, match=r"gives no such probabilities"):
        adapt(str(model), str(task), **OPTIONS, objective="text2text", expect_shares="equal")
