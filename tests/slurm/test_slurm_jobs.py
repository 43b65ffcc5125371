"""Jobs on a real Slurm: submitted, followed, stopped at the limit, cancelled, failed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from places import ON, TRAIN, Early, Place, processes, restarts, traces

from heedful.runs.directory import Run
from heedful.training import checkpoint

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.usefixtures("cluster", "early")]


@pytest.fixture(autouse=True)
def _here(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.path)


def test_a_job_followed_prints_and_leaves_what_a_run_here_does(
    heedful: Callable[..., Any], place: Place, tmp_path: Path
) -> None:
    done = heedful("adapt", "model", "task", *TRAIN, *ON, "--wait", "--json", "--out", tmp_path / "r")
    assert done.status == 0, done.err
    assert json.loads(done.out)["splits"] == json.loads((place.whole / "results.json").read_text())["splits"]
    assert "heedful: job" in done.err
    assert traces(tmp_path / "r") == traces(place.whole)


def test_submitting_returns_at_once_and_says_how_to_follow(
    heedful: Callable[..., Any], place: Place, wait_for: Callable[..., Any]
) -> None:
    done = heedful("adapt", "model", "task", *TRAIN, *ON)
    assert done.status == 0, done.err
    folder = place.path / "runs" / "task-model-full-s0"
    number = json.loads((folder / "job.json").read_text())["job"]
    assert f"job {number}: " in done.out
    assert "log:     runs/task-model-full-s0/log.txt" in done.out
    assert "heedful jobs runs/task-model-full-s0  or  tail -f" in done.out
    assert f"heedful jobs cancel {number}" in done.out
    again = heedful("adapt", "model", "task", *TRAIN, *ON, "--out", folder, "--resume")
    assert again.status == 2
    assert f"job {number} is at it" in again.err
    wait_for(folder, "done")
    assert traces(folder) == traces(place.whole)
    listed = heedful("jobs").out
    assert "test accuracy" in listed
    assert "task-model-full-s0" in listed
    assert "requeued" in listed  # not below runs/, but in Slurm's queue


def test_a_run_is_evaluated_by_a_job(heedful: Callable[..., Any], place: Place) -> None:
    here = json.loads(heedful("evaluate", place.whole, "--json").out)
    done = heedful("evaluate", place.whole, *ON, "--wait", "--json")
    assert done.status == 0, done.err
    assert json.loads(done.out) == here
    assert "--signal" not in (place.whole / "jobs/evaluate-test/submit.sh").read_text()
    assert heedful("check", place.whole).status in (0, 1)  # the job's files are no part of the run


def test_a_cancelled_run_leaves_a_checkpoint_and_goes_on_to_the_same_bits(
    heedful: Callable[..., Any], place: Place, tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    out = tmp_path / "run"
    assert heedful("adapt", "model", "task", *TRAIN, *ON, *place.slow(0.5), "--out", out).status == 0
    give_up = time.monotonic() + 60
    while not checkpoint.steps(Run(out)) and time.monotonic() < give_up:
        time.sleep(0.1)
    assert heedful("jobs", "cancel", out).status == 0
    job = wait_for(out, "cancelled", seconds=40)
    assert "stopped by SIGTERM after step" in job["tasks"][0]["why"]
    assert "requeue" not in (out / "log.txt").read_text()
    assert not (out / "results.json").exists()
    over = heedful("jobs", "cancel", job["job"])
    assert over.status == 2
    assert "has ended" in over.err
    done = heedful("adapt", "model", "task", *TRAIN, *ON, "--out", out, "--resume", "--wait")
    assert done.status == 0, done.err
    assert "stopped by SIGTERM" not in done.err  # what the former job said is not shown again
    assert traces(out) == traces(place.whole)


def test_a_job_that_fails_is_not_requeued_and_says_why(
    heedful: Callable[..., Any], jobs: Callable[..., Any], tmp_path: Path
) -> None:
    done = heedful("adapt", "model", "no-such-task", *ON, "--wait", "--out", tmp_path / "run")
    assert done.status == 2
    assert "no-such-task" in done.err.splitlines()[-1]
    job = jobs(tmp_path / "run")
    assert job["state"] == "failed"
    assert "no-such-task" in job["tasks"][0]["why"]
    assert restarts(job["job"]) == 0


def test_a_setup_that_fails_ends_the_job_with_its_status(
    heedful: Callable[..., Any], jobs: Callable[..., Any], tmp_path: Path
) -> None:
    done = heedful("adapt", "model", "task", *ON, "--wait", "--setup", "(exit 7)", "--out", tmp_path / "run")
    assert done.status == 7
    assert jobs(tmp_path / "run")["tasks"][0]["why"].startswith("status 7")


def test_a_killed_process_is_a_failure_and_not_requeued(
    heedful: Callable[..., Any], place: Place, tmp_path: Path, wait_for: Callable[..., Any]
) -> None:
    out = tmp_path / "run"
    assert heedful("adapt", "model", "task", *TRAIN, *ON, *place.slow(0.5), "--out", out).status == 0
    number = wait_for(out, "running")["job"]
    for process in processes(number):
        os.kill(process, signal.SIGKILL)
    job = wait_for(out, "failed")
    assert job["tasks"][0]["status"] == 128 + signal.SIGKILL
    assert restarts(number) == 0


def test_a_dry_run_prints_the_script_and_submits_nothing(heedful: Callable[..., Any], tmp_path: Path) -> None:
    before = subprocess.run(["squeue", "-h", "-t", "all"], capture_output=True, check=True).stdout.count(
        b"\n"
    )
    out = tmp_path / "run"
    told = ["adapt", "model", "task", *TRAIN, *ON, "--gpus", "1", "--mem-gb", "1", "--out", out]
    dry = heedful(*told, "--dry-run")
    assert dry.status == 0
    assert not out.exists()
    after = subprocess.run(["squeue", "-h", "-t", "all"], capture_output=True, check=True).stdout.count(b"\n")
    assert after == before
    assert heedful(*told, "--wait").status == 0
    assert (out / "submit.sh").read_text() == dry.out


def test_what_slurm_refuses_is_one_line_and_leaves_nothing(
    heedful: Callable[..., Any], tmp_path: Path
) -> None:
    done = heedful("adapt", "model", "task", *ON, "--partition", "no such; one", "--out", tmp_path / "run")
    assert done.status == 2
    assert done.err.count("\n") == 1
    assert "invalid partition" in done.err.lower()
    assert not (tmp_path / "run").exists()


def test_hostile_folders_and_values_reach_slurm_and_the_command_unchanged(
    heedful: Callable[..., Any], place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = tmp_path / "a b;$(touch owned)`touch owned`\n'\"#&|*é"
    hostile.mkdir()
    monkeypatch.chdir(hostile)
    out = hostile / "run\n#SBATCH --begin=now+1year"
    comment = "a \"b\" 'c' \\d $HOME `e` #f ;g"
    done = heedful(
        "adapt", place.path / "model", place.path / "task", *TRAIN, *ON, "--wait", "--out", out,
        "--slurm", f"comment={comment}", "--setup", 'printf "%s|" "$(pwd)" "a  b" >said; echo $HOME >>said', "x=1",
    )  # fmt: skip
    assert done.status == 0, done.err
    for name in ("metrics.jsonl", "predictions_test.jsonl", "best/model.safetensors"):
        assert (out / name).read_bytes() == (place.whole / name).read_bytes()
    assert not list(tmp_path.rglob("owned"))
    assert (hostile / "said").read_text() == f"{hostile}|a  b|{os.environ['HOME']}\n"
    number = json.loads((out / "job.json").read_text())["job"]
    kept = subprocess.run(
        ["squeue", "-h", "-t", "all", "-j", number, "-o", "%k"], capture_output=True, check=True
    )
    assert kept.stdout.decode().rstrip("\n").rstrip() == comment
    listed = heedful("jobs", hostile)
    assert listed.status == 0
    assert "done" in listed.out


def test_the_kept_script_can_be_submitted_by_hand(
    heedful: Callable[..., Any], place: Place, tmp_path: Path
) -> None:
    out = tmp_path / "by hand"
    script = heedful("adapt", "model", "task", *TRAIN, *ON, "--out", out, "--dry-run").out
    out.mkdir()
    (out / "submit.sh").write_text(script)
    subprocess.run(["sbatch", "--wait", "submit.sh"], cwd=out, check=True, capture_output=True)
    assert traces(out) == traces(place.whole)


def test_nodes_say_what_there_is_and_what_is_free(heedful: Callable[..., Any], cluster: Path) -> None:
    (node,) = json.loads(heedful("jobs", "nodes", "--json").out)
    assert (node["cpus"], node["gpus"]) == (8, 2)
    hold = ["sbatch", "--parsable", "--gres=gpu:1", "--cpus-per-task=1", "--mem=512M", "--wrap=sleep 60"]
    number = subprocess.run(
        [*hold, "--output=/dev/null"], capture_output=True, text=True, check=True
    ).stdout.strip()
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up:
        (now,) = json.loads(heedful("jobs", "nodes", "--json").out)
        if now["gpus_free"] == 1:
            break
        time.sleep(0.5)
    assert now["gpus_free"] == 1
    assert now["cpus_free"] < 8
    assert now["memory_gb"] - now["memory_free_gb"] >= 0.5
    table = heedful("jobs", "nodes").out
    assert "1 of 2" in table
    subprocess.run(["scancel", number], check=True)


def test_without_requeues_left_a_run_stops_with_its_checkpoint(
    early: Early, wait_for: Callable[..., Any]
) -> None:
    job = wait_for(early.stopped, "stopped", "done", "failed")
    assert job["state"] == "stopped"
    (task,) = job["tasks"]
    assert task["status"] == 75
    # On a busy machine, a step can take longer than what is left of the time.
    assert re.search("no requeue left of 0; stopped by SIGUSR1 (after step|before the next)", task["why"])
    assert checkpoint.steps(Run(early.stopped))
    assert restarts(job["job"]) == 0


def test_a_run_that_hits_its_limit_is_requeued_and_ends_as_if_it_had_not(
    early: Early, place: Place, wait_for: Callable[..., Any]
) -> None:
    job = wait_for(early.requeued, "done", "failed", "stopped")
    log = (early.requeued / "log.txt").read_text()
    assert job["state"] == "done", log
    assert f"heedful: job {job['job']} goes back into the queue (requeue 1 of 9)" in log
    assert restarts(job["job"]) >= 1
    assert traces(early.requeued) == traces(place.whole)
