"""`heedful solve`: the plan, the choice, and a whole solution with a tiny encoder."""

from __future__ import annotations

import logging
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import heedful
from heedful.data.times import read_times
from heedful.errors import UserError
from heedful.evaluation.metrics import METRICS
from heedful.inference.abstention import make_rule
from heedful.inference.predictor import LinearPredictor
from heedful.options.solve import SolveOptions
from heedful.options.training import AdaptOptions
from heedful.runs.config import load_adapt_config
from heedful.runs.directory import Run
from heedful.runs.leases import Lease
from heedful.runs.schemas import Metrics
from heedful.runs.studies import Configuration, StudyFolder, StudyRecord
from heedful.solve import answer as answer_module
from heedful.solve import closing, plan, probes, request, runner, worker
from heedful.solve.candidates import CANDIDATES, DataFacts, Speed
from heedful.solve.choice import Cost, ScoredCandidate, ScoredCandidates, choose
from heedful.solve.expectations import expect_scores
from heedful.solve.insight import LongTextScores
from heedful.solve.plan import Budget, choose_folds, limit_rows, make_plan, plan_candidate
from heedful.solve.process import LostProcessError, TimeOverError, TrainingProcess
from heedful.solve.state import SLOWNESS, SolveState
from heedful.training.run_task import load_run_task
from solve_worker import WorkerInThisProcess, use_worker
from tiny import make_model, make_task

FACTS = DataFacts({"train": 1600, "dev": 200, "test": 200}, labels=2)
SPEED = Speed(train_row=0.03, forward_row=0.01, epochs=3, lr=1e-4)
BY_NAME = {candidate.name: candidate for candidate in CANDIDATES}


BUDGET = Budget(FACTS, SPEED)
RESULTS: Any = SimpleNamespace(splits={"dev": SimpleNamespace(baselines=None)})


@pytest.mark.parametrize("folds", [0, 5])
def test_the_plan_fits_in_the_time_and_says_what_it_leaves_out(folds: int) -> None:
    budget = replace(BUDGET, folds=folds)
    for seconds in (1.0, 30.0, 100.0, 200.0, 5000.0):
        entries = make_plan(CANDIDATES, budget, seconds)
        assert sum(entry.seconds for entry in entries if entry.planned) <= seconds
        left = seconds - sum(entry.seconds for entry in entries if entry.planned)
        for entry in (entry for entry in entries if not entry.planned):
            assert "would be left" in entry.reason
            assert entry.seconds > left
    assert all(entry.planned for entry in entries)
    assert not any(entry.planned for entry in make_plan(CANDIDATES, budget, 1.0) if entry.candidate.encoder)


def test_words_of_a_few_hundred_rows_are_planned_in_what_a_slow_machine_has_of_a_minute() -> None:
    facts = DataFacts({"train": 271, "dev": 29, "test": 600}, labels=6)
    budget = Budget(facts, Speed(train_row=0.026, forward_row=0.007), folds=2)
    assert plan_candidate(BY_NAME["tfidf"], budget, 20.0).planned


def test_words_are_tried_though_they_are_not_expected_to_fit_where_nothing_else_answers(
    problem: dict[str, str],
    in_process: type[WorkerInThisProcess],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(plan, "UNMEASURED_SHARE", 1e-9)
    in_process.failing["pilot"] = TimeOverError()
    wanted = replace(options(problem, tmp_path / "solved"), candidates=("majority", "tfidf", "head"))
    assert runner.solve(wanted)[1].facts["chosen"] == "tfidf"
    slow = Budget(replace(FACTS, rows={"train": 200_000, "dev": 9, "test": 9}), SPEED)
    rows = plan.plan_anyway(BY_NAME["tfidf"], slow).settings["train_rows"]
    assert 60 <= rows < 2000  # what is read in about a second


def test_fine_tuning_is_shortened_to_the_time_and_a_slower_machine_shortens_it_further() -> None:
    steps = []
    for seconds, slowness in ((1000, 1.0), (150, 1.0), (150, 1.5), (150, 3.0), (150, 30.0)):
        entry = plan_candidate(BY_NAME["full"], replace(BUDGET, slowness=slowness), seconds)
        settings = entry.settings
        steps.append(settings.get("epochs", 0) * settings.get("train_rows", FACTS.train))
    assert steps == sorted(set(steps), reverse=True)
    assert steps[0] == SPEED.epochs * FACTS.train
    assert steps[-1] == 0


def test_another_rate_has_all_rows_or_is_left_out() -> None:
    shortened = []
    for seconds in (10, 20, 40, 80, 160):
        first, other = (plan_candidate(BY_NAME[name], BUDGET, seconds) for name in ("full", "full-fast"))
        shortened.append("train_rows" in first.settings)
        assert "train_rows" not in other.settings
        assert not (shortened[-1] and other.planned)
    assert any(shortened)


def test_a_large_dev_and_test_are_sampled_and_a_small_dev_is_completed_by_folds() -> None:
    large = DataFacts({"train": 10**5, "dev": 10**4, "test": 10**4}, labels=2)
    limited = limit_rows(large, SPEED, minutes=10)
    assert (limited.dev, limited.test) == (2400, 6000)
    assert limit_rows(FACTS, SPEED, minutes=1).rows == FACTS.rows
    assert choose_folds(CANDIDATES, Budget(large, SPEED), 600) == 0
    assert choose_folds(CANDIDATES, BUDGET, 6000) == 5
    assert choose_folds(CANDIDATES, BUDGET, 350) < 5
    by_time, few_groups = replace(FACTS, timed=True, units=500), replace(FACTS, units=9)
    assert (
        choose_folds(CANDIDATES, Budget(by_time, SPEED), 6000) == 3
    )  # earlier folds have few rows to train on
    assert choose_folds(CANDIDATES, Budget(few_groups, SPEED), 6000) == 0


def test_without_an_encoder_its_candidates_are_left_out_with_the_reason() -> None:
    budget = Budget(FACTS, no_encoder="minilm is not installed")
    entries = make_plan(CANDIDATES, budget, 600)
    assert {entry.reason for entry in entries if entry.candidate.encoder} == {"minilm is not installed"}
    lines = plan.describe_plan(entries, budget, 10)
    assert [line for line in lines if "not installed" in line] == [
        "  head, head-words, contrastive, top-layers, full, full-fast, full-slow are left out: "
        "minilm is not installed"
    ]


def test_words_and_states_are_fitted_together_only_where_the_rows_fit_in_memory() -> None:
    many = replace(FACTS, rows={**FACTS.rows, "train": 30_000})
    assert "at most 20,000" in plan_candidate(BY_NAME["head-words"], Budget(many, SPEED), 1e6).reason
    joint, alone = (plan_candidate(BY_NAME[name], BUDGET, 1e6).seconds for name in ("head-words", "head"))
    assert joint > alone


def candidate(name: str, right: int, ms: float, megabytes: float = 90, n: int = 400) -> ScoredCandidate:
    predicted = np.array(["yes"] * right + ["no"] * (n - right), dtype=object)
    return ScoredCandidate(name, name, predicted, Cost(1.0, ms, megabytes))


@pytest.mark.parametrize(("prefer", "chosen"), [
    (None, "head"),  # faster than full and within a standard error of it; bag is worse
    ("accuracy", "full"),
    ("speed", "head"),
    ("small", "head"),
])  # fmt: skip
def test_the_cheapest_of_those_that_cannot_be_told_apart_is_chosen(prefer: Any, chosen: str) -> None:
    candidates = (candidate("bag", 300, 0.1, 2), candidate("head", 379, 10, 50), candidate("full", 380, 40))
    scored = ScoredCandidates(candidates, np.array(["yes"] * 400, dtype=object), METRICS["accuracy"])
    choice = choose(scored, prefer)
    assert (choice.chosen, choice.best) == (chosen, "full")
    assert choice.comparisons["bag"].differs
    assert not choice.comparisons["head"].differs


def test_with_few_rows_a_cheaper_candidate_needs_nearly_the_same_score() -> None:
    labels = np.array(["yes"] * 60, dtype=object)
    dear = candidate("full", 45, 40, 90, 60)
    for right, chosen in ((44, "tfidf"), (42, "full")):  # a standard error is five rows
        scored = ScoredCandidates((candidate("tfidf", right, 0.1, 2, 60), dear), labels, METRICS["accuracy"])
        assert choose(scored).chosen == chosen


def test_every_candidate_has_an_expectation() -> None:
    for labels in (2, 77):
        facts = replace(FACTS, labels=labels)
        names = [*(c.name for c in CANDIDATES), "full-whole", "ensemble", "ensemble-2"]
        expected = expect_scores(names, facts)
        assert list(expected) == names
        assert expected["full"].difference == 0
        assert expected["majority"].difference < expected["tfidf"].difference < expected["head"].difference


@pytest.mark.parametrize(("n", "chosen"), [(40, "full"), (4000, "head")])
def test_few_held_out_rows_count_less_than_what_other_tasks_have_shown(n: int, chosen: str) -> None:
    """The head is right about five in a hundred more rows than full fine-tuning."""
    facts = replace(FACTS, rows={"train": 50, "dev": n})
    candidates = (candidate("head", n * 75 // 100, 10, n=n), candidate("full", n * 70 // 100, 10, n=n))
    labels, prior = np.array(["yes"] * n, dtype=object), expect_scores(["head", "full"], facts)
    scored = ScoredCandidates(candidates, labels, METRICS["accuracy"], prior=prior)
    choice = choose(scored)
    assert (choice.chosen, choice.best) == (chosen, "head")
    lines = list(answer_module.explain_choice(scored, choice, None))
    assert any("is expected to be better" in line for line in lines) == (chosen == "full")


def test_of_equally_fast_candidates_the_better_one_is_chosen_though_they_cannot_be_told_apart() -> None:
    candidates = (candidate("head", 378, 10), candidate("full", 380, 11))
    scored = ScoredCandidates(candidates, np.array(["yes"] * 400, dtype=object), METRICS["accuracy"])
    assert choose(scored).chosen == "full"


@pytest.mark.parametrize("prefer", [None, "speed", "small", "accuracy"])
def test_the_most_frequent_label_never_wins_against_a_candidate_that_is_shown_to_be_better(
    prefer: Any,
) -> None:
    majority = replace(candidate("majority", 3800, 0.001, 0.001, 4000), baseline=True)
    others = (candidate("tfidf", 3859, 0.1, 2, 4000), candidate("full", 3860, 40, 90, 4000))
    scored = ScoredCandidates(
        (majority, *others), np.array(["yes"] * 4000, dtype=object), METRICS["accuracy"]
    )
    choice = choose(scored, prefer)
    assert choice.comparisons["majority"].differs
    assert choice.chosen == ("full" if prefer == "accuracy" else "tfidf")
    assert list(choice.scores) == ["full", "tfidf", "majority"]
    assert answer_module.is_shown_useful(choice, RESULTS)


def test_the_most_frequent_label_is_chosen_only_where_no_score_is_better() -> None:
    majority = replace(candidate("majority", 380, 0.001, 0.001), title="always x", baseline=True)
    labels = np.array(["yes"] * 400, dtype=object)
    better = ScoredCandidates((majority, candidate("full", 381, 40)), labels, METRICS["accuracy"])
    assert choose(better).chosen == "full"
    assert not answer_module.is_shown_useful(choose(better), RESULTS)
    picture = answer_module.draw_costs(better, choose(better), RESULTS, FACTS)
    assert [point["label"] for point in picture.data] == ["full"]
    assert picture.options["levels"] == {"most frequent label": 0.95}  # the score on the rows of the others
    scored = ScoredCandidates((majority, candidate("full", 379, 40)), labels, METRICS["accuracy"])
    choice = choose(scored)
    assert choice.chosen == "majority"
    assert not answer_module.is_shown_useful(choice, RESULTS)
    assert answer_module.find_majority(choice, RESULTS) == 0.95
    lines = [
        *answer_module.explain_choice(scored, choice, None),
        *answer_module.suggest_rows(majority, scored.metric, FACTS),
    ]
    assert len(lines) == 1
    assert "--metric macro_f1" in lines[0]


@pytest.mark.parametrize(("costs", "prefer", "sentence"), [
    (((1.0, 50), (1.3, 90)), "speed", "takes 1.3 times the time per text"),
    (((1.0, 50), (1.0, 90)), "speed", "takes 1.8 times the memory"),
    (((10.0, 50), (40.0, 90)), "speed", "takes 4 times the time per text"),
    (((10.0, 90), (40.0, 90)), "small", "takes 4 times the time per text"),
    (((10.0, 90), (10.0, 90)), "small", "takes about the same "),
])  # fmt: skip
def test_the_choice_of_a_cheaper_model_is_explained_truly(costs: Any, prefer: str, sentence: str) -> None:
    (chosen_cost, best_cost), n = costs, 4000
    candidates = (candidate("head", 3600, *chosen_cost, n), candidate("full", 3700, *best_cost, n))
    scored = ScoredCandidates(candidates, np.array(["yes"] * n, dtype=object), METRICS["accuracy"])
    choice = replace(choose(scored), chosen="head")
    (line,) = answer_module.explain_choice(scored, choice, prefer)
    assert "Full is better, but not shown to be by more than 0.02 (0.925 against 0.900" in line
    assert sentence in line


def test_less_training_than_usual_and_a_sampled_dev_are_said(tmp_path: Path) -> None:
    runs = {"full": {"epochs": 2, "train_rows": 900}, "top-layers": {"epochs": 3}, "head": {}}
    configurations = tuple(Configuration(name, settings) for name, settings in runs.items())
    StudyFolder(tmp_path).write(StudyRecord("solve", "which?", 0, {}, configurations))
    costs = {"full": Cost(1, 1, 1), "top-layers": Cost(1, 1, 1, cut=True), "head": Cost(1, 1, 1)}
    state = SolveState(speed=SPEED, costs=costs, dev_rows=150)
    shortened = answer_module.describe_shortening(StudyFolder(tmp_path), state, FACTS)
    less = "only 900 of 1,600 training rows, only 2 of 3 epochs"
    assert shortened == {"full": less, "top-layers": "cut short"}
    candidates = (candidate("head", 140, 1, n=150), candidate("full", 141, 1, n=150))
    scored = ScoredCandidates(candidates, np.array(["yes"] * 150, dtype=object), METRICS["accuracy"])
    rows = answer_module.describe_rows(scored, state, FACTS)
    assert rows == "150 of 200 rows of dev"
    table = answer_module.list_candidates(scored, choose(scored), state, rows, shortened)
    assert table.title == "candidates, scored on 150 of 200 rows of dev"
    assert table.rows[0][-1] == f"full, {less}, chosen"


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("solve")
    return {"model": str(make_model(folder / "model")), "task": str(make_task(folder / "task"))}


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> type[WorkerInThisProcess]:
    return use_worker(monkeypatch)


def options(problem: dict[str, str], out: Path, **others: Any) -> SolveOptions:
    return SolveOptions(**problem, out=out, threads=1, candidates=("head", "full"), **others)


def test_a_solution_is_used_like_a_run_and_continues(
    problem: dict[str, str],
    in_process: type[WorkerInThisProcess],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    out = tmp_path / "solved"
    in_process.failing["full"] = KeyboardInterrupt()
    answer = runner.solve(options(problem, out))[1]
    assert not answer.finished
    assert answer.facts["chosen"] == "head"
    assert "test has not been scored" in answer.summary[0]
    assert heedful.load(out).predict(["a lovely film"])  # the best so far is whole

    in_process.failing.clear()
    before = (out / "runs/head/results.json").stat().st_mtime_ns
    answer = runner.solve(options(problem, out))[1]
    assert answer.finished
    assert set(answer.facts["dev"]) == {"head", "full"}
    chosen, other = answer.facts["chosen"], ({"head", "full"} - {answer.facts["chosen"]}).pop()
    assert answer.summary[0].endswith("on 20 rows of test.")
    assert (out / "runs" / chosen / "best").is_dir()
    assert not (out / "runs" / other / "best").exists()
    assert not (out / "runs" / other / "predictions_test.jsonl").exists()
    if other == "head":
        assert (out / "runs/head/results.json").stat().st_mtime_ns == before  # not trained again
    assert [row[0] for row in answer.tables[0].rows] == sorted(
        answer.facts["dev"], key=answer.facts["dev"].get, reverse=True
    ) or answer.facts["dev"]["head"] == answer.facts["dev"]["full"]
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "milliseconds per text" in page
    assert "What more labels would bring" in page
    assert SolveState.read(out).long_texts == LongTextScores(0.0, 32)
    assert any(line.startswith("  More labels: with embeddings and ") for line in answer.summary)
    commands = [line for line in answer.summary if line.startswith("  heedful ")]
    assert [line.split()[1] for line in commands] == [
        "predict",
        "serve",
        "export",
        "explain",
        "check",
        "report",
    ]
    assert f"  heedful check {out}" in commands
    assert not list(out.rglob("bag_of_words*"))  # tfidf is a candidate
    for run, split in ((out / "runs" / other, "dev"), (out, "test")):
        assert set(Run.open(run).read_results().splits[split].baselines or {}) == {"chance", "majority"}
    names = {check.name for check in Run.open(out / "runs/full").read_checks().checks}
    assert "evaluation_size" in names
    assert "beats_bag_of_words" not in names
    assert heedful.evaluate(out, split="test").value == answer.facts["test"]
    assert runner.solve(options(problem, out))[1] == answer  # nothing is left to do
    refitted = "After its selection it was fitted again on train and dev (90 rows); test scores that model."
    not_again = "It was not fitted again on train and dev: dev selected its training step."
    assert (refitted if chosen == "head" else not_again) in answer.summary

    unlabeled = tmp_path / "more.txt"
    unlabeled.write_text("".join(f"a lovely plot number {i}\n" for i in range(60)), encoding="utf-8")
    listed = runner.solve(options(problem, out, unlabeled=unlabeled))[1]
    (table,) = [table for table in listed.tables if "rows to label next" in table.title]
    assert len(table.rows) == 50
    assert len((out / "label-next.csv").read_text(encoding="utf-8").splitlines()) == 61
    assert any(str(out / "label-next.csv") in line for line in listed.summary)
    assert runner.solve(options(problem, out, unlabeled=unlabeled))[1] == listed
    others = shutil.copy(unlabeled, tmp_path / "others.txt")
    replace(SolveState.read(out), spent=60 * SolveOptions.minutes).write(out)
    with caplog.at_level(logging.INFO, "heedful"):
        assert runner.solve(options(problem, out, unlabeled=others))[1] == listed
    assert caplog.messages == [closing.NOT_LISTED]  # nothing was tried or measured
    with pytest.raises(UserError, match="no such file"):
        runner.solve(options(problem, out, unlabeled=tmp_path / "nothing.txt"))


def test_a_choice_whose_weights_were_removed_is_made_again_or_replaced(
    problem: dict[str, str],
    in_process: type[WorkerInThisProcess],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    out = tmp_path / "solved"
    request = replace(options(problem, out), candidates=("tfidf", "head-words"))
    request = replace(request, long_texts="head-tail")
    choices = ["tfidf"]

    def choose_first(scored: ScoredCandidates, prefer: Any) -> Any:
        names = [c.name for c in scored.candidates]
        return replace(choose(scored, prefer), chosen=next(n for n in (*choices, *names) if n in names))

    for module in (runner, answer_module):
        monkeypatch.setattr(module, "choose", choose_first)
    assert runner.solve(request)[1].facts["chosen"] == "tfidf"
    assert Run.open(out / "runs/head-words").read_config()["adapt"]["long_texts"] == "head-tail"
    assert not (out / "runs/head-words/best").exists()
    choices[:] = ["head-words"]  # as other candidates and folds may decide

    def begin(options: dict[str, Any], seconds: float) -> Any:
        Path(options["out"]).mkdir()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setitem(worker.ACTIONS, "train", begin)
        answer = runner.solve(replace(request, minutes=11))[1]
    assert not answer.finished
    assert answer.facts["chosen"] == "tfidf"
    assert not (out / "runs/head-words-again").exists()
    in_process.failing["head-words-again"] = TimeOverError()
    answer = runner.solve(replace(request, minutes=11))[1]
    assert answer.finished
    assert answer.facts["chosen"] == "tfidf"
    assert "its weights were removed" in answer.facts["left_out"]["head-words"]
    assert heedful.load(out).predict(["a lovely film"])

    in_process.failing.clear()
    answer = runner.solve(replace(request, minutes=12))[1]
    assert answer.facts["chosen"] == "head-words"
    assert heedful.evaluate(out, split="test").value == answer.facts["test"]
    assert not (out / "runs/tfidf/best").exists()
    assert not (out / "runs/head-words-again").exists()

    choices[:] = ["tfidf"]  # what was fitted again is fitted once more
    answer = runner.solve(replace(request, minutes=13))[1]
    assert Run.open(out).path == out / "runs/tfidf-refitted"
    assert heedful.evaluate(out, split="test").value == answer.facts["test"]
    assert any("test was scored for 2 candidates: tfidf, head-words" in note.text for note in answer.notes)


def test_a_shortened_candidate_is_trained_again_as_a_whole_with_more_minutes(
    problem: dict[str, str],
    in_process: type[WorkerInThisProcess],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    request = replace(options(problem, tmp_path / "solved"), candidates=("head",))
    with monkeypatch.context() as patch:
        short = plan.PlanEntry(BY_NAME["head"], 5.0, {"train_rows": 40}, run_seconds=5.0)
        patch.setattr(runner, "plan_candidate", lambda *_: short)
        answer = runner.solve(request)[1]
    assert "only 40 of 60 training rows" in answer.tables[0].rows[0][-1]
    assert any("head (only 40 of 60 training rows)" in note.text for note in answer.notes)
    in_process.failing["head-whole"] = SystemExit()
    with pytest.raises(SystemExit):  # killed half way: the former answer is not that of 11 minutes
        runner.solve(replace(request, minutes=11))
    in_process.failing.clear()
    answer = runner.solve(replace(request, minutes=11))[1]
    assert set(answer.facts["dev"]) == {"head", "head-whole"}
    assert not any("only 40 of 60" in note.text for note in answer.notes)
    whole = Run.open(tmp_path / "solved/runs/head-whole").read_config()["adapt"]
    assert "train_rows" not in whole


def test_a_second_attempt_is_planned_only_as_a_whole() -> None:
    again = replace(BY_NAME["full"], whole=True)
    assert plan_candidate(BY_NAME["full"], BUDGET, 100).planned
    assert "would be left" in plan_candidate(again, BUDGET, 100).reason
    assert plan_candidate(again, BUDGET, 1000).is_whole(BUDGET)


def test_a_candidate_that_fails_is_left_out_with_its_reason(
    problem: dict[str, str], in_process: type[WorkerInThisProcess], tmp_path: Path
) -> None:
    failures = {
        "contrastive": (TimeOverError(), "was not finished in time"),
        "full": (LostProcessError("its process was killed"), "failed: its process was killed"),
    }
    in_process.failing.update({name: failure for name, (failure, _) in failures.items()})
    names = ("head", *failures)
    answer = runner.solve(replace(options(problem, tmp_path / "solved"), candidates=names))[1]
    reasons = {name: reason for name, (_, reason) in failures.items()}
    assert answer.facts["left_out"] == reasons
    assert answer.facts["chosen"] == "head"
    rows = answer.tables[0].rows
    assert {row[0]: row[-1] for row in rows[1:]} == {n: f"left out: {why}" for n, why in reasons.items()}


def test_another_rate_is_stopped_where_it_is_behind_and_continues_where_it_is_not(
    problem: dict[str, str], in_process: type[WorkerInThisProcess], tmp_path: Path
) -> None:
    out = tmp_path / "solved"
    in_process.failing["full-slow"] = {"behind": "was behind full"}
    names = ("full", "full-fast", "full-slow")
    answer = runner.solve(replace(options(problem, out), candidates=names))[1]
    assert answer.facts["left_out"].pop("full-slow") == "was behind full"
    in_process.failing["full-slow"] = {"error": "is not asked for again"}
    again = runner.solve(replace(options(problem, out), candidates=names, minutes=11))[1]
    assert again.facts["left_out"]["full-slow"] == "was behind full"

    known = [row for row in Run.open(out / "runs/full").read_metrics() if row.split == "dev"]
    early, *_, last = known
    assert early.step < last.step / 3
    worse = {row.step: replace(row, value=(row.value or 0.0) - 0.01) for row in known}
    follow = worker.follow_rival(out / "runs/full")
    follow(worse[early.step])  # too early to tell
    third = next(row for row in known if row.step >= last.step / 3)
    with pytest.raises(worker.BehindError, match=f"behind full after {third.step} of {last.step} steps"):
        follow(worse[third.step])
    follow = worker.follow_rival(out / "runs/full")
    for row in known:  # as good as the rival at every point
        follow(row)


def test_a_small_dev_is_completed_by_folds_that_are_ordinary_runs(
    problem: dict[str, str],
    in_process: type[WorkerInThisProcess],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(plan, "LEAST_DEV", 300)
    monkeypatch.setattr(plan, "FOLD_COUNTS", (2,))
    out = tmp_path / "solved"
    request = replace(options(problem, out), candidates=("head",))
    in_process.failing["head-fold2"] = KeyboardInterrupt()
    answer = runner.solve(request)[1]
    assert answer.tables[0].title == "candidates, scored on 30 rows of dev"
    assert not (out / "runs/head-fold1/best").exists()
    in_process.failing["head-fold2"] = TimeOverError()  # one fold is too few: it would take them from others
    answer = runner.solve(request)[1]
    assert answer.facts["left_out"] == {}
    assert [(row[0], row[-1].endswith("without folds")) for row in answer.tables[0].rows] == [("head", True)]
    assert heedful.load(out).predict(["a lovely film"])

    in_process.failing["head-fold2"] = {}
    in_process.failing["head"] = {"error": "is not asked for again"}
    answer = runner.solve(replace(request, minutes=11))[1]
    assert answer.tables[0].title == "candidates, scored on 54 rows of dev and 2 folds"  # 30, and 2/5 of 60
    main, fold = (Run.open(out / "runs" / name).read_config()["adapt"] for name in ("head", "head-fold2"))
    assert fold["fold"] == "2/5"
    assert main["class_weights"] == fold["class_weights"]
    assert not (out / "runs/head-fold2/best").exists()
    assert answer.runs == ("runs/head-refitted", "runs/head")


@pytest.mark.parametrize(("settings", "last", "cut"), [
    ({"epochs": 3}, Metrics(30, 3.0, "dev"), False),
    ({"epochs": 3}, Metrics(20, 2.0, "dev"), True),
    ({"epochs": 3, "steps": 40}, Metrics(40, 1.5, "dev"), False),  # contrastive tuning counts steps
    ({"epochs": 1, "steps": 40}, Metrics(20, 1.5, "dev"), True),
    ({}, None, False),  # no steps at all
])  # fmt: skip
def test_a_run_was_cut_if_its_last_epoch_or_step_is_missing(
    settings: dict[str, int], last: Metrics | None, cut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = SimpleNamespace(
        read_config=lambda: {"adapt": settings}, read_metrics=lambda: [last] if last else []
    )
    monkeypatch.setattr(Run, "open", lambda folder: run)
    assert worker.was_cut(Path()) == cut


def test_mistakes_are_one_line(
    problem: dict[str, str], in_process: type[WorkerInThisProcess], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match='unknown candidate "hed"; did you mean "head"'):
        runner.solve(SolveOptions(**problem, candidates=("hed",)))
    with pytest.raises(UserError, match=r"at least 0\.5"):
        runner.solve(SolveOptions(**problem, minutes=0.1))
    with pytest.raises(UserError, match="no model folder"):
        runner.solve(options({**problem, "model": "./nowhere"}, tmp_path / "no"))
    with pytest.raises(UserError, match="full-fast: is tried only after full; name full too"):
        runner.solve(SolveOptions(**problem, candidates=("full-fast",)))
    own = tmp_path / "own"
    own.mkdir()
    for name in ("report.html", "plan.json", "chosen.json"):
        (own / name).write_text("{}", encoding="utf-8")
    with pytest.raises(UserError, match="holds files but no study"):
        runner.solve(options(problem, own, overwrite=True))
    assert len(list(own.iterdir())) == 3
    in_process.failing.update(head=TimeOverError(), full={"error": "is broken"})
    with pytest.raises(
        UserError,
        match=r"no candidate could be finished: head \(was not .*\), full \(failed: is broken\)$",
    ):
        runner.solve(options(problem, tmp_path / "broken"))
    in_process.failing.update(head=TimeOverError(), full=TimeOverError())
    short = replace(
        options(problem, tmp_path / "short", minutes=0.5), candidates=("majority", "head", "full")
    )
    with pytest.raises(UserError, match=r"0\.5 minutes are too short: head \(was not finished in time\)"):
        runner.solve(short)  # the most frequent label alone is no answer
    assert (tmp_path / "short/runs/majority/results.json").is_file()
    lease = Lease.claim(tmp_path / "short/leases/solve", "another", 60)
    assert lease is not None
    with pytest.raises(UserError, match="another process is working on it"):
        runner.solve(options(problem, tmp_path / "short", overwrite=True))
    assert (tmp_path / "short/plan.json").is_file()


def test_the_learning_curve_is_measured_on_the_same_held_out_rows_or_not_at_all(
    problem: dict[str, str],
) -> None:
    options = AdaptOptions(**{**problem, "model": "tfidf"}, score_test=False)
    curve = probes.measure_curve(options, labels=60, folds=2, seconds=60)
    assert curve is not None
    assert [point.labels for point in curve.points] == [12, 24, 48]
    assert curve.held_out == 30 + 24
    assert curve.curve.size == 120
    whole = probes.measure_curve(options, labels=60, folds=0, seconds=60)
    assert whole is not None
    run = probes.WordsProbe(options).job
    assert whole.points[-1].score == run.score(LinearPredictor(run.fit()), "dev").value
    assert probes.measure_curve(options, labels=60, folds=0, seconds=0) is None
    assert probes.choose_sizes(60, 20) == []


def test_with_times_nothing_is_measured_by_learning_from_the_future(tmp_path: Path) -> None:
    rows = [f"text {i} {'ab'[i % 2]},{'ab'[i % 2]},{i}" for i in range(150)]
    (tmp_path / "rows.csv").write_text("\n".join(["text,label,when", *rows]) + "\n")
    options = AdaptOptions(task=str(tmp_path / "rows.csv"), model="tfidf", time="when", score_test=False)
    probe = probes.WordsProbe(options)
    (_, split, _), *folds = probes.hold_out(probe, 5)
    assert split == "dev"
    assert [(len(learned), len(held_out)) for learned, _, held_out in folds] == [
        (100, 20),
        (80, 20),
        (60, 20),
    ]
    when = read_times(probe.splits["train"].rows, probe.splits["train"].index)
    for number, (learned, split, held_out) in enumerate(folds, 1):
        assert split == "train"
        assert when[learned].max() < when[held_out].min()
        fold = probes.WordsProbe(replace(options, fold=f"{number}/5")).splits
        texts = list(probe.splits["train"].texts)
        assert [texts[row] for row in learned] == list(fold["train"].texts)  # those of the candidates
        assert [texts[row] for row in held_out] == list(fold["dev"].texts)
    few = probes.WordsProbe(replace(options, train_rows=60))
    assert all(
        set(learned) | set(held_out) <= set(few.rows) for learned, _, held_out in probes.hold_out(few, 5)[1:]
    )


def test_candidates_leave_time_for_the_end_if_it_is_enough_to_measure_something() -> None:
    assert closing.reserve_closing(1) == 0
    assert closing.reserve_closing(10) == pytest.approx(18)


ECHO = """
import json, os, signal, sys, time
print(json.dumps({"ready": True}), flush=True)
for line in sys.stdin:
    request = json.loads(line)
    if request["do"] == "sleep":
        time.sleep(60)
    if request["do"] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if request["do"] == "leave":
        sys.exit(3)
    print(json.dumps(request), flush=True)
"""


def test_a_process_that_is_late_or_dies_is_replaced_by_another(tmp_path: Path) -> None:
    looks: list[int] = []
    with TrainingProcess(tmp_path / "logs/log.txt", 1, ("-c", ECHO)) as process:
        assert process.ask(60, lambda: looks.append(1), do="echo", x=1) == {"do": "echo", "x": 1}
        assert looks
        assert process.startup > 0
        begun = time.monotonic()
        with pytest.raises(TimeOverError):
            process.ask(0.3, do="sleep")
        assert time.monotonic() - begun < 10
        assert process.ask(60, do="echo") == {"do": "echo"}
        with pytest.raises(LostProcessError, match="short of memory"):
            process.ask(60, do="die")
        with pytest.raises(LostProcessError, match="status 3"):
            process.ask(60, do="leave")
        process.ask(60, do="echo")
        running = process.process
    assert running is not None
    assert running.poll() is not None  # ended with the `with`


def test_the_start_of_the_process_is_not_part_of_the_time_of_a_run(
    problem: dict[str, str],
    in_process: type[WorkerInThisProcess],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits = []

    def start_slowly(self: WorkerInThisProcess, limit: float, look: Callable[[], None]) -> None:
        self.startup = 20.0

    def answer(
        self: WorkerInThisProcess, limit: float, look: Callable[[], None], **asked: Any
    ) -> dict[str, str]:
        limits.append(limit)
        raise TimeOverError

    monkeypatch.setattr(in_process, "get_ready", start_slowly)
    monkeypatch.setattr(in_process, "ask", answer)
    wanted = replace(options(problem, tmp_path / "late", minutes=1), candidates=("majority",))
    with pytest.raises(UserError, match="too short"):
        runner.solve(wanted)
    assert limits[0] == pytest.approx(20, abs=0.1)  # less would cost as much: another start


def test_an_encoder_that_is_too_slow_to_be_measured_leaves_time_for_the_others(
    problem: dict[str, str], in_process: type[WorkerInThisProcess], tmp_path: Path
) -> None:
    in_process.failing["pilot"] = TimeOverError()
    wanted = replace(options(problem, tmp_path / "solved"), candidates=("tfidf", "head"))
    folder, answer = runner.solve(wanted)
    assert answer.facts["chosen"] == "tfidf"
    assert "half of the time was over" in answer.facts["left_out"]["head"]
    assert SolveState.read(folder.path).speed is None
    in_process.failing.clear()  # with more minutes it is measured again
    answer = runner.solve(replace(wanted, minutes=wanted.minutes + 1))[1]
    assert "head" in answer.facts["dev"]
    in_process.failing["pilot"] = TimeOverError()
    with pytest.raises(UserError, match=r"^the time was over before"):
        runner.solve(replace(options(problem, tmp_path / "alone"), candidates=("head",)))


def test_a_run_past_its_deadline_ends_with_what_it_has_scored(
    problem: dict[str, str], tmp_path: Path
) -> None:
    table = {**problem, "out": str(tmp_path / "run"), "epochs": 40, "eval_every": 2, "precision": "float32"}
    cost = worker.train_candidate({**table, "threads": 1, "score_test": False}, seconds=0.0)
    assert cost["cut"]
    run = Run.open(tmp_path / "run")
    assert {row.step for row in run.read_metrics()} == {0}  # the fitted head is a model
    assert run.read_results().best_step == 0
    assert run.best.is_dir()


def test_the_estimator_solves_too(
    problem: dict[str, str], in_process: type[WorkerInThisProcess], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(request, "CANDIDATES", [BY_NAME["head"]])
    texts, labels = ["lovely warm film", "rude cold plot", "kind music", "dull silly end"] * 20, [1, 0] * 40
    texts = [f"{text} {i}" for i, text in enumerate(texts)]
    estimator = heedful.TextClassifier(problem["model"], method="auto", minutes=2, threads=1)
    assert estimator.fit(texts, labels).predict(texts[:3]).shape == (3,)
    assert estimator.run_.config["method"] == "head"
    with pytest.raises(UserError, match="holds out none of 80; use a larger dev_share or more rows"):
        estimator.set_params(dev_share=0).fit(texts, labels)
    with pytest.raises(UserError, match='lr: with method="auto"'):
        estimator.set_params(lr=0.1).fit(texts, labels)


def test_groups_are_on_one_side_of_every_split_of_a_solution(
    in_process: type[WorkerInThisProcess], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plan, "LEAST_DEV", 300)
    monkeypatch.setattr(plan, "FOLD_COUNTS", (2,))
    words = {"yes": "lovely warm kind film", "no": "rude cold dull plot"}
    rows = [
        {"text": f"{words[label]} of {author} {i}", "label": label, "author": f"author{author}"}
        for author in range(30)
        for i, label in enumerate(["yes", "no"] * 2)
    ]
    chosen = {"group": "author", "candidates": ["tfidf"], "out": tmp_path / "solved", "threads": 1}
    answer = heedful.solve(rows, **chosen).answer
    notes = [note.text for note in answer.notes]
    assert "split by author: 30 groups" in notes
    assert any(note.startswith("the intervals treat rows as independent") for note in notes)
    for name in ("tfidf", "tfidf-fold1"):
        run = Run.open(tmp_path / "solved/runs" / name)
        assert run.read_config()["adapt"]["group"] == "author"
        held_out = {str(row.text).split()[-2] for row in run.read_predictions("dev")}
        assert len(run.read_predictions("dev")) == 4 * len(held_out)  # whole authors
    assert heedful.evaluate(tmp_path / "solved", split="test").value == answer.facts["test"]
    assert heedful.solve(rows, **chosen).answer == answer


def test_a_linear_choice_is_fitted_again_on_train_and_dev_and_test_is_scored_for_that_alone(
    problem: dict[str, str], in_process: type[WorkerInThisProcess], tmp_path: Path
) -> None:
    out = tmp_path / "solved"
    request = replace(options(problem, out), candidates=("tfidf",))
    in_process.failing["tfidf-refitted"] = KeyboardInterrupt()
    answer = runner.solve(request)[1]
    assert "It was not fitted again on train and dev: it was stopped." in answer.summary
    assert answer.facts["test"] is not None
    in_process.failing["test"] = KeyboardInterrupt()
    answer = runner.solve(replace(request, overwrite=True))[1]
    assert not answer.finished
    assert "test has not been scored" in answer.summary[0]
    assert SolveState.read(out).spent > 0
    assert heedful.load(out).predict(["a lovely film"])
    del in_process.failing["test"]
    in_process.failing["tfidf-refitted"] = {"error": "no memory"}
    answer = runner.solve(replace(request, overwrite=True))[1]
    assert "It was not fitted again on train and dev: it failed (no memory)." in answer.summary
    assert Run.open(out).path == out / "runs/tfidf"
    in_process.failing.clear()
    answer = runner.solve(replace(request, minutes=11))[1]  # test is known: the model stays
    assert Run.open(out).path == out / "runs/tfidf"

    answer = runner.solve(replace(request, overwrite=True))[1]
    assert any("fitted again on train and dev (90 rows)" in line for line in answer.summary)
    first, final = Run.open(out / "runs/tfidf"), Run.open(out)
    assert final.path == out / "runs/tfidf-refitted"
    assert set(first.read_results().splits) == {"dev"}
    assert set(final.read_results().splits) == {"test"}
    assert answer.facts["test"] == final.read_results().splits["test"].value
    train = {
        file: Path(problem["task"], f"{file}.csv").read_text().splitlines()[1:] for file in ("train", "dev")
    }
    task = load_run_task(load_adapt_config(final.path))
    texts = [line.rpartition(",")[0] for lines in train.values() for line in lines]
    assert list(task.splits["train"].texts) == texts
    with pytest.raises(UserError, match=r"--max-risk: .* give .*runs/tfidf, the same model as it was before"):
        make_rule(out, ["no", "yes"], max_risk=0.4)
    assert make_rule(out / "runs/tfidf", ["no", "yes"], max_risk=0.4).by_risk
    assert heedful.predict(out, "a lovely film", max_risk=0.4) == heedful.predict(
        first.path, "a lovely film", max_risk=0.4
    )


def test_a_solution_by_time_trains_on_earlier_rows_than_it_scores(
    in_process: type[WorkerInThisProcess], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(plan, "LEAST_DEV", 300)
    words = {"yes": "lovely warm kind film", "no": "rude cold dull plot"}
    rows = [
        {"text": f"{words[label]} {year}", "label": label, "year": year}
        for year in range(1900, 2000)
        for label in words
    ]
    solved = heedful.solve(rows, time="year", candidates=["tfidf"], out=tmp_path / "solved", threads=1)
    notes = [note.text for note in solved.answer.notes]
    assert "split by year: train until 1979, dev until 1989, test from 1990" in notes
    assert solved.answer.tables[0].title.endswith("dev and 3 folds")
    run = Run.open(tmp_path / "solved/runs/tfidf-fold1")
    assert {str(row.text)[-4:] for row in run.read_predictions("dev")} == {str(y) for y in range(1967, 1980)}
    assert heedful.evaluate(tmp_path / "solved", split="test").value == solved.answer.facts["test"]


def test_a_slow_run_is_believed_at_once_and_a_fast_one_by_half() -> None:
    state = SolveState()
    state.learn_speed(40.0, expected=10.0)
    assert state.slowness == 4
    state.learn_speed(10.0, expected=40.0)
    assert state.slowness == 2
    state.learn_speed(1.0, expected=1000.0)
    assert state.slowness == SLOWNESS[0]


def test_where_folds_decide_a_fine_tuned_choice_is_fitted_again_too(
    problem: dict[str, str],
    in_process: type[WorkerInThisProcess],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(plan, "LEAST_DEV", 300)
    monkeypatch.setattr(plan, "FOLD_COUNTS", (2,))
    answer = runner.solve(replace(options(problem, tmp_path / "solved"), candidates=("full",)))[1]
    assert answer.runs[:2] == ("runs/full-refitted", "runs/full")
    final = Run.open(tmp_path / "solved")
    assert set(final.read_results().splits) == {"test"}
    assert final.read_config()["adapt"]["with_dev"]
    assert heedful.load(tmp_path / "solved").predict(["a lovely film"])
