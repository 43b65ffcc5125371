"""The average of candidates: its weights, its honest scores, and its run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_solve import WorkerInThisProcess, in_process, options, problem

import heedful
from heedful.evaluation.metrics import METRICS
from heedful.inference.ensemble import read_weights
from heedful.inference.export import export_run
from heedful.inference.predictor import EnsemblePredictor
from heedful.runs.directory import Run
from heedful.solve import answer, ensemble, plan, request, runner
from heedful.solve.average_loss import LogLoss
from heedful.solve.choice import Cost, ScoredCandidate, ScoredCandidates, choose
from heedful.solve.process import TimeOverError
from heedful.training.rescore import check_run

__all__ = ["in_process", "problem"]


def make_tables(models: int, rows: int, strength: float, seed: int = 0) -> tuple[Any, Any]:
    """Probabilities of two labels by models that err independently of each other, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, rows)
    logits = strength * (2 * labels - 1) + 1.5 * rng.normal(size=(models, rows))
    ones = 1 / (1 + np.exp(-logits))
    return np.stack([1 - ones, ones], axis=-1), labels


def test_weights_minimize_the_loss_of_the_average() -> None:
    tables, labels = make_tables(2, 400, 1.0)
    likelihoods = tables[:, np.arange(400), labels].T
    weights = LogLoss(likelihoods).fit(range(likelihoods.shape[1]))
    assert weights.sum() == pytest.approx(1)
    losses = [-np.log(likelihoods @ [w, 1 - w]).mean() for w in np.linspace(0, 1, 201)]
    assert -np.log(likelihoods @ weights).mean() == pytest.approx(min(losses), abs=1e-4)


def test_at_most_three_models_are_averaged_and_only_those_that_help() -> None:
    tables, labels = make_tables(6, 500, 1.0)
    weights, _ = ensemble.blend_outputs(tables, labels) or pytest.fail("they help each other")
    assert (weights > 0).sum() == 3
    assert weights[weights > 0].min() >= ensemble.LEAST_WEIGHT
    same = np.stack([tables[0], tables[0]])
    assert ensemble.blend_outputs(same, labels) is None  # a model adds nothing to itself
    assert ensemble.blend_outputs(tables[:, :50], labels[:50]) is None  # too few rows to choose on


def test_the_label_of_a_row_never_reaches_its_own_probabilities() -> None:
    tables, labels = make_tables(4, 300, 0.3)
    _, before = ensemble.blend_outputs(tables, labels) or pytest.fail("they help each other")
    parts = np.random.default_rng(0).permutation(300) % ensemble.PARTS
    changed = np.where(parts == 0, 1 - labels, labels)
    _, after = ensemble.blend_outputs(tables, changed) or pytest.fail("they help each other")
    assert np.array_equal(before[parts == 0], after[parts == 0])
    assert not np.array_equal(before[parts != 0], after[parts != 0])


@pytest.mark.parametrize(("right", "prefer", "worth"), [
    (385, None, False),  # one row more than the best: less than a standard error
    (396, None, True),
    (396, "accuracy", True),
    (386, "speed", False),  # better, but not by so much that its cost is accepted
    (370, "accuracy", False),
])  # fmt: skip
def test_an_average_must_be_better_than_the_best_by_a_standard_error(
    right: int, prefer: Any, worth: bool
) -> None:
    rng = np.random.default_rng(0)

    def candidate(name: str, right: int, ms: float) -> ScoredCandidate:
        predicted = np.array(["yes"] * right + ["no"] * (400 - right), dtype=object)
        return ScoredCandidate(name, name, rng.permutation(predicted), Cost(1, ms, 90))

    candidates = (candidate("head", 370, 10), candidate("full", 384, 10), candidate("ensemble", right, 20))
    scored = ScoredCandidates(candidates, np.array(["yes"] * 400, dtype=object), METRICS["accuracy"])
    reason = ensemble.explain_unworthy(scored, "ensemble", prefer)
    assert (reason == "") == worth, reason
    assert worth or reason.endswith("against 0.960 of full)")


@pytest.fixture
def always_average(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every average is made with equal weights, and is chosen."""
    for name, value in (("LEAST_ROWS", 10), ("LEAST_GAIN", -9.0), ("LEAST_WEIGHT", 0.0)):
        monkeypatch.setattr(ensemble, name, value)
    monkeypatch.setattr(LogLoss, "fit", lambda loss, members: np.full(len(members), 1 / len(members)))
    monkeypatch.setattr(ensemble, "explain_unworthy", lambda *_: "")

    def choose_average(scored: ScoredCandidates, prefer: Any) -> Any:
        choice = choose(scored, prefer)
        return replace(choice, chosen=max(choice.scores, key=lambda name: ("ensemble" in name, name)))

    for module in (runner, answer):
        monkeypatch.setattr(module, "choose", choose_average)


@pytest.mark.usefixtures("always_average")
def test_an_average_is_made_used_and_kept_like_a_run(
    problem: dict[str, str],
    in_process: type[WorkerInThisProcess],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(plan, "LEAST_DEV", 300)
    monkeypatch.setattr(plan, "FOLD_COUNTS", (2,))
    out, names = tmp_path / "solved", ("majority", "tfidf", "head", "head-words", "ensemble")
    wanted = replace(options(problem, out), candidates=names)
    late = TimeOverError()
    in_process.failing |= {"head-words": late, "head-fold1": late, "tfidf-fold1": late}
    solved = runner.solve(replace(wanted, minutes=9))[1]
    assert set(solved.facts["dev"]) == {"tfidf", "head"}  # what has no folds yet is not averaged

    for name in ("head-fold1", "tfidf-fold1"):
        del in_process.failing[name]
    in_process.failing["ensemble"] = KeyboardInterrupt()
    solved = runner.solve(wanted)[1]
    assert not solved.finished
    assert "ensemble" not in solved.facts["dev"]

    del in_process.failing["ensemble"]
    solved = runner.solve(wanted)[1]
    assert solved.facts["chosen"] == "ensemble"
    assert solved.tables[0].title == "candidates, scored on 54 rows of dev and 2 folds"
    title = "Average of embeddings with logistic regression (0.50) and tf-idf with logistic regression (0.50)"
    assert sorted(solved.summary[0].partition(":")[0].lower().split()) == sorted(title.lower().split())
    kept = {path.parent.name for path in out.glob("runs/*/best")}
    assert kept == {
        name + end for name in ("ensemble", "tfidf", "head") for end in ("", "-refitted")
    }  # after and before train and dev were put together
    assert any(
        "After its selection it was fitted again on train and dev (90 rows)" in s for s in solved.summary
    )
    weights = [read_weights(out / f"runs/ensemble{end}/best").values() for end in ("", "-refitted")]
    assert [*weights[0]] == [*weights[1]]
    size = sum(file.stat().st_size for file in (out / "runs/ensemble/best").rglob("*") if file.is_file())
    assert any(f"The model has {size / 1e6:.1f} MB on disk" in line for line in solved.summary)

    texts = ["a lovely film", "a rude plot", "music"]
    predictor = heedful.load(out)
    assert isinstance(predictor, EnsemblePredictor)
    final = ("tfidf-refitted", "head-refitted")
    parts = [heedful.load(out / "runs" / name).predict_proba(texts) for name in final]
    assert np.allclose(predictor.predict_proba(texts), np.mean(parts, axis=0))
    assert heedful.evaluate(out, split="test").value == solved.facts["test"]
    assert heedful.evaluate(out, data=problem["task"]).splits["data"].n == 20
    assert set(Run.open(out).read_results().splits) == {"test"}
    assert len(Run.open(out / "runs/ensemble").read_predictions("dev")) == 30
    found, repeated = check_run(out)
    assert "reload" in repeated
    assert {check.status for check in found if check.name == "reload"} == {"passed"}
    assert export_run(out, tmp_path / "model", merge=False).loads_with == "heedful"
    exported = heedful.load(tmp_path / "model").predict_proba(texts)
    assert np.allclose(exported, predictor.predict_proba(texts))
    heedful.report(out / "runs/ensemble", out=tmp_path / "page.html")
    assert "average" in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert runner.solve(wanted)[1] == solved  # nothing is left to do

    in_process.failing.clear()
    solved = runner.solve(replace(wanted, minutes=11))[1]
    assert solved.facts["chosen"] == "ensemble-2"
    assert any("test was scored for 3 candidates: " in note.text for note in solved.notes)
    assert not (out / "runs/ensemble/best").exists()
    assert len(heedful.load(out).model) == 3


def test_an_average_is_only_of_others_and_is_not_trained(problem: dict[str, str], tmp_path: Path) -> None:
    with pytest.raises(heedful.UserError, match="ensemble: is an average of others; name two of them too"):
        request.find_candidates(("head", "ensemble"))
    with pytest.raises(heedful.UserError, match="ensemble: is an average of runs, which heedful solve makes"):
        heedful.adapt("ensemble", problem["task"], out=tmp_path / "run")
