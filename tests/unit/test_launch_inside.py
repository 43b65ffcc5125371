"""Inside a job: who is requeued, how often, and the word that is left behind."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from heedful.errors import UserError
from heedful.launch.slurm import batch_job, client
from heedful.runs.environment import usable_cores
from heedful.training.signals import StoppedError

JOB = {"SLURM_JOB_ID": "41", "HEEDFUL_MAX_REQUEUES": "2"}


@pytest.fixture
def requeued(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The jobs that Slurm was asked to requeue."""
    asked: list[str] = []
    monkeypatch.setattr(client, "requeue", asked.append)
    return asked


def leave(folder: Path, error: BaseException | None, status: int = 75, **more: str) -> dict[str, Any]:
    """Do work that ends so, as a job; what it left behind."""
    job = batch_job.BatchJob(str(folder), JOB | more)
    assert job.run(lambda: (status, error)) == status
    name = "ended.json" if job.task is None else f"ended-{job.task}.json"
    return dict(json.loads((folder / name).read_text()))


def test_the_signal_before_the_limit_requeues(tmp_path: Path, requeued: list[str]) -> None:
    left = leave(tmp_path, StoppedError("stopped", signal.SIGUSR1), SLURM_RESTART_COUNT="1")
    assert requeued == ["41"]
    assert left["requeued"]
    assert left["job"] == "41"


def test_the_signal_counts_from_the_first_moment_on(tmp_path: Path, requeued: list[str]) -> None:
    def load() -> tuple[int, BaseException | None]:
        try:
            signal.raise_signal(signal.SIGUSR1)
        except StoppedError as error:
            return 75, error
        return 0, None

    assert batch_job.BatchJob(str(tmp_path), JOB).run(load) == 75
    assert requeued == ["41"]


def test_in_an_array_one_task_is_requeued_not_all(tmp_path: Path, requeued: list[str]) -> None:
    array = {"SLURM_JOB_ID": "44", "SLURM_ARRAY_JOB_ID": "41", "SLURM_ARRAY_TASK_ID": "3"}
    assert leave(tmp_path, StoppedError("stopped", signal.SIGUSR1), **array)["job"] == "41"
    assert requeued == ["41_3"]


@pytest.mark.parametrize("error", [
    StoppedError("stopped", signal.SIGTERM), StoppedError("stopped"), UserError("no such file"), KeyboardInterrupt(), None,
])  # fmt: skip
def test_nothing_else_requeues(tmp_path: Path, requeued: list[str], error: BaseException | None) -> None:
    left = leave(tmp_path, error, 0 if error is None else 2)
    assert requeued == []
    assert not left["requeued"]
    assert left["message"] == str(error or "")


def test_requeues_come_to_an_end(tmp_path: Path, requeued: list[str]) -> None:
    left = leave(tmp_path, StoppedError("stopped", signal.SIGUSR1), SLURM_RESTART_COUNT="2")
    assert requeued == []
    assert left["message"] == "no requeue left of 2; stopped"


@pytest.mark.usefixtures("printed_messages")
def test_a_requeue_that_slurm_refuses_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(job: str) -> None:
        raise client.SlurmError("scontrol: Requested operation is presently disabled")

    monkeypatch.setattr(client, "requeue", refuse)
    left = leave(tmp_path, StoppedError("stopped", signal.SIGUSR1))
    assert not left["requeued"]
    assert "presently disabled; stopped" in left["message"]
    assert "presently disabled" in capsys.readouterr().err


def test_a_crash_leaves_its_reason_and_its_traceback(tmp_path: Path) -> None:
    def crash() -> tuple[int, None]:
        raise ZeroDivisionError("one\ntwo")

    with pytest.raises(ZeroDivisionError):
        batch_job.BatchJob(str(tmp_path), JOB).run(crash)
    assert json.loads((tmp_path / "ended.json").read_text())["message"] == r"ZeroDivisionError: one\ntwo"


def test_a_job_is_one_process_and_its_children_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, heedful: Any
) -> None:
    monkeypatch.setenv("HEEDFUL_JOB", str(tmp_path))
    monkeypatch.setenv("SLURM_JOB_ID", "41")
    (tmp_path / "ended.json").write_text("of a former start")
    assert heedful("list", "attentoins").status == 2
    assert "HEEDFUL_JOB" not in os.environ
    left = json.loads((tmp_path / "ended.json").read_text())
    assert (left["job"], left["status"]) == ("41", 2)
    assert "attentoins" in left["message"]


def test_a_job_uses_the_cores_that_slurm_gave_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SLURM_JOB_ID", "SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(8)), raising=False)
    monkeypatch.setenv("SLURM_CPUS_ON_NODE", "2")
    assert usable_cores() == 8
    monkeypatch.setenv("SLURM_JOB_ID", "41")
    assert usable_cores() == 2
    monkeypatch.setenv("SLURM_CPUS_PER_TASK", "3")
    assert usable_cores() == 3
