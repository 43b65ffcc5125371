"""Studies on a real Slurm: a job array of workers, of which one is killed, and all reach their limit."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import ON, SEARCH, Early, Place, processes, restarts, study_traces

from heedful.runs.studies import StudyFolder

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.usefixtures("cluster", "early")]


@pytest.fixture(autouse=True)
def _here(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.path)


def test_a_study_followed_gives_the_answer_of_one_made_here(
    heedful: Callable[..., Any], place: Place, tmp_path: Path
) -> None:
    out = tmp_path / "study"
    told = ["study", "search", "model", "task", *SEARCH, *ON, "--out", out]
    dry = heedful(*told, "--dry-run")
    assert "--array=0-1\n" in dry.out  # no more workers than runs
    assert not out.exists()
    done = heedful(*told, "--wait", "--json")
    assert done.status == 0, done.err
    assert "2 of 2 runs done" in done.err
    here = json.loads((place.whole_study / "answer.json").read_text())
    assert json.loads(done.out)["facts"] == here["facts"]
    assert study_traces(out) == study_traces(place.whole_study)
    again = heedful(*told, "--wait", "--json")  # concluded: no further job
    assert again.out == done.out
    assert restarts(json.loads((out / "jobs/job.json").read_text())["job"]) == 0


def test_a_killed_worker_loses_no_run_and_its_own_is_taken_up(
    heedful: Callable[..., Any],
    place: Place,
    tmp_path: Path,
    jobs: Callable[..., Any],
    wait_for: Callable[..., Any],
) -> None:
    out = tmp_path / "study"
    sent = heedful(
        "study", "search", "model", "task", *SEARCH, *ON, *place.slow(0.5), "--max-parallel", "2", "--out", out,
        "--json",
    )  # fmt: skip
    assert sent.status == 0, sent.err
    facts = json.loads(sent.out)
    assert facts["workers"] == 2
    give_up = time.monotonic() + 90
    while time.monotonic() < give_up and len(list(out.glob("runs/*/metrics.jsonl"))) < 2:
        time.sleep(0.2)  # both are in the middle of a run
    victims = processes(f"{facts['job']}_0")
    assert victims
    for process in victims:
        os.kill(process, signal.SIGKILL)
    job = wait_for(out, "failed", "done")
    assert [(task["state"], task["status"]) for task in job["tasks"]] == [("failed", 137), ("done", 0)]
    assert job["progress"] == "2 of 2 runs"
    assert StudyFolder.open(out).concluded
    (deaths,) = (out / "leases").glob("*.deaths")
    assert json.loads(deaths.read_text()) == {"deaths": 1}
    assert study_traces(out) == study_traces(place.whole_study)


def test_workers_that_hit_their_limit_are_requeued_one_by_one(
    early: Early, place: Place, wait_for: Callable[..., Any]
) -> None:
    job = wait_for(early.study, "done", "failed", "stopped")
    logs = [(early.study / f"jobs/log-{task}.txt").read_text() for task in (0, 1)]
    assert job["state"] == "done", logs
    for task in (0, 1):
        assert f"heedful: job {job['job']}_{task} goes back into the queue (requeue 1 of 9)" in logs[task]
    assert study_traces(early.study) == study_traces(place.whole_study)


def test_the_candidates_of_a_solution_are_tasks_of_a_job_array(
    heedful: Callable[..., Any], place: Place, tmp_path: Path
) -> None:
    out = tmp_path / "solved"
    candidates = ("--candidates", "majority", "tfidf", "head")
    told = ["solve", "task", "--model", "model", "--minutes", "1", *candidates, *ON, "--out", out]
    assert "--array=0-2\n" in heedful(*told, "--dry-run").out
    assert not out.exists()
    done = heedful(*told, "--wait", "--max-parallel", "2", "--json")
    assert done.status == 0, done.err
    answer = json.loads(done.out)
    assert answer["finished"]
    assert set(answer["facts"]["dev"]) == {"majority", "tfidf", "head"}
    assert "rows of test" in answer["summary"][0]
    assert (out / "report.html").is_file()
    assert heedful("predict", out, "a lovely film").status == 0
