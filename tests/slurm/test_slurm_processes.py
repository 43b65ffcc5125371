"""Jobs of several tasks on a real Slurm, each task one of the processes that train together; pretraining."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import ON, TRAIN, Place, restarts, traces

from heedful.runs.directory import Run
from heedful.training import checkpoint

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.usefixtures("cluster", "limited")]
TWO = [*ON, "--slurm", "ntasks=2"]
TEXT = "the quick brown fox jumps over the lazy dog and runs away\n" * 40
LM = ["--dev", "text.txt", "--steps", "12", "--batch-size", "4", "--block", "32", "--precision", "float32",
      "--model-options", "n_layers=1", "d_model=16", "n_heads=2"]  # fmt: skip


@pytest.fixture(autouse=True)
def _here(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.path)


@pytest.fixture(scope="session")
def limited(cluster: Path, place: Place) -> Path:
    """Begin a job of two tasks that will hit its limit."""
    from heedful.cli import main

    out = place.path / "limited"
    limit = ["--time-min", "1", "--slurm", "ntasks=2", "signal=USR1@5", "--max-requeues", "9"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place.path)
        assert main(["adapt", "model", "task", *TRAIN, *ON, *place.slow(3), *limit, "--out", str(out)]) == 0
    return out


def test_a_job_of_two_tasks_gives_the_bits_of_two_processes_here(
    heedful: Callable[..., Any], two: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    done = heedful("adapt", "model", "task", *TRAIN, *TWO, "--wait", "--json", "--out", out)
    assert done.status == 0, done.err
    assert json.loads(done.out)["splits"]["dev"]["n"] == 30
    assert traces(out) == traces(two)
    assert "exec srun --kill-on-bad-exit=1 --cpus-per-task=1 " in (out / "submit.sh").read_text()


def test_a_cancelled_job_of_two_tasks_leaves_a_checkpoint(
    heedful: Callable[..., Any], place: Place, two: Path, tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    out = tmp_path / "run"
    assert heedful("adapt", "model", "task", *TRAIN, *TWO, *place.slow(0.5), "--out", out).status == 0
    wait_for(out, "running")
    give_up = time.monotonic() + 200
    while not (out / "metrics.jsonl").is_file() and time.monotonic() < give_up:
        time.sleep(0.2)
    assert heedful("jobs", "cancel", out).status == 0
    job = wait_for(out, "cancelled", "stopped", "failed")
    assert job["state"] == "cancelled"
    assert "stopped by SIGTERM after step" in job["tasks"][0]["why"]
    assert checkpoint.steps(Run(out))
    again = heedful("adapt", "model", "task", *TRAIN, *TWO, "--wait", "--resume", "--out", out)
    assert again.status == 0, again.err
    assert traces(out) == traces(two)


def test_pretraining_is_a_job_too(heedful: Callable[..., Any], place: Place, tmp_path: Path) -> None:
    (place.path / "text.txt").write_text(TEXT)
    here = heedful("pretrain", "char-gpt", "text.txt", *LM, "--threads", 1, "--out", tmp_path / "here")
    assert here.status == 0, here.err
    out = tmp_path / "job"
    done = heedful("pretrain", "char-gpt", "text.txt", *LM, *ON, "--wait", "--out", out)
    assert done.status == 0, done.err
    assert "perplexity" in done.out
    for name in ("metrics.jsonl", "best/model.safetensors"):
        assert (out / name).read_bytes() == (tmp_path / "here" / name).read_bytes()


def test_a_job_of_two_tasks_that_hits_its_limit_goes_on_to_the_same_bits(
    limited: Path, two: Path, wait_for: Callable[..., Any]
) -> None:
    job = wait_for(limited, "done", "failed", "stopped", "cancelled", seconds=300)
    log = (limited / "log.txt").read_text()
    assert job["state"] == "done", log
    assert f"heedful: job {job['job']} goes back into the queue (requeue 1 of 9)" in log
    assert restarts(job["job"]) >= 1
    assert traces(limited) == traces(two)
