"""`heedful solve --on slurm`: candidates as jobs of a cluster; here its workers are in the process of the test."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import heedful
from heedful.errors import SubmittedElsewhere, UserError
from heedful.options.launch import StudyLaunchOptions
from heedful.options.solve import SolveOptions
from heedful.runs.directory import Run
from heedful.runs.leases import Lease
from heedful.runs.studies import StudyFolder
from heedful.solve import cluster, plan, runner
from heedful.studies.shared.worker import work
from solve_worker import use_worker
from tiny import make_model, make_task

NAMES = ("majority", "tfidf", "head", "full", "full-fast")


@pytest.fixture
def asked(tmp_path: Path) -> dict[str, Any]:
    problem = {"model": str(make_model(tmp_path / "model")), "task": str(make_task(tmp_path / "task"))}
    return {**problem, "out": tmp_path / "solved", "threads": 1, "minutes": 1.0, "candidates": NAMES}


@pytest.mark.parametrize("folds", [0, 2])
def test_the_last_worker_chooses_among_what_all_have_made(
    folds: int, asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    use_worker(monkeypatch)
    monkeypatch.setattr(plan, "LEAST_DEV", 300 if folds else 10)
    monkeypatch.setattr(plan, "FOLDS", folds or 5)
    monkeypatch.setattr(cluster, "FOLDS", folds or 5)
    given: list[set[str]] = []

    def work_here(folder: StudyFolder, launch: Any, threads: int | None) -> None:
        given.append({c.claim for c in folder.read().configurations})
        work(folder.path, threads)

    monkeypatch.setattr(cluster.cluster, "submit_workers", work_here)
    options = SolveOptions(**asked, launch=StudyLaunchOptions(on="slurm", wait=True))
    out, answer = asked["out"], runner.solve(options)[1]
    assert given == [{"majority", "tfidf", "head", "full"}]
    assert answer.finished
    assert set(answer.facts["dev"]) == set(NAMES)
    assert ("folds" in answer.tables[0].title) == bool(folds)
    usual, fast = (Run.open(out / "runs" / name).read_config()["adapt"] for name in ("full", "full-fast"))
    assert fast["lr"] == 2 * usual["lr"]
    assert answer.summary[0].endswith("on 20 rows of test.")
    assert heedful.load(out).predict(["a lovely film"])
    kept = {path.parent.name.removesuffix("-refitted") for path in out.glob("runs/*/best")}
    assert kept == {answer.facts["chosen"]}
    assert (out / "report.html").is_file()
    assert runner.solve(options)[1] == answer  # no second job
    assert len(given) == 1
    with pytest.raises(UserError, match="without --on the same command continues on this machine"):
        runner.solve(replace(options, minutes=2.0))


def test_a_folder_that_workers_hold_is_left_to_them(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.cluster, "submit_workers", lambda folder, launch, threads: None)
    options = SolveOptions(**asked, launch=StudyLaunchOptions(on="slurm", wait=True))
    with pytest.raises(AssertionError):  # nobody has worked, so that there is no answer
        runner.solve(options)
    lease = Lease.claim(StudyFolder(asked["out"]).lease("head"), "a worker", 60)
    assert lease is not None
    with lease.held():
        for overwrite in (False, True):
            with pytest.raises(UserError, match="another process is working on it"):
                runner.solve(SolveOptions(**asked, overwrite=overwrite))


def test_a_candidate_that_fails_is_left_out_and_a_dry_run_writes_nothing(
    asked: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SubmittedElsewhere, match="--array=0-3"):
        runner.solve(SolveOptions(**asked, launch=StudyLaunchOptions(on="slurm", dry_run=True)))
    assert not asked["out"].exists()

    use_worker(monkeypatch)
    monkeypatch.setattr(
        cluster.cluster, "submit_workers", lambda folder, launch, threads: work(folder.path, threads)
    )

    def fail(*_: Any, **__: Any) -> Any:
        raise MemoryError

    monkeypatch.setattr("heedful.training.train.train_linear", fail)
    answer = runner.solve(
        SolveOptions(
            **asked | {"candidates": ("tfidf", "head")}, launch=StudyLaunchOptions(on="slurm", wait=True)
        )
    )[1]
    assert set(answer.facts["dev"]) == {"head"}
    assert "memory" in answer.facts["left_out"]["tfidf"]
