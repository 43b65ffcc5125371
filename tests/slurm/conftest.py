"""A real Slurm of one node, begun by scripts/local-slurm, with a tiny model and task to train on it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tiny import make_model, make_task

ROOT = Path(__file__).parents[2]
TRAIN = ["--epochs", "4", "--batch-size", "8", "--lr", "5e-3", "--max-len", "32", "--precision", "float32"]
SLOW = """
import sys, threading, time

def slow():
    while "Loop" not in vars(sys.modules.get("heedful.training.loop", sys)):
        time.sleep(0.01)
    Loop = sys.modules["heedful.training.loop"].Loop
    while not hasattr(Loop, "__dataclass_fields__"):
        time.sleep(0.01)
    step = Loop.step
    Loop.step = lambda self, number: (time.sleep({seconds}), step(self, number))[1]

threading.Thread(target=slow, daemon=True).start()
"""


@pytest.fixture(scope="session")
def cluster() -> Iterator[Path]:
    """The cluster's folder; Slurm's commands speak to it."""
    folder = Path(tempfile.mkdtemp(prefix="hs-"))
    script = [sys.executable, ROOT / "scripts" / "local-slurm"]
    begun = [*script, "start", "--folder", folder, "--cpus", "4", "--gpus", "2"]
    with pytest.MonkeyPatch.context() as patch:
        subprocess.run(begun, check=True, stdout=subprocess.DEVNULL)
        patch.setenv("SLURM_CONF", str(folder / "slurm.conf"))
        try:
            yield folder
        finally:
            subprocess.run([*script, "stop", "--folder", folder], check=True)


@dataclass
class Place:
    """A folder to work in, with a model and a task."""

    path: Path
    whole: Path
    """A run that was made here, without a stop."""

    def slow(self, seconds: float) -> list[str]:
        """Options that make each step of a job slower."""
        folder = self.path / f"slow-{seconds}"
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text(SLOW.replace("{seconds}", str(seconds)))
        return ["--setup", f"export PYTHONPATH='{folder}'"]


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Where commands are given."""
    from heedful.cli import main

    path = tmp_path_factory.mktemp("place")
    make_model(path / "model", words=20)
    make_task(path / "task")
    whole = path / "whole"
    arguments = [path / "model", path / "task", *TRAIN, "--threads", "1", "--out", whole]
    assert main(["adapt", *map(str, arguments)]) == 0
    return Place(path, whole)


@pytest.fixture
def jobs(heedful: Callable[..., Any]) -> Callable[[Path], dict[str, Any]]:
    """What `heedful jobs` says of a folder's job."""

    def look(folder: Path) -> dict[str, Any]:
        done = heedful("jobs", folder, "--json")
        assert done.status == 0, done.err
        (job,) = json.loads(done.out)
        return dict(job)

    return look


@pytest.fixture
def wait_for(jobs: Callable[[Path], dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Until a job is in one of the states named."""

    def wait(folder: Path, *states: str, seconds: float = 200) -> dict[str, Any]:
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            job = jobs(folder)
            if job["state"] in states:
                return job
            time.sleep(1)
        raise AssertionError(f"not {states}: {job}")

    return wait
