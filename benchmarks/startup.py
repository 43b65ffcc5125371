"""Compare the processor time of short commands with that of `import torch`, which most of them begin with.

    python -m benchmarks.startup                    every command, seven turns
    python -m benchmarks.startup predict adapt --turns 3

Each command is a child process with one thread. Commands and imports take turns, and what is compared are
the medians of their processor times, user and system, which other work on the machine disturbs least; the
wall-clock time is that of the fastest turn. `adapt` trains MiniLM on 120 rows for one epoch; the
processor time of its training loop, with its evaluations and checkpoints, is taken off, so that what is left
is everything around it.
"predict-onnx" labels with what `heedful export --onnx` wrote, beside `import onnxruntime, tokenizers`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.machine import OFFLINE, busy_share

TEXT = "What a lovely place, and what a kind staff."
GOOD, BAD = ("lovely", "kind", "warm", "clean"), ("awful", "rude", "cold", "dirty")
PLAIN = ("the", "room", "was", "and", "staff", "food", "we", "table", "night", "very", "again")
TORCH, ONNX = "import torch", "import onnxruntime, tokenizers"


@dataclass(frozen=True)
class Case:
    arguments: tuple[str, ...]
    against: str = TORCH
    goal: float | None = None
    """The processor time, as a multiple of the import, that the command is to stay below."""


CASES = {
    "help": Case(("--help",)),
    "predict-help": Case(("predict", "--help")),
    "list": Case(("list", "models")),
    "predict": Case(("predict", "run", TEXT), goal=1.25),
    "predict-tfidf": Case(("predict", "tfidf", TEXT)),
    "predict-onnx": Case(("predict", "onnx", TEXT), ONNX, 2.5),
    "adapt": Case(
        ("adapt", "minilm", "reviews.csv", "--epochs", "1", "--out", "again", "--overwrite"), goal=2.5
    ),
}
PREPARATIONS = {
    "run": ("adapt", "minilm", "reviews.csv", "--out", "run", "--epochs", "1"),
    "tfidf": ("adapt", "tfidf", "reviews.csv", "--out", "tfidf"),
    "onnx": ("export", "run", "onnx", "--onnx"),
}

COUNT_TRAINING = """
import sys, time
from pathlib import Path
from heedful.cli import main
from heedful.training.loop import Loop
train = Loop.train
def count(*arguments, **options):
    start = time.process_time()
    try:
        return train(*arguments, **options)
    finally:
        Path("training").write_text(str(time.process_time() - start))
Loop.train = count
sys.exit(main(sys.argv[1:]))
"""
"""Runs a command, and writes the processor time of its training loop to a file."""


@dataclass(frozen=True)
class Spent:
    cpu: float
    wall: float


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"commands to measure (default: all): {', '.join(CASES)}")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--out", type=Path, help="also write the numbers to this JSON file")
    args = parser.parse_args()
    for name in args.cases:
        if name not in CASES:
            parser.error(f"there is no command {name}; there are {', '.join(CASES)}")
    os.environ |= OFFLINE | {"OMP_NUM_THREADS": "1", "HEEDFUL_TOML": "none"}
    names = args.cases or list(CASES)
    print(f"{busy_share():.0%} of the machine's processors are in use by others", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder), names)
        spent = measure(Path(folder), names, args.turns)
    rows = [compare(name, spent) for name in names]
    if args.out:
        args.out.write_text(json.dumps({"turns": args.turns, "rows": rows}, indent=2) + "\n", "utf-8")


def prepare(folder: Path, names: Sequence[str]) -> None:
    """Write 120 rows, and make the runs and exports that the commands label with."""
    draw = random.Random(0)
    lines = ["text,label"]
    for number in range(120):
        words = draw.choices(PLAIN, k=draw.randint(3, 9)) + draw.choices(BAD if number % 2 else GOOD, k=2)
        draw.shuffle(words)
        lines.append(f"{' '.join(words)} {number},{'bad' if number % 2 else 'good'}")
    (folder / "reviews.csv").write_text("\n".join(lines) + "\n", "utf-8")
    wanted = {name for case in names for name in PREPARATIONS if name in CASES[case].arguments}
    if "onnx" in wanted:
        wanted.add("run")
    for name in PREPARATIONS:
        if name in wanted:
            run_command(PREPARATIONS[name], folder)


def measure(folder: Path, names: Sequence[str], turns: int) -> dict[str, list[Spent]]:
    """Run the commands and the imports that they are compared with in turns."""
    imports = list(dict.fromkeys(CASES[name].against for name in names))
    spent: dict[str, list[Spent]] = {name: [] for name in (*imports, *names)}
    for turn in range(turns + 1):  # the first turn fills caches and is not counted
        for name in spent:
            one = run_python(("-c", name), folder) if name in imports else run_case(name, folder)
            if turn:
                spent[name].append(one)
                print(f"  {turn}/{turns} {name}: CPU {one.cpu:.2f} s", file=sys.stderr)
    return spent


def run_case(name: str, folder: Path) -> Spent:
    """Run a command; the processor time of training itself is no part of that of `adapt`."""
    if name != "adapt":
        return run_command(CASES[name].arguments, folder)
    spent = run_python(("-c", COUNT_TRAINING, *CASES[name].arguments), folder)
    return Spent(spent.cpu - float((folder / "training").read_text()), spent.wall)


def run_command(arguments: Sequence[str], folder: Path) -> Spent:
    return run_python(("-m", "heedful", *arguments), folder)


def run_python(arguments: Sequence[str], folder: Path) -> Spent:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} failed:\n{done.stderr[-2000:]}")
    return Spent(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def compare(name: str, spent: dict[str, list[Spent]]) -> dict[str, object]:
    """Print one command beside its import, and return it as a row."""
    case = CASES[name]
    ours, base = (median(one.cpu for one in spent[side]) for side in (name, case.against))
    wall = min(one.wall for one in spent[name])
    goal = "" if case.goal is None else f" (goal {case.goal:g})"
    print(
        f"{name:14} {ours:6.2f} s of CPU, {ours / base:5.2f} times {case.against}{goal}; "
        f"fastest turn {wall:.2f} s",
        flush=True,
    )
    return {"case": name, "cpu": ours, "against": case.against, "times": ours / base, "goal": case.goal,
            "fastest_wall": wall}  # fmt: skip


if __name__ == "__main__":
    main()
