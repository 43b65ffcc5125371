"""Where jobs are given and what they train; runs that take their time are begun first and looked at last."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from heedful.runs.checksums import file_checksum
from heedful.runs.directory import Run
from heedful.training import checkpoint

TRAIN = ["--epochs", "4", "--batch-size", "8", "--lr", "5e-3", "--max-len", "32", "--precision", "float32"]
SLOW = """
import os, sys, threading, time

def slow():
    while "Loop" not in vars(sys.modules.get("heedful.training.loop", sys)):
        time.sleep(0.01)
    Loop = sys.modules["heedful.training.loop"].Loop
    while not hasattr(Loop, "__dataclass_fields__"):
        time.sleep(0.01)
    step = Loop.step
    Loop.step = lambda self, number: (time.sleep({seconds}), step(self, number))[1]

if "SLURM_RESTART_COUNT" not in os.environ:
    threading.Thread(target=slow, daemon=True).start()
"""
SEARCH = [
    "--lr",
    "1e-3,5e-3",
    "--epochs",
    "4",
    "--batch-size",
    "8",
    "--max-len",
    "32",
    "--precision",
    "float32",
]
ON = ["--on", "slurm", "--cpus", "1"]
LOCAL_SLURM = [sys.executable, str(Path(__file__).parents[2] / "scripts" / "local-slurm")]


def take_all_cores() -> None:
    """Let Slurm use every core, though the tests that wait for it have one."""
    cores = os.environ.get("HEEDFUL_TEST_CORES")
    if cores:
        os.sched_setaffinity(0, map(int, cores.split(",")))


@dataclass
class Place:
    """A folder to work in, with a model and a task."""

    path: Path
    whole: Path
    """A run that was made here, without a stop."""
    whole_study: Path
    """A study that was made here, in one process."""

    def slow(self, seconds: float) -> list[str]:
        """Options that make each step of a job slower, until it is begun again."""
        folder = self.path / f"slow-{seconds}"
        folder.mkdir(exist_ok=True)
        (folder / "sitecustomize.py").write_text(SLOW.replace("{seconds}", str(seconds)))
        return ["--setup", f"export PYTHONPATH='{folder}':\"$PYTHONPATH\""]


@dataclass
class Early:
    """Jobs of more than a minute, with a limit of one: submitted first, looked at last."""

    requeued: Path
    stopped: Path
    study: Path


def traces(folder: Path) -> dict[str, str]:
    """What has to be the same: weights, metrics, predictions."""
    last = f"checkpoints/step-{max(checkpoint.steps(Run(folder))):08d}"
    names = ["metrics.jsonl", "predictions_dev.jsonl", "predictions_test.jsonl", "best/model.safetensors"]
    return {
        name: file_checksum(folder / name) for name in [*names, f"{last}/weights.pt", f"{last}/optimizer.pt"]
    }


def study_traces(folder: Path) -> dict[str, str]:
    """What has to be the same in every run of a study."""
    files = [f for name in ("metrics.jsonl", "best/model.safetensors") for f in folder.glob(f"runs/*/{name}")]
    return {str(file.relative_to(folder)): file_checksum(file) for file in files}


def restarts(number: str) -> int:
    """How often Slurm has begun a job again."""
    return int(ask("scontrol", "-o", "show", "job", number).split(" Restarts=")[1].split()[0])


def processes(number: str) -> list[int]:
    """The processes of a job, or of one task of an array, on this machine."""
    own = ask("squeue", "--noheader", f"--jobs={number}", "--format=%A").strip()
    return [int(line.split()[0]) for line in ask("scontrol", "listpids", own).splitlines()[1:]]


def ask(*words: str) -> str:
    """What a command of Slurm's says."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
