"""How good each candidate of `heedful solve` is with few labels, which is what solve expects of it.

    python -m benchmarks.candidates run --rows 50      draws of 50 rows of each task
    python -m benchmarks.candidates show               the tables, from what was measured so far

Each candidate is trained on the same rows without a dev split, and scored on rows of the task's dev split (of
BoolQ, whose dev is scored as test elsewhere, on other rows of train). No row of test is read. The draws have
seeds that no other benchmark uses. A finished run is one line of docs/results/candidates.jsonl, with the
probabilities that it gives to the scored rows, so that averages can be scored too. The data are read from
$HEEDFUL_DATA.
"""

from __future__ import annotations

import argparse
import base64
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from benchmarks.machine import OFFLINE
from benchmarks.settings import read_ledger
from benchmarks.solve import ROWS_PER_LABEL, TASKS
from heedful.data import load_task
from heedful.solve.candidates import CANDIDATES

LEDGER = Path(__file__).parents[1] / "docs" / "results" / "candidates.jsonl"
FIRST_DRAW, DRAWS = 100, 3
SCORED = 400
"""Number of rows that each run is scored on."""
NAMES = ("tfidf", "head", "head-words", "contrastive", "top-layers", "full")
MANY_LABELS = 20
"""Contrastive tuning is not tried with more labels."""


class Cell(NamedTuple):
    """One run."""

    task: str
    rows: int
    draw: int
    candidate: str

    @property
    def key(self) -> str:
        return f"{self.task} {self.rows} {self.draw} {self.candidate}"


def cells(rows: int) -> Iterator[Cell]:
    for draw in range(FIRST_DRAW, FIRST_DRAW + DRAWS):
        for task in TASKS:
            yield from (Cell(task, rows, draw, name) for name in NAMES)


def run(rows: int, tasks: Sequence[str]) -> None:
    for cell in cells(rows):
        if (tasks and cell.task not in tasks) or cell.key in {row["key"] for row in read_ledger(LEDGER)}:
            continue
        with tempfile.TemporaryDirectory(prefix="heedful-candidates-") as name:
            labels = write_rows(cell, Path(name))
            if labels > MANY_LABELS and cell.candidate == "contrastive":
                continue
            row = {"key": cell.key, **cell._asdict(), **run_candidate(cell, Path(name))}
        with LEDGER.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{cell.key}: {row['accuracy']:.3f}, {row['seconds']:.0f} s", flush=True)


def write_rows(cell: Cell, folder: Path) -> int:
    """Write the training rows of a draw and the rows to score, and return the number of labels."""
    task = load_task(cell.task)
    train = task.splits["train"]
    own_dev = cell.task != "boolq"
    scored = task.splits["dev"] if own_dev else train
    assert train.labels is not None
    assert scored.labels is not None
    order = np.random.default_rng(cell.draw).permutation(len(train))
    first = [order[train.labels[order] == label][:ROWS_PER_LABEL] for label in range(len(task.label_names))]
    needed = np.concatenate(first)
    rest = order[~np.isin(order, needed)]
    chosen = np.concatenate([needed, rest[: max(0, cell.rows - len(needed))]])
    pool = np.arange(len(scored)) if own_dev else np.setdiff1d(order, chosen)
    others = np.random.default_rng(0).permutation(pool)[:SCORED]
    for name, split, rows in (("train", train, chosen), ("test", scored, others)):
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"] if split.pairs is None else ["text", "pair", "label"])
            for i in map(int, rows):
                texts = [split.texts[i]] if split.pairs is None else [split.texts[i], split.pairs[i]]
                writer.writerow([*texts, task.label_names[split.labels[i]]])
    return len(task.label_names)


def run_candidate(cell: Cell, folder: Path) -> dict[str, Any]:
    settings = next(dict(c.settings) for c in CANDIDATES if c.name == cell.candidate)
    model, out = settings.pop("model", "minilm"), folder / "run"
    words = ["adapt", model, str(folder), "--seed", str(cell.draw), "--train-eval-rows", "0"]
    for name, value in settings.items():
        words += [f"--{name.replace('_', '-')}", *([value] if isinstance(value, str) else value)]
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "heedful", *words, "--out", str(out)],
        check=False, capture_output=True, text=True, env=os.environ | OFFLINE,
    )  # fmt: skip
    if done.returncode:
        sys.exit(f"heedful {' '.join(words)} failed:\n{done.stderr[-3000:]}")
    lines = (out / "predictions_test.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    names = sorted(rows[0]["probabilities"])
    table = np.array([[row["probabilities"][name] for name in names] for row in rows], np.float16)
    labels = np.array([names.index(row["label"]) for row in rows], np.uint8)
    return {
        "accuracy": float((table.argmax(1) == labels).mean()),
        "seconds": round(time.monotonic() - began, 1),
        "classes": len(names),
        "labels": base64.b64encode(labels.tobytes()).decode(),
        "probabilities": base64.b64encode(table.tobytes()).decode(),
    }


def read_tables(rows: list[dict[str, Any]]) -> dict[tuple[str, int, int], dict[str, Any]]:
    """Return the labels and each candidate's probabilities by task, rows and draw."""
    tables: dict[tuple[str, int, int], dict[str, Any]] = defaultdict(dict)
    for row in rows:
        group = tables[row["task"], row["rows"], row["draw"]]
        group["labels"] = np.frombuffer(base64.b64decode(row["labels"]), np.uint8)
        probabilities = np.frombuffer(base64.b64decode(row["probabilities"]), np.float16)
        group[row["candidate"]] = probabilities.reshape(-1, row["classes"]).astype(np.float64)
    return tables


def show_tables(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table per number of rows: candidates and averages of them by tasks."""
    parts = []
    for count in sorted({row["rows"] for row in rows}):
        groups = {key: group for key, group in read_tables(rows).items() if key[1] == count}
        parts += [f"### {count} labels", show_table(groups)]
    return "\n\n".join(parts)


def show_table(groups: dict[tuple[str, int, int], dict[str, Any]]) -> str:
    tasks = [task for task in TASKS if any(key[0] == task for key in groups)]
    averages = [pair for size in (2, 3) for pair in combinations(NAMES[1:], size)]
    lines = [["candidate", *tasks, "mean"], ["---", *["---:"] * (len(tasks) + 1)]]
    for members in [(name,) for name in NAMES] + averages:
        scores = {
            task: [score_average(g, members) for key, g in groups.items() if key[0] == task] for task in tasks
        }
        measured = {task: [s for s in values if s is not None] for task, values in scores.items()}
        means = [fmean(values) for values in measured.values() if values]
        if means:
            cells = [f"{fmean(measured[t]):.3f} ({len(measured[t])})" if measured[t] else "" for t in tasks]
            lines.append([" + ".join(members), *cells, f"{fmean(means):.3f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def score_average(group: dict[str, Any], members: Sequence[str]) -> float | None:
    if any(name not in group for name in members):
        return None
    mean = np.mean([group[name] for name in members], axis=0)
    return float((mean.argmax(1) == group["labels"]).mean())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("run", "show"))
    parser.add_argument("--rows", type=int, default=50)
    parser.add_argument("--tasks", nargs="*", default=())
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments.rows, arguments.tasks)
    else:
        print(show_tables(read_ledger(LEDGER)))


if __name__ == "__main__":
    main()
