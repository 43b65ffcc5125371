"""`heedful solve`: the plan, the choice, and a whole solution with a tiny encoder."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import heedful
from heedful.errors import UserError
from heedful.evaluation.metrics import METRICS
from heedful.options.solve import SolveOptions
from heedful.solve import runner, worker
from heedful.solve.candidates import CANDIDATES, DataFacts, Speed
from heedful.solve.choice import Cost, ScoredCandidate, ScoredCandidates, choose
from heedful.solve.plan import Budget, choose_folds, limit_rows, make_plan, plan_candidate
from heedful.solve.process import LostProcessError, TimeOverError
from heedful.training.build import settings
from tiny import make_model, make_task

FACTS = DataFacts({"train": 1600, "dev": 200, "test": 200}, labels=2)
SPEED = Speed(train_row=0.03, forward_row=0.01, epochs=3, lr=1e-4)
BY_NAME = {candidate.name: candidate for candidate in CANDIDATES}


BUDGET = Budget(FACTS, SPEED)


@pytest.mark.parametrize("folds", [0, 5])
def test_the_plan_fits_in_the_time_and_says_what_it_leaves_out(folds: int) -> None:
    budget = replace(BUDGET, folds=folds)
    for seconds in (1.0, 30.0, 100.0, 200.0, 5000.0):
        plan = make_plan(CANDIDATES, budget, seconds)
        assert sum(entry.seconds for entry in plan if entry.planned) <= seconds
        assert all("would be left" in entry.reason for entry in plan if not entry.planned)
    assert all(entry.planned for entry in plan)
    assert not any(entry.planned for entry in make_plan(CANDIDATES, budget, 1.0) if entry.candidate.encoder)


def test_fine_tuning_is_shortened_to_the_time_and_a_slower_machine_shortens_it_further() -> None:
    steps = []
    for seconds, slowness in ((1000, 1.0), (150, 1.0), (150, 1.5), (150, 3.0), (150, 30.0)):
        entry = plan_candidate(BY_NAME["full"], replace(BUDGET, slowness=slowness), seconds)
        settings = entry.settings
        steps.append(settings.get("epochs", 0) * settings.get("train_rows", FACTS.train))
    assert steps == sorted(set(steps), reverse=True)
    assert steps[0] == SPEED.epochs * FACTS.train
    assert steps[-1] == 0


def test_a_large_dev_and_test_are_sampled_and_a_small_dev_is_completed_by_folds() -> None:
    large = DataFacts({"train": 10**5, "dev": 10**4, "test": 10**4}, labels=2)
    limited = limit_rows(large, SPEED, minutes=10)
    assert (limited.dev, limited.test) == (2400, 6000)
    assert limit_rows(FACTS, SPEED, minutes=1).rows == FACTS.rows
    assert choose_folds(CANDIDATES, Budget(large, SPEED), 600) == 0
    assert choose_folds(CANDIDATES, BUDGET, 6000) == 5
    assert choose_folds(CANDIDATES, BUDGET, 350) < 5


def test_without_an_encoder_its_candidates_are_left_out_with_the_reason() -> None:
    plan = make_plan(CANDIDATES, Budget(FACTS, no_encoder="minilm is not installed"), 600)
    assert {entry.reason for entry in plan if entry.candidate.encoder} == {"minilm is not installed"}


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


def test_of_equally_fast_candidates_the_better_one_is_chosen_though_they_cannot_be_told_apart() -> None:
    candidates = (candidate("head", 378, 10), candidate("full", 380, 11))
    scored = ScoredCandidates(candidates, np.array(["yes"] * 400, dtype=object), METRICS["accuracy"])
    assert choose(scored).chosen == "full"


class WorkerInThisProcess:
    """Stands for the training process; what it does not answer in time is decided by the test."""

    failing: ClassVar[dict[str, BaseException | dict[str, str]]] = {}

    def __init__(self, log: Path, threads: int | None) -> None:
        self.startup, self.asked = 0.0, list[str]()

    def start(self) -> None:
        pass

    stop = start

    def ask(self, limit: float, look: Callable[[], None] = lambda: None, /, **request: Any) -> dict[str, Any]:
        look()
        request = json.loads(json.dumps(request, default=str))
        name = Path(request.get("options", {}).get("out", "test")).name
        self.asked.append(name)
        answer = self.failing.get(name)
        if isinstance(answer, BaseException):
            raise answer
        return answer or worker.handle(request)

    def __enter__(self) -> WorkerInThisProcess:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def problem(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("solve")
    return {"model": str(make_model(folder / "model")), "task": str(make_task(folder / "task"))}


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> type[WorkerInThisProcess]:
    monkeypatch.setattr(runner, "TrainingProcess", WorkerInThisProcess)
    monkeypatch.setattr(WorkerInThisProcess, "failing", {})
    monkeypatch.setattr(worker, "PILOT_SECONDS", 0.05)
    monkeypatch.setattr(settings, "LEAST_STEPS", 12)
    return WorkerInThisProcess


def options(problem: dict[str, str], out: Path, **others: Any) -> SolveOptions:
    return SolveOptions(**problem, out=out, threads=1, candidates=("head", "full"), **others)


def test_a_solution_is_used_like_a_run_and_continues(
    problem: dict[str, str], in_process: type[WorkerInThisProcess], tmp_path: Path
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
    assert heedful.evaluate(out, split="test").value == answer.facts["test"]
    assert runner.solve(options(problem, out))[1] == answer  # nothing is left to do


@pytest.mark.parametrize(("failure", "reason"), [
    (TimeOverError(), "was not finished in time"),
    (LostProcessError("its process was killed"), "failed: its process was killed"),
    ({"error": "does not fit in memory"}, "failed: does not fit in memory"),
])  # fmt: skip
def test_a_candidate_that_fails_is_left_out_with_its_reason(
    problem: dict[str, str], in_process: type[WorkerInThisProcess], tmp_path: Path, failure: Any, reason: str
) -> None:
    in_process.failing["full"] = failure
    answer = runner.solve(options(problem, tmp_path / "solved"))[1]
    assert answer.facts["left_out"] == {"full": reason}
    assert answer.facts["chosen"] == "head"
    assert ("full", reason) == (
        answer.tables[0].rows[-1][0],
        answer.tables[0].rows[-1][-1].partition(": ")[2],
    )


def test_mistakes_are_one_line(
    problem: dict[str, str], in_process: type[WorkerInThisProcess], tmp_path: Path
) -> None:
    with pytest.raises(UserError, match='unknown candidate "hed"; did you mean "head"'):
        runner.solve(SolveOptions(**problem, candidates=("hed",)))
    with pytest.raises(UserError, match=r"at least 0\.5"):
        runner.solve(SolveOptions(**problem, minutes=0.1))
    with pytest.raises(UserError, match="no model folder"):
        runner.solve(options({**problem, "model": "./nowhere"}, tmp_path / "no"))
    in_process.failing.update(head=TimeOverError(), full=TimeOverError())
    with pytest.raises(UserError, match=r"0\.5 minutes are too short: head was not finished in time"):
        runner.solve(options(problem, tmp_path / "short", minutes=0.5))
