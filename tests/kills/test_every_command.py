"""Commands killed at random moments and given again: the same bytes as if nothing had happened, and no rest."""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from heedful.runs.checksums import file_checksum
from heedful.runs.directory import Run
from tiny import make_model, make_task

sys.path.append(str(Path(__file__).parents[1] / "attacks"))

from trials import Trials

KILLS = 12
NIGHTLY = 100
RUN_FILES = (
    "metrics.jsonl",
    "predictions_*.jsonl",
    "best/*.safetensors",
    "best/*.json",
    "config.toml",
    "checks.json",
)
"""What has to be the same, byte by byte; results.json and timing.jsonl have times."""
TRAIN = (
    "--epochs",
    "2",
    "--batch-size",
    "8",
    "--lr",
    "5e-3",
    "--max-len",
    "32",
    "--precision",
    "float32",
    "--threads",
    "1",
)


@dataclass(frozen=True)
class Command:
    """A command that writes OUT; `again` are the options with which it continues."""

    name: str
    arguments: tuple[str, ...]
    files: tuple[str, ...] = RUN_FILES
    again: tuple[str, ...] = ("--resume",)

    def call(self, out: Path, again: bool = False) -> list[str]:
        parts = [part.replace("OUT", str(out)) for part in self.arguments]
        return ["python", "often", *parts, *(self.again if again else ())]

    def traces(self, out: Path) -> dict[str, str]:
        paths = {path for pattern in self.files for path in out.parent.glob(f"{out.name}/{pattern}")}
        if out.is_file():
            paths = {out}
        return {
            str(path.relative_to(out.parent)).replace(out.name, "OUT"): file_checksum(path)
            for path in paths
            if path.is_file()
        }


def adapt(method: str, *more: str) -> Command:
    words = ("adapt", "model", "task", "--method", method, *TRAIN, *more, "--out", "OUT")
    return Command(f"adapt {method}", words)


COMMANDS = (
    *[adapt(method) for method in ("full", "head", "lora", "prompt", "prefix", "bitfit", "top-layers")],
    Command("pretrain", ("pretrain", "gpt-nano", "task/train.csv", "--epochs", "2", "--tokenizer", "char", "--block", "32",
                         "--model-options", "n_layers=1", "d_model=16", "n_heads=2", "d_ff=32", "--precision", "float32",
                         "--threads", "1", "--out", "OUT")),
    Command("search", ("study", "search", "model", "task", "--lr", "1e-3,1e-2", "--epochs", "2", "--max-len", "32", "--jobs", "0",
                       "--precision", "float32", "--threads", "1", "--keep", "all", "--out", "OUT"),
            tuple(f"runs/*/{name}" for name in RUN_FILES if name != "config.toml"), ()),
    Command("export", ("export", "done", "OUT"), ("*",), ()),
    Command("report", ("report", "done", "--out", "OUT"), (), ()),
    Command("data make", ("data", "make", "world", "OUT", "--people", "40"), ("**/*",), ()),
)  # fmt: skip


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    server = Trials({"HEEDFUL_CACHE": str(tmp_path_factory.mktemp("kills-cache")), "HF_HUB_OFFLINE": "1"})
    yield server
    server.close()


@pytest.fixture(scope="module")
def place(trials: Trials, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model, a task and a finished run, in which all commands are given."""
    root = tmp_path_factory.mktemp("every")
    make_model(root / "model")
    make_task(root / "task")
    done = trials.run(adapt("full").call(root / "done"), seconds=120, megabytes=8000, folder=str(root))
    assert done.statuses == [0], done
    return root


def check_kills(command: Command, kills: int, rng: random.Random, place: Path, trials: Trials) -> int:
    """Give a command, kill it, give it again, and compare with one that nobody killed; return the kills."""
    limits = {"megabytes": 8000, "folder": str(place)}
    name = command.name.replace(" ", "-")
    suffix = ".html" if command.name == "report" else ""
    whole = place / f"{name}-whole{suffix}"
    if not whole.exists():
        done = trials.run(command.call(whole), seconds=200, **limits)
        assert done.statuses == [0], (command.name, done)
        (place / f"{name}.seconds").write_text(str(done.took))
    took = float((place / f"{name}.seconds").read_text())
    expected = command.traces(whole)
    assert expected
    killed = 0
    for number in range(kills):
        out = place / f"{name}-{rng.getrandbits(40)}{suffix}"
        moment = rng.uniform(0, took)
        first = trials.run(command.call(out), kill_after=moment, **limits)
        killed += first.ended == "timeout"
        begun = out.exists() and any(out.iterdir()) if out.is_dir() or not out.exists() else True
        if not command.again and command.name in ("export", "report") and begun:
            assert command.traces(out) == expected, f"{command.name}: half of it after {moment:.2f} s"
        else:
            last = trials.run(command.call(out, again=bool(begun)), seconds=200, **limits)
            refused = "is not empty" in last.err and last.statuses == [2]
            assert last.statuses == [0] or refused, f"{command.name} after {moment:.2f} s: {last}"
        assert command.traces(out) == expected, (
            f"{command.name}, killed after {moment:.2f} s, number {number}"
        )
        if (out / "config.toml").is_file():
            Run.open(out)
            rest = [path.name for path in out.rglob(".*") if path.name.endswith((".tmp", ".former"))]
            assert rest == [], command.name
    return killed


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_a_command_that_was_killed_and_given_again_gives_the_same_bytes(
    command: Command, place: Path, trials: Trials
) -> None:
    check_kills(command, KILLS // len(COMMANDS), random.Random(f"3 {command.name}"), place, trials)


@pytest.mark.nightly
@pytest.mark.timeout(0)
def test_a_hundred_kills_change_no_byte(place: Path, trials: Trials) -> None:
    rng, kills = random.Random(11), int(os.environ.get("HEEDFUL_KILLS", NIGHTLY))
    killed = number = 0
    while killed < kills:
        killed += check_kills(COMMANDS[number % len(COMMANDS)], 1, rng, place, trials)
        number += 1
    print(f"{killed} kills over {len(COMMANDS)} commands")
