"""`heedful adapt` killed for real, again and again, on a disk that may be full."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from heedful.runs.checksums import file_checksum, find_damage
from heedful.runs.directory import Run
from heedful.training import checkpoint
from tiny import make_model, make_task

CHILD = """
import sys, time
from heedful.training import checkpoint, loop
from heedful.cli import main
loop.CHECKPOINT_SECONDS, slow = 0.0, float(sys.argv[1])
if slow:  # a wide window to be killed in while a checkpoint is written, and between two of them
    seal, remove = checkpoint.seal, checkpoint.remove_checkpoint
    checkpoint.seal = lambda folder: (time.sleep(slow), seal(folder), time.sleep(slow))
    checkpoint.remove_checkpoint = lambda run, step: (time.sleep(slow), remove(run, step))
sys.exit(main(sys.argv[2:]))
"""


@dataclass
class Command:
    """`heedful adapt` as a child process that writes a checkpoint after every step."""

    model: Path
    task: Path
    out: Path
    more: tuple[str, ...] = ()

    def start(self, *flags: str, slow: float = 0.0) -> subprocess.Popen[str]:
        arguments = [
            "adapt", self.model, self.task, "--out", self.out, "--epochs", "4", "--batch-size", "8",
            "--lr", "5e-3", "--max-len", "32", "--precision", "float32", "--threads", "1", *self.more, *flags,
        ]  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-c", CHILD, str(slow), *map(str, arguments)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )

    def finish(self, *flags: str) -> str:
        child = self.start(*flags)
        _, said = child.communicate(timeout=120)
        assert child.returncode == 0, said
        return said


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    root = tmp_path_factory.mktemp("tiny")
    made = Command(make_model(root / "model", words=20), make_task(root / "task"), root / "whole")
    made.finish()
    return made


def traces(folder: Path) -> dict[str, str]:
    """What has to be the same: weights, metrics, predictions."""
    last = max(checkpoint.steps(Run(folder)))
    files = [
        folder / "metrics.jsonl",
        folder / "predictions_dev.jsonl",
        folder / "predictions_test.jsonl",
        folder / "best" / "model.safetensors",
        folder / "checkpoints" / f"step-{last:08d}" / "weights.pt",
        folder / "checkpoints" / f"step-{last:08d}" / "optimizer.pt",
    ]
    return {path.name: file_checksum(path) for path in files}


def wait_for_steps(out: Path, child: subprocess.Popen[str], beyond: int) -> None:
    """Until a checkpoint after that of step `beyond` is there, or being written."""
    give_up = time.monotonic() + 60
    while time.monotonic() < give_up and child.poll() is None:
        written = set(out.glob(f"checkpoints/.step-*.{child.pid}-*.tmp"))  # not what a former child left
        if any(int(m[1]) > beyond for p in written if (m := re.match(r"\.step-(\d+)", p.name))):
            return
        if max(checkpoint.steps(Run(out)), default=0) > beyond:
            return
        time.sleep(0.002)


def test_kills_at_random_moments_change_no_bit(command: Command, tmp_path: Path) -> None:
    moments = random.Random(5)
    stopped = Command(command.model, command.task, tmp_path / "run")
    reached, killed_in_writing = 0, 0
    for attempt in range(7):
        slow = 0.05 if attempt % 2 else 0.0
        child = stopped.start("--resume", slow=slow)
        wait_for_steps(stopped.out, child, reached)
        time.sleep(moments.uniform(0, 0.25 if slow else 0.05))
        child.kill()
        child.communicate()
        killed_in_writing += any(stopped.out.glob("checkpoints/.step-*.tmp"))
        whole = [
            s
            for s in checkpoint.steps(Run(stopped.out))
            if find_damage(stopped.out / f"checkpoints/step-{s:08d}") is None
        ]
        assert whole == checkpoint.steps(Run(stopped.out))  # a name means a whole checkpoint
        reached = max(whole, default=0)
    assert reached > 0
    assert killed_in_writing > 0
    stopped.finish("--resume")
    assert traces(stopped.out) == traces(command.out)
    left = sorted(p.name for p in (stopped.out / "checkpoints").iterdir() if not p.name.startswith("step-"))
    assert all(name.startswith(".lease.") for name in left)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_a_signal_leaves_a_checkpoint_and_status_75(
    number: signal.Signals, command: Command, tmp_path: Path
) -> None:
    asked = Command(command.model, command.task, tmp_path / "run")
    child = asked.start()
    wait_for_steps(asked.out, child, 3)
    child.send_signal(number)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 75
    assert said.splitlines()[-2:][0] == f"heedful: {number.name}: writing a checkpoint, then stopping"
    step = re.search(
        rf"heedful: stopped by {number.name} after step (\d+) of 32; the same command with --resume", said
    )
    assert step is not None
    assert checkpoint.steps(Run(asked.out))[-1] == int(step[1])
    if number is signal.SIGTERM:
        asked.finish("--resume")
        assert traces(asked.out) == traces(command.out)


def test_two_at_once_are_one_too_many(command: Command, tmp_path: Path) -> None:
    both = Command(command.model, command.task, tmp_path / "run")
    first = both.start(slow=0.2)
    wait_for_steps(both.out, first, 1)
    second = both.start("--resume")
    _, said = second.communicate(timeout=60)
    assert second.returncode == 2
    assert f"process {first.pid} begun" in said
    assert "is working on this run" in said.splitlines()[-1]
    first.kill()
    first.communicate()


def test_a_damaged_checkpoint_is_passed_over_with_a_line(command: Command, tmp_path: Path) -> None:
    hurt = Command(command.model, command.task, tmp_path / "run")
    child = hurt.start()
    wait_for_steps(hurt.out, child, 10)
    child.kill()
    child.communicate()
    last = hurt.out / f"checkpoints/step-{checkpoint.steps(Run(hurt.out))[-1]:08d}"
    with (last / "optimizer.pt").open("r+b") as file:
        file.truncate(100)
    said = hurt.finish("--resume")
    assert f"heedful: {last}: optimizer.pt does not have the content that was written; using the" in said
    assert traces(hurt.out) == traces(command.out)


@pytest.mark.needs("tmpfs")
@pytest.mark.parametrize("small_disk", ["4m"], indirect=True)
@pytest.mark.parametrize("left", [40_000, 90_000])
def test_a_full_disk_costs_no_checkpoint(command: Command, small_disk: Path, left: int) -> None:
    full = Command(command.model, command.task, small_disk / "run")
    child = full.start(slow=0.1)
    wait_for_steps(full.out, child, 3)
    child.send_signal(signal.SIGSTOP)  # else it writes while we count what is left
    usage = os.statvfs(small_disk)
    (small_disk / "filling").write_bytes(b"x" * max(0, usage.f_bavail * usage.f_frsize - left))
    child.send_signal(signal.SIGCONT)
    _, said = child.communicate(timeout=60)
    assert child.returncode == 2, said
    assert "Traceback" not in said
    assert re.search(
        r"heedful: .*cannot be written \(No space left on device\); .* intact", said.splitlines()[-1]
    )
    steps = checkpoint.steps(Run(full.out))
    assert steps
    assert all(find_damage(full.out / f"checkpoints/step-{s:08d}") is None for s in steps)
    (small_disk / "filling").unlink()
    full.finish("--resume")
    assert traces(full.out) == traces(command.out)
