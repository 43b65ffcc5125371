"""The threshold of two labels: tuned for a metric, honest on dev, stored with the model, used everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score
from tests.tiny import BAD, GOOD, PLAIN

import heedful as package
from heedful.errors import UserError
from heedful.evaluation.decision_threshold import (
    choose_decision,
    decide,
    make_decision,
    predict_held_out,
    tune_threshold,
)
from heedful.evaluation.metrics import METRICS, find_metric
from heedful.inference.loading import load_run
from heedful.objectives import Evaluation
from heedful.runs.directory import Run

MACRO = METRICS["macro_f1"]


def make_evaluation(n: int, seed: int, *, rare: float = 0.1, strength: float = 1.5) -> Evaluation:
    """Return probabilities that are calibrated: with a rare label, few of them reach 0.5."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < rare).astype(np.int64)
    x = rng.normal(labels * strength)
    odds = rare / (1 - rare) * np.exp(strength * x - strength**2 / 2)
    p = odds / (1 + odds)
    e = Evaluation("macro_f1", 0.0, 0.0, n, labels, (p > 0.5).astype(np.int64), np.stack([1 - p, p], 1))
    return MACRO.score(Evaluation(**{**vars(e), "metric": ""}))


def test_the_best_threshold_is_that_of_trying_all() -> None:
    e = make_evaluation(60, 0)
    assert e.labels is not None
    assert e.probabilities is not None
    scores = e.probabilities[:, 1]
    best = max(f1_score(e.labels, scores >= t, average="macro") for t in np.append(scores, [0.0, 1.1]))
    chosen = tune_threshold(MACRO, e.labels, scores)
    assert f1_score(e.labels, scores >= chosen, average="macro") == pytest.approx(best)


def test_a_tuned_threshold_is_better_on_new_rows_and_its_score_on_dev_is_not_too_high() -> None:
    gains, honest, later = [], [], []
    for seed in range(30):
        dev, test = make_evaluation(400, seed), make_evaluation(4000, 1000 + seed)
        evaluations, decision = make_decision({"dev": dev, "test": test}, MACRO, ["ham", "spam"], None)
        gains.append(evaluations["test"].value - test.value)
        honest.append(evaluations["dev"].value)
        later.append(evaluations["test"].value)
        if decision is not None:
            assert 0 < decision.threshold < 0.5
            assert evaluations["test"].value_at_half == test.value
    assert np.mean(gains) > 0.03
    assert np.median(gains) > 0
    error = np.std(honest) / np.sqrt(len(honest))
    assert np.mean(honest) - np.mean(later) < 3 * error  # in the sample itself, it is too high


def test_no_threshold_without_need() -> None:
    dev = make_evaluation(400, 0)
    assert choose_decision(METRICS["accuracy"], dev, ["a", "b"]) is None
    assert choose_decision(METRICS["auroc"], dev, ["a", "b"]) is None
    assert choose_decision(MACRO, make_evaluation(60, 0), ["a", "b"]) is None  # too few rows of a label
    sure = make_evaluation(400, 0, rare=0.5, strength=12.0)
    assert choose_decision(MACRO, sure, ["a", "b"]) is None  # 0.5 is right for all rows
    given = choose_decision(METRICS["accuracy"], dev, ["a", "b"], 0.3)
    assert given is not None
    assert (given.threshold, given.label, given.tuned_for) == (0.3, "b", None)
    decided = decide(dev, given, METRICS["log_loss"], "dev")
    assert (decided.value, decided.value_at_half) == (dev.value, None)  # probabilities have no threshold


def test_each_label_can_be_the_one_that_counts() -> None:
    dev = make_evaluation(400, 3)
    assert dev.labels is not None
    assert dev.probabilities is not None
    for label in ("ham", "spam"):
        metric = find_metric(f"f1:{label}", ["ham", "spam"])
        predicted = predict_held_out(metric, dev.labels, dev.probabilities)
        plain = metric.compute(dev.labels, dev.probabilities.argmax(1))
        assert metric.compute(dev.labels, predicted) >= plain


def write_rare_task(folder: Path) -> Path:
    """Write texts of which one in seven is good, and where the words often mislead."""
    rng = np.random.default_rng(0)
    folder.mkdir()
    for name, rows in (("train", 300), ("dev", 200), ("test", 200)):
        lines = ["text,label"]
        for _ in range(rows):
            good = rng.random() < 0.15
            words = GOOD if rng.random() < (0.75 if good else 0.25) else BAD
            text = " ".join([*rng.choice(PLAIN, 4), *rng.choice(words, 2)])
            lines.append(f"{text},{'yes' if good else 'no'}")
        (folder / f"{name}.csv").write_text("\n".join([*lines, ""]))
    return folder


@pytest.fixture(scope="module")
def rare_run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    top = tmp_path_factory.mktemp("rare")
    task = write_rare_task(top / "task")
    return package.adapt("tfidf", str(task), metric="f1:yes", class_weights="none", out=top / "run")


def test_a_run_stores_its_threshold_and_uses_it(
    rare_run: Any, heedful: Callable[..., Any], tmp_path: Path
) -> None:
    run = rare_run.folder
    results = Run.open(run).read_results()
    stored = json.loads((run / "best" / "decision.json").read_text())
    test = results.splits["test"]
    assert stored == {"label": "yes", "threshold": test.threshold, "tuned_for": "f1:yes"}
    rows = Run.open(run).read_predictions("test")
    p = np.array([row.probabilities["yes"] for row in rows])
    assert [row.predicted for row in rows] == ["yes" if one >= test.threshold else "no" for one in p]
    truth = np.array([row.label == "yes" for row in rows])
    assert test.value == pytest.approx(f1_score(truth, p >= test.threshold))
    assert test.value_at_half == pytest.approx(f1_score(truth, p > 0.5))
    predicted = package.predict(run, [str(row.text) for row in rows])
    assert [one.label for one in predicted] == [row.predicted for row in rows]
    assert any(one.label == "yes" and one.confidence < 0.5 for one in predicted)
    for split in ("dev", "test"):
        again = package.evaluate(run, split=split).splits[split]
        assert again == results.splits[split]
    shown = heedful("evaluate", run)
    assert '"yes" is predicted from a probability of' in shown.out
    assert "at 0.5 the F1 of yes is" in shown.out
    package.report(run, out=tmp_path / "report.html")
    assert "is predicted from a probability of" in (tmp_path / "report.html").read_text()


def test_a_threshold_can_be_given(rare_run: Any, tmp_path: Path) -> None:
    task = rare_run.config["task"]
    half = package.adapt(
        "tfidf", task, metric="f1:yes", class_weights="none", threshold=0.5, out=tmp_path / "half"
    )
    assert half.results.splits["test"].value == pytest.approx(rare_run.results.splits["test"].value_at_half)
    low = package.adapt("tfidf", task, threshold=0.01, out=tmp_path / "low")
    assert set(low.results.splits["dev"].predicted_counts) == {"no", "yes"}
    assert low.results.splits["dev"].predicted_counts["no"] == 0
    assert load_run(low.folder).predict(["any text"])[0].label == "yes"
    three = tmp_path / "three.csv"
    three.write_text("text,label\n" + "".join(f"word{i} text,{'abc'[i % 3]}\n" for i in range(90)))
    with pytest.raises(UserError, match=r"is for one of two labels; three.* has 3 labels"):
        package.adapt("tfidf", str(three), threshold=0.3, out=tmp_path / "none")
