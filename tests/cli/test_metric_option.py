"""Any metric selects, scores, compares and is refused where it does not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import log_loss, roc_auc_score

from heedful.runs.directory import Run
from heedful.runs.studies import StudyFolder


def read_probabilities(run: Path, split: str = "dev") -> tuple[np.ndarray, np.ndarray]:
    rows = Run.open(run).read_predictions(split)
    return np.array([row.label == "good" for row in rows]), np.array(
        [[row.probabilities[label] for label in ("bad", "good")] for row in rows]
    )


def test_a_lower_loss_selects_the_model_and_is_compared_with_the_baselines(
    heedful: Callable[..., Any], tiny_task: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    done = heedful(
        "adapt", tiny_bert, tiny_task, "--metric", "log_loss", "--method", "head", "--epochs", "3",
        "--head-start", "random", "--lr", "0.01", "--out", run,
    )  # fmt: skip
    assert done.status == 0, done.err
    assert "log loss" in done.out
    results = Run.open(run).read_results()
    dev = results.splits["dev"]
    assert (dev.metric, dev.title, dev.higher_is_better) == ("log_loss", "log loss", False)
    labels, p = read_probabilities(run)
    names = results.labels or ()
    assert dev.value == pytest.approx(log_loss(labels, p, labels=[False, True]))
    assert dev.value == pytest.approx(
        min(row.value for row in Run.open(run).read_metrics() if row.split == "dev")
    )
    assert dev.baselines is not None
    assert dev.baselines["chance"] == pytest.approx(np.log(len(names)))
    again = heedful("evaluate", run, "--split", "dev", "--metric", "auroc", "--json")
    assert again.status == 0, again.err
    scored = json.loads(again.out)
    assert scored["value"] == pytest.approx(roc_auc_score(labels, p[:, 1]))
    assert scored["recorded"] is None  # by another metric
    of_label = json.loads(heedful("evaluate", run, "--split", "dev", "--metric", "f1:good", "--json").out)
    assert of_label["title"] == "F1 of good"


def test_a_metric_that_does_not_fit_is_refused_with_those_that_do(
    heedful: Callable[..., Any],
    run_of: Callable[[str], Path],
    tiny_task: Path,
    tiny_bert: Path,
    tmp_path: Path,
) -> None:
    number = heedful("adapt", tiny_bert, tiny_task, "--metric", "pearson")
    assert number.status == 2
    assert "--metric pearson: is not for classification; there are accuracy" in number.err
    assert "macro_f1" in number.err
    assert "perplexity" not in number.err
    for model in ("tfidf", tiny_bert):
        label = heedful("adapt", model, tiny_task, "--metric", "f1:goood", "--out", tmp_path / "none")
        assert label.status == 2
        assert '--metric f1:goood: unknown label "goood"; did you mean "good"?' in label.err
        assert not (tmp_path / "none").exists()
    assert "is not for" in heedful("evaluate", run_of("full"), "--metric", "perplexity").err
    listed = json.loads(heedful("list", "metrics", "--json").out)
    by_name = {fact["name"]: fact for fact in listed}
    assert by_name["brier"]["higher_is_better"] is False
    assert by_name["f1:LABEL"]["problems"] == ["label", "ordered", "labels"]
    assert by_name["auroc"]["reads"] == "probabilities"


@pytest.mark.parametrize("metric", ["log_loss", "f1:good"])
def test_studies_rank_and_report_by_any_metric(
    heedful: Callable[..., Any], tiny_task: Path, tiny_bert: Path, tmp_path: Path, metric: str
) -> None:
    out = tmp_path / "search"
    done = heedful(
        "study", "search", tiny_bert, tiny_task, "--metric", metric, "--method", "head", "--lr", "1e-5,1e-1",
        "--epochs", "2", "--head-start", "random", "--jobs", "0", "--out", out,
    )  # fmt: skip
    assert done.status == 0, done.err
    values = {o.name: o.dev for o in StudyFolder.open(out).read_outcomes()}
    best = (min if metric == "log_loss" else max)(values, key=lambda name: values[name] or 0.0)
    answer = json.loads((out / "answer.json").read_text())
    assert answer["facts"]["chosen"] == best
    title = {"log_loss": "log loss", "f1:good": "F1 of good"}[metric]
    assert f"with {title}" in answer["summary"][0]
    assert "accuracy" not in json.dumps(answer).lower()


def test_solve_chooses_by_probabilities(
    heedful: Callable[..., Any], tiny_task: Path, tiny_bert: Path, tmp_path: Path
) -> None:
    out = tmp_path / "solved"
    done = heedful(
        "solve", tiny_task, "--metric", "log_loss", "--model", tiny_bert, "--candidates", "majority", "tfidf",
        "--minutes", "2", "--out", out,
    )  # fmt: skip
    assert done.status == 0, done.err
    answer = json.loads((out / "answer.json").read_text())
    assert answer["facts"]["chosen"] == "tfidf"
    dev = answer["facts"]["dev"]
    assert list(dev) == ["tfidf", "majority"]
    assert 0 < dev["tfidf"] < dev["majority"]
    assert "log loss" in answer["summary"][0]


def test_solve_says_where_accuracy_tells_little(heedful: Callable[..., Any], tmp_path: Path) -> None:
    rows = [
        f"text {i} {'rare words' if i % 12 == 0 else 'of the usual kind'},{int(i % 12 == 0)}"
        for i in range(240)
    ]
    (tmp_path / "rare.csv").write_text("\n".join(["text,label", *rows, ""]))
    out = tmp_path / "solved"
    done = heedful(
        "solve", tmp_path / "rare.csv", "--candidates", "majority", "tfidf", "--minutes", "2", "--out", out
    )
    assert done.status == 0, done.err
    notes = [note["text"] for note in json.loads((out / "answer.json").read_text())["notes"]]
    assert any("--metric macro_f1, f1:1 or average_precision" in note for note in notes)


def test_one_of_several_labels_can_be_what_counts(heedful: Callable[..., Any], tmp_path: Path) -> None:
    rows = [
        f"text {i} {'joy' if i % 3 else ''} {'love' if i % 2 else ''},{int(i % 3 > 0)},{i % 2}"
        for i in range(150)
    ]
    (tmp_path / "sets.csv").write_text("\n".join(["text,joy,love", *rows, ""]))
    run = tmp_path / "run"
    done = heedful("adapt", "tfidf", tmp_path / "sets.csv", "--metric", "f1:joy", "--out", run)
    assert done.status == 0, done.err
    assert Run.open(run).read_results().splits["test"].title == "F1 of joy"
    assert heedful("evaluate", run, "--metric", "average_precision:love").status == 0
    refused = heedful("adapt", "tfidf", tmp_path / "sets.csv", "--expect-shares", "equal")
    assert refused.status == 2
    assert "gives no such probabilities" in refused.err
