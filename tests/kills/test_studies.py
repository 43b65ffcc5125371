"""Studies that are stopped, killed and continued: nothing twice, nothing lost, the same bits."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from heedful.runs.directory import Run
from heedful.runs.leases import newest_number, read_holder
from heedful.runs.studies import StudyFolder
from tiny import make_model, make_task

PATIENCE = 240.0


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """A search of two runs that take some seconds each."""
    root = tmp_path_factory.mktemp("tiny")
    model, task = make_model(root / "model"), make_task(root / "task", 200)
    return [
        "study", "search", str(model), str(task), "--lr", "1e-3,1e-2", "--epochs", "30", "--max-len", "32",
        "--precision", "float32", "--threads", "1", "--keep", "all",
    ]  # fmt: skip


def start(words: list[str], out: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "heedful", *words, "--out", str(out)]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def wait_for(found: object, what: str) -> None:
    """Wait until a function says so."""
    until = time.monotonic() + PATIENCE
    while not found():  # type: ignore[operator]
        assert time.monotonic() < until, f"{what} did not happen"
        time.sleep(0.05)


def at_work(out: Path) -> list[int]:
    """The processes of a study."""
    listed = subprocess.run(["ps", "-eo", "pid,args"], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if str(out) in line]


def finish(words: list[str], out: Path) -> None:
    process = start(words, out)
    _, said = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 0, said


def has_checkpoint(out: Path) -> bool:
    return bool(list(out.glob("runs/*/checkpoints/step-*")))


@pytest.fixture(scope="module")
def whole(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study that nobody stopped."""
    out = tmp_path_factory.mktemp("whole") / "study"
    finish(words, out)
    return out


def same_bits(out: Path, whole: Path) -> None:
    for run in (whole / "runs").iterdir():
        for name in ("metrics.jsonl", "predictions_dev.jsonl", "best/model.safetensors"):
            assert (out / "runs" / run.name / name).read_bytes() == (run / name).read_bytes(), name


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_study_that_is_stopped_leaves_nobody_behind_and_goes_on_to_the_same_bits(
    words: list[str], whole: Path, tmp_path: Path, sent: signal.Signals
) -> None:
    out = tmp_path / "study"
    process = start(words, out)
    wait_for(lambda: has_checkpoint(out), "a checkpoint")
    process.send_signal(sent)
    _, said = process.communicate(timeout=PATIENCE)
    assert process.returncode == 75, said
    assert f"stopped by {sent.name}: 0 of 2 runs" in said
    assert "the same command continues" in said
    assert at_work(out) == []
    assert "begun" in {o.state for o in StudyFolder.open(out).read_outcomes()}
    finish(words, out)
    same_bits(out, whole)


def test_workers_stop_when_the_study_that_started_them_is_killed(
    words: list[str], whole: Path, tmp_path: Path
) -> None:
    out = tmp_path / "study"
    process = start([*words, "--jobs", "2"], out)
    wait_for(lambda: has_checkpoint(out), "a checkpoint")
    process.kill()
    process.communicate(timeout=PATIENCE)
    wait_for(lambda: not at_work(out), "the workers' end")
    finish([*words, "--jobs", "2"], out)
    same_bits(out, whole)


def test_a_killed_worker_is_replaced_and_a_run_that_always_kills_has_failed(
    words: list[str], tmp_path: Path
) -> None:
    out = tmp_path / "study"
    process = start(words, out)
    killed: set[int] = set()
    while len(killed) < 2:
        wait_for(lambda: holder(out, "lr=0.001") not in {0, *killed}, "the first run's beginning")
        worker = holder(out, "lr=0.001")
        os.kill(worker, signal.SIGKILL)
        killed.add(worker)
    _, said = process.communicate(timeout=2 * PATIENCE)
    assert process.returncode == 0, said
    first, second = StudyFolder.open(out).read_outcomes()
    assert first.state == "failed"
    assert first.ended is not None
    assert "killed 2 times; most likely it does not fit in memory" in first.ended.reason
    assert second.state == "finished"
    answer = StudyFolder.open(out).find_answer()
    assert answer is not None
    assert answer.facts["chosen"] == second.name
    assert Run(second.folder).read_results().splits.keys() == {"dev", "test"}


def holder(out: Path, name: str) -> int:
    """The number of the process that works on a run; 0 for none."""
    place = out / "leases" / name
    if not place.parent.is_dir() or not newest_number(place):
        return 0
    held = read_holder(place, newest_number(place))
    return 0 if held.released else int(held.holder.rpartition(" process ")[2].partition(" ")[0])
