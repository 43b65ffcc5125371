"""Compare `heedful solve` with what people use today, on public data, with the same labels and the same time.

    python -m benchmarks.solve prepare                    make an environment per peer, in $HEEDFUL_PEERS
    python -m benchmarks.solve run --labels 50            50 labels, 2 minutes, three draws
    python -m benchmarks.solve run --labels 500           500 labels, 5 minutes
    python -m benchmarks.solve run --labels all           all labels, 10 minutes
    python -m benchmarks.solve show                       the tables, from what was measured so far

The peers are tf-idf with logistic regression, sentence-transformers with logistic regression, SetFit (with
few labels) and transformers' Trainer, each in an environment of its own (`benchmarks/solve_peers.py`). All
sides of a cell train on the same rows one after the other, then label the same test rows. A finished side is
one line of docs/results/solve.jsonl, so that a stopped measurement goes on where it was. The data are read
from $HEEDFUL_DATA.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from benchmarks.machine import OFFLINE
from heedful.data import Task, load_task
from heedful.statistics.comparison import compare
from heedful.text.model_folders import minilm_folder

LEDGER = Path(__file__).parents[1] / "docs" / "results" / "solve.jsonl"
TASKS = ("sst2", "banking77", "tweet_emotion", "tweet_irony", "yelp", "boolq")
MINUTES = {"50": 2.0, "500": 5.0, "all": 10.0}
SEEDS = {"50": (0, 1, 2), "500": (0,), "all": (0,)}
ROWS_PER_LABEL = 2
"""The fewest rows per label: a task with many labels gets more than 50 of them."""
TORCH = "torch==2.13.0"
PEERS = {
    "tfidf": ("scikit-learn",),
    "sentence-transformers": (TORCH, "sentence-transformers", "scikit-learn"),
    "setfit": (TORCH, "setfit==1.2.*"),
    "trainer": (TORCH, "transformers", "accelerate"),
}
"""What is installed for each peer."""
SETFIT_ROWS = 500
"""SetFit pairs every row with every other, so that it is a tool for few labels."""
KILLED_AFTER = 4
"""A side that needs this many times its minutes is stopped and has no score."""


@dataclass(frozen=True)
class Cell:
    """One task with a number of labels and a draw of them."""

    task: str
    labels: str
    seed: int

    def key(self, side: str) -> str:
        return f"{side} {self.task} {self.labels} {self.seed}"


def cells(labels: str) -> Iterator[Cell]:
    for seed in SEEDS[labels]:
        for task in TASKS:
            yield Cell(task, labels, seed)


def sides_of(cell: Cell) -> tuple[str, ...]:
    peers = tuple(name for name in PEERS if name != "setfit" or cell.labels != "all")
    return ("heedful", *peers)


def run(labels: str, only: list[str], sides: list[str], seeds: list[int], minutes: float | None) -> None:
    minutes = minutes or MINUTES[labels]
    for cell in cells(labels):
        if seeds and cell.seed not in seeds:
            continue
        measured = {row["key"] for row in read_ledger()}
        todo = [
            side for side in sides_of(cell) if cell.key(side) not in measured and side in (sides or (side,))
        ]
        if (only and cell.task not in only) or not todo:
            continue
        with tempfile.TemporaryDirectory(prefix="heedful-solve-") as name:
            folder = Path(name)
            answers = write_data(cell, folder)
            for side in todo:
                row = run_side(side, cell, folder, answers, minutes)
                LEDGER.parent.mkdir(parents=True, exist_ok=True)
                with LEDGER.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
                print(describe(row), flush=True)


def write_data(cell: Cell, folder: Path) -> list[str]:
    """Write the rows that every side reads, and return the labels of test."""
    task = load_task(cell.task)
    train = draw_rows(task, cell)
    splits = {"train": train, "test": np.arange(len(task.splits["test"]))}
    if cell.labels == "all" and "dev" in task.splits:
        splits["dev"] = np.arange(len(task.splits["dev"]))
    (folder / "data").mkdir()
    for name, chosen in splits.items():
        rows = read_rows(task, name, chosen)
        lines = [json.dumps(row) for row in rows]
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        columns = ["text", "label"] if rows[0]["pair"] is None else ["text", "pair", "label"]
        with (folder / "data" / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
    return [row["label"] for row in read_rows(task, "test", splits["test"])]


def draw_rows(task: Task, cell: Cell) -> Any:
    """Draw training rows at random, with at least a few rows of each label."""
    labels = task.splits["train"].labels
    assert labels is not None
    order = np.random.default_rng(cell.seed).permutation(len(labels))
    if cell.labels == "all":
        return np.sort(order)
    first = [order[labels[order] == label][:ROWS_PER_LABEL] for label in range(len(task.label_names))]
    needed = np.concatenate(first)
    rest = order[~np.isin(order, needed)]
    return np.sort(np.concatenate([needed, rest[: max(0, int(cell.labels) - len(needed))]]))


def read_rows(task: Task, name: str, chosen: Any) -> list[dict[str, Any]]:
    split = task.splits[name]
    assert split.labels is not None
    return [
        {
            "text": split.texts[int(i)],
            "pair": None if split.pairs is None else split.pairs[int(i)],
            "label": task.label_names[split.labels[i]],
        }
        for i in chosen
    ]


def run_side(side: str, cell: Cell, folder: Path, answers: list[str], minutes: float) -> dict[str, Any]:
    """Train one side, label test, and return the line of the ledger."""
    began, before = time.monotonic(), os.times()
    predicted, problem = (solve if side == "heedful" else run_peer)(side, cell, folder, minutes)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    right = [int(one == other) for one, other in zip(predicted, answers, strict=True)] if predicted else []
    answer = folder / "solved" / "answer.json"
    known = json.loads(answer.read_text("utf-8"))["facts"] if side == "heedful" and answer.is_file() else {}
    return {
        "key": cell.key(side),
        "side": side,
        "task": cell.task,
        "labels": cell.labels,
        "seed": cell.seed,
        "minutes": minutes,
        "test": fmean(right) if right else None,
        "right": "".join(map(str, right)),
        "problem": problem,
        "seconds": round(time.monotonic() - began, 1),
        "cpu": round(cpu, 1),
        **{name: known[name] for name in ("chosen", "dev", "left_out") if name in known},
    }


def solve(side: str, cell: Cell, folder: Path, minutes: float) -> tuple[list[str], str]:
    out, labeled = folder / "solved", folder / "labeled.csv"
    heedful = [sys.executable, "-m", "heedful"]
    problem = run_command(
        [*heedful, "solve", str(folder / "data"), "--minutes", f"{minutes:g}", "--out", str(out)], minutes
    )
    if problem:
        return [], problem
    test = folder / "data" / "test.csv"
    problem = run_command([*heedful, "predict", str(out), "--in", str(test), "--out", str(labeled)], minutes)
    if problem:
        return [], problem
    with labeled.open(newline="", encoding="utf-8") as file:
        return [row["predicted_label"] for row in csv.DictReader(file)], ""


def run_peer(side: str, cell: Cell, folder: Path, minutes: float) -> tuple[list[str], str]:
    script = Path(__file__).with_name("solve_peers.py")
    python = peers_folder() / side / "bin" / "python"
    if not python.is_file():
        sys.exit(f"{python} is missing: python -m benchmarks.solve prepare")
    words = [
        str(python),
        str(script),
        side,
        str(folder),
        "--minutes",
        f"{minutes:g}",
        "--seed",
        str(cell.seed),
    ]
    problem = run_command(words, minutes, folder)
    predictions = folder / "predictions.json"
    if problem:
        return [], problem
    answers: list[str] = json.loads(predictions.read_text("utf-8"))
    predictions.unlink()
    return answers, ""


def run_command(words: list[str], minutes: float, folder: Path | None = None) -> str:
    """Run a command and return what went wrong, if anything."""
    environment = os.environ | OFFLINE | {"MINILM": str(minilm_folder())}
    try:
        done = subprocess.run(
            words,
            check=False,
            capture_output=True,
            text=True,
            env=environment,
            cwd=folder,
            timeout=60 * minutes * KILLED_AFTER,
        )
    except subprocess.TimeoutExpired:
        return f"stopped after {KILLED_AFTER} times its {minutes:g} minutes"
    return (done.stderr.strip().splitlines() or ["failed"])[-1] if done.returncode else ""


def peers_folder() -> Path:
    return Path(os.environ.get("HEEDFUL_PEERS", Path.home() / ".cache" / "heedful-peers"))


def prepare() -> None:
    """Make a virtual environment per peer."""
    for name, packages in PEERS.items():
        folder = peers_folder() / name
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        subprocess.run([str(folder / "bin" / "pip"), "install", "--quiet", *packages], check=True)


def read_ledger() -> list[dict[str, Any]]:
    return [json.loads(line) for line in LEDGER.read_text("utf-8").splitlines()] if LEDGER.is_file() else []


def describe(row: dict[str, Any]) -> str:
    score = row["problem"] or f"{row['test']:.3f}"
    return f"{row['key']}: {score}, {row['seconds']:.0f} s, {row['cpu']:.0f} s of processor time"


def show_tables(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table per number of labels: tasks by sides, test accuracy and average rank."""
    parts = []
    for labels in MINUTES:
        of_labels = [row for row in rows if row["labels"] == labels]
        if of_labels:
            parts.append(f"### {labels} labels, {MINUTES[labels]:g} minutes")
            parts.append(show_table(of_labels))
    return "\n\n".join(parts)


def show_table(rows: list[dict[str, Any]]) -> str:
    sides = [side for side in ("heedful", *PEERS) if any(row["side"] == side for row in rows)]
    lines = [["task", *sides, "solve against the best peer"], ["---", *["---:"] * len(sides), "---"]]
    ranks: dict[str, list[float]] = {side: [] for side in sides}
    for task in TASKS:
        of_task = [row for row in rows if row["task"] == task and row["test"] is not None]
        means = {
            side: fmean(values)
            for side in sides
            if (values := [row["test"] for row in of_task if row["side"] == side])
        }
        if means:
            tried = {row["side"] for row in rows if row["task"] == task}  # one without a score is the last
            for side in tried:
                ranks[side].append(1 + sum(other > means.get(side, -1.0) for other in means.values()))
            cells = [f"{means[side]:.3f}" if side in means else "" for side in sides]
            lines.append([task, *cells, compare_with_best(of_task, means)])
    lines.append(["average rank", *(f"{fmean(ranks[s]):.1f}" if ranks[s] else "" for s in sides), ""])
    seconds = [fmean(row["cpu"] for row in rows if row["side"] == side) for side in sides]
    lines.append(["mean seconds of processor time", *(f"{value:,.0f}" for value in seconds), ""])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def compare_with_best(rows: list[dict[str, Any]], means: dict[str, float]) -> str:
    """Return the difference to the best peer, and whether it is beyond chance on the rows of test."""
    peers = {side: value for side, value in means.items() if side != "heedful"}
    if "heedful" not in means or not peers:
        return ""
    best = max(peers, key=lambda side: peers[side])
    ours = {row["seed"]: row["right"] for row in rows if row["side"] == "heedful"}
    theirs = {row["seed"]: row["right"] for row in rows if row["side"] == best}
    seeds = sorted(ours.keys() & theirs.keys())
    one, other = ([[int(c) for c in right[seed]] for seed in seeds] for right in (ours, theirs))
    result = compare(one, other, paired_seeds=True)
    verdict = "no difference shown" if not result.differs else "better" if result.difference > 0 else "worse"
    return f"{result.difference:+.3f} ({result.low:+.3f} to {result.high:+.3f}) to {best}: {verdict}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("prepare", "run", "show"))
    parser.add_argument("--labels", choices=tuple(MINUTES), default="50")
    parser.add_argument("--tasks", nargs="*", default=[], help="only these tasks")
    parser.add_argument("--sides", nargs="*", default=[], help="only these sides, such as heedful or setfit")
    parser.add_argument("--seeds", nargs="*", type=int, default=[], help="only these draws")
    parser.add_argument(
        "--minutes", type=float, help="another time: more on a machine that gives only a part of a core"
    )
    arguments = parser.parse_args()
    if arguments.action == "prepare":
        prepare()
    elif arguments.action == "run":
        run(arguments.labels, arguments.tasks, arguments.sides, arguments.seeds, arguments.minutes)
    else:
        print(show_tables(read_ledger()))


if __name__ == "__main__":
    main()
