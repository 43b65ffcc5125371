"""Two processes, of which one dies, or all are asked to stop."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from heedful.runs.checksums import file_checksum, find_damage
from heedful.runs.directory import Run
from heedful.training import checkpoint
from tiny import make_model, make_task

SLOW = """
import os, time
if "RANK" in os.environ:
    from heedful.training import loop
    step, fails = loop.Loop.step, os.environ.get("FAILS")
    loop.CHECKPOINT_SECONDS = 0.0
    def slow(self, number):
        time.sleep(float(os.environ["SECONDS"]))
        if number == 5 and fails == os.environ["RANK"]:
            raise ZeroDivisionError("as the test wants")
        step(self, number)
    loop.Loop.step = slow
"""


@dataclass
class Command:
    """`heedful adapt --processes 2`, with a checkpoint after every step."""

    root: Path
    out: Path
    said: list[str] = field(default_factory=list)

    def start(
        self, *flags: str, processes: int = 2, seconds: float = 0.0, **more: str
    ) -> subprocess.Popen[str]:
        arguments = [
            "adapt", self.root / "model", self.root / "task", "--out", self.out, "--epochs", "4", "--batch-size",
            "8", "--lr", "5e-3", "--max-len", "32", "--precision", "float32", "--threads", "1",
            "--processes", processes, *flags,
        ]  # fmt: skip
        return subprocess.Popen(
            [sys.executable, "-m", "heedful", *map(str, arguments)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(self.root / "slow"), "SECONDS": str(seconds), **more},
        )

    def finish(self, *flags: str, processes: int = 2) -> str:
        child = self.start(*flags, processes=processes)
        _, said = child.communicate(timeout=300)
        assert child.returncode == 0, said
        return said


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """A run that was never stopped."""
    root = tmp_path_factory.mktemp("tiny")
    make_model(root / "model", words=20)
    make_task(root / "task", rows=61)
    (root / "slow").mkdir()
    (root / "slow" / "sitecustomize.py").write_text(SLOW)
    made = Command(root, root / "whole")
    made.finish()
    return made


@pytest.fixture
def command(whole: Command, tmp_path: Path) -> Command:
    return Command(whole.root, tmp_path / "run")


def traces(folder: Path) -> dict[str, str]:
    """What has to be the same: weights, metrics, predictions."""
    last = checkpoint.checkpoint_folder(Run(folder), max(checkpoint.steps(Run(folder))))
    names = ("metrics.jsonl", "predictions_dev.jsonl", "predictions_test.jsonl", "best/model.safetensors")
    files = [*(folder / name for name in names), last / "weights.pt", last / "optimizer.pt"]
    return {path.name: file_checksum(path) for path in files}


def wait_until(true: Callable[[], object], child: subprocess.Popen[str], seconds: float = 240) -> None:
    give_up = time.monotonic() + seconds
    while not true():
        assert child.poll() is None, child.communicate()[1]
        assert time.monotonic() < give_up
        time.sleep(0.05)


def workers(child: subprocess.Popen[str]) -> dict[int, int]:
    """The processes that a command has started, by their ranks."""
    found = {}
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdigit() and f"PPid:\t{child.pid}\n" in (folder / "status").read_text():
                ranks = re.search(rb"\0RANK=(\d+)\0", b"\0" + (folder / "environ").read_bytes())
                if ranks is not None:
                    found[int(ranks[1])] = int(folder.name)
        except OSError:
            continue
    return found


def gone(number: int) -> bool:
    try:
        return "\nState:\tZ" in Path(f"/proc/{number}/status").read_text()
    except OSError:
        return True


def started(command: Command, beyond: int = 2, **more: str) -> tuple[subprocess.Popen[str], dict[int, int]]:
    """A command that has made some steps, and its processes."""
    child = command.start(seconds=0.2, **more)
    wait_until(lambda: max(checkpoint.steps(Run(command.out)), default=0) > beyond, child)
    return child, workers(child)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_process_ends_the_run_at_once_and_loses_only_its_step(
    rank: int, command: Command, whole: Command
) -> None:
    child, ranks = started(command)
    assert len(ranks) == 2
    began = time.monotonic()
    os.kill(ranks[rank], signal.SIGKILL)
    _, said = child.communicate(timeout=60)
    assert time.monotonic() - began < 25
    assert child.returncode == 70, said
    last = checkpoint.steps(Run(command.out))[-1]
    assert said.splitlines()[-1] == (
        f"heedful: process {rank + 1} of 2 was ended by SIGKILL (which is how a system that is short of memory "
        f"ends one); the last checkpoint is step {last} in {command.out}; the same command with --resume continues"
    )
    assert "Traceback" not in said
    assert all(map(gone, ranks.values()))
    assert find_damage(checkpoint.checkpoint_folder(Run(command.out), last)) is None
    command.finish("--resume")
    assert traces(command.out) == traces(whole.out)


def test_an_error_in_one_process_ends_the_run_and_is_told(command: Command) -> None:
    child = command.start(FAILS="1")
    _, said = child.communicate(timeout=240)
    assert child.returncode == 70, said
    assert re.fullmatch(
        r"heedful: process 2 of 2 failed: ZeroDivisionError: as the test wants; the last checkpoint is step 5 in "
        r".*; the same command with --resume continues",
        said.splitlines()[-1],
    )
    assert said.count("Traceback") == 1


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_stops_all_after_one_checkpoint(
    sent: signal.Signals, command: Command, whole: Command
) -> None:
    child, _ = started(command)
    child.send_signal(sent)
    _, said = child.communicate(timeout=120)
    assert child.returncode == 75, said
    assert said.count("writing a checkpoint, then stopping") == 1
    told = re.search(rf"heedful: stopped by {sent.name} after step (\d+) of 32; the same command with", said)
    assert told is not None
    assert checkpoint.steps(Run(command.out))[-1] == int(told[1])
    if sent is signal.SIGTERM:
        command.finish("--resume")
        assert traces(command.out) == traces(whole.out)
    if sent is signal.SIGUSR1:
        said = command.finish("--resume", processes=1)
        assert (
            f"{command.out}: its last checkpoint is of 2 processes, it goes on with 1 process: to rounding"
            in said
        )


def test_processes_whose_command_is_gone_save_and_stop(command: Command) -> None:
    child, ranks = started(command)
    child.kill()
    child.wait()
    assert child.stderr is not None
    child.stderr.close()
    give_up = time.monotonic() + 60
    while not all(map(gone, ranks.values())):
        assert time.monotonic() < give_up
        time.sleep(0.1)
    steps = checkpoint.steps(Run(command.out))
    assert steps[-1] < 32
    assert find_damage(checkpoint.checkpoint_folder(Run(command.out), steps[-1])) is None
