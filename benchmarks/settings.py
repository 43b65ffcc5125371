"""Measure the settings of `heedful adapt` on public data: the table behind its rules for default settings.

    python -m benchmarks.settings run --part small      few labels: 50 and 500 rows, several seeds
    python -m benchmarks.settings run --part all        all rows, one seed
    python -m benchmarks.settings run --part methods    the parameter-efficient methods
    python -m benchmarks.settings run --part encoder    another encoder, thenlper/gte-small
    python -m benchmarks.settings baselines             score the simple rules of all lines again
    python -m benchmarks.settings show                  the tables, from what was measured so far

Each run is the command `heedful adapt` in a process of its own, on one thread. A finished run is one line of
docs/results/settings.jsonl, so that a stopped measurement goes on where it was; two processes on two cores
share the work. The data are read from $HEEDFUL_DATA, the other encoder from $HEEDFUL_MODELS.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

LEDGER = Path(__file__).parents[1] / "docs" / "results" / "settings.jsonl"
SHORT = ("sst2", "banking77", "tweet_emotion", "tweet_irony")
LONG = ("yelp", "boolq")
BEFORE = (
    "--lr 5e-5 --batch-size 32 --epochs 3 --warmup 0.06 --max-len 256 --class-weights none --pool first "
    "--head-start random"
)
SETTINGS = {
    "rules": "",
    "before 0.2": BEFORE,
    "random head": "--head-start random",
    "rate 5e-5": "--lr 5e-5",
    "rate 2e-4": "--lr 2e-4",
    "60 steps": "--steps 60 --eval-every 20",
    "500 steps": "--steps 500 --eval-every 50",
    "head": "--method head",
    "lora": "--method lora",
    "bitfit": "--method bitfit",
    "prompt": "--method prompt",
    "prefix": "--method prefix",
    "lora, rate 2e-4": "--method lora --lr 2e-4",
    "lora, rate 1.5e-3": "--method lora --lr 1.5e-3",
    "bitfit, rate 3e-4": "--method bitfit --lr 3e-4",
    "bitfit, rate 3e-3": "--method bitfit --lr 3e-3",
    "prefix, rate 3e-3": "--method prefix --lr 3e-3",
    "prefix, rate 3e-2": "--method prefix --lr 3e-2",
    "prompt, rate 3e-3": "--method prompt --lr 3e-3",
    "prompt, rate 3e-2": "--method prompt --lr 3e-2",
    "prompt, 500 steps": "--method prompt --steps 500 --eval-every 50",
    "prefix, 500 steps": "--method prefix --steps 500 --eval-every 50",
}
"""What each setting adds to the command."""
DESCRIPTIONS = {
    "rules": "**no options: the rules**",
    "before 0.2": "the defaults before version 0.2",
    "random head": "rules, but a random head",
    "rate 5e-5": "rules, but learning rate 5e-5",
    "rate 2e-4": "rules, but learning rate 2e-4",
    "60 steps": "rules, but 60 steps",
    "500 steps": "rules, but 500 steps",
}
METHODS = ("lora", "bitfit", "prefix", "prompt")
SMALL = (("rules", "before 0.2", "head"), ("random head", "60 steps"), ("rate 5e-5", "rate 2e-4"))
"""The settings of the part with few labels, the most important first."""


@dataclass(frozen=True)
class Cell:
    """One run of the table."""

    task: str
    rows: int | None
    seed: int
    setting: str
    model: str = "minilm"

    @property
    def key(self) -> str:
        return f"{self.model} {self.task} {self.rows or 'all'} {self.seed} {self.setting}"

    @property
    def command(self) -> list[str]:
        words = ["adapt", self.model, self.task, "--seed", str(self.seed), *SETTINGS[self.setting].split()]
        return words if self.rows is None else [*words, "--train-rows", str(self.rows)]


def cells(part: str) -> Iterator[Cell]:
    """Iterate over the runs of a part, those that tell most first."""
    if part == "small":
        for seed, names in ((0, SMALL[0]), (1, SMALL[0]), (0, SMALL[2]), (0, SMALL[1]), (2, SMALL[0])):
            for rows in (500, 50):
                for task in tasks_for(rows):
                    yield from (Cell(task, rows, seed, name) for name in names)
                if (seed, names) == (0, SMALL[0]):
                    yield from (Cell(task, rows, seed, name) for task in LONG for name in names)
    elif part == "all":
        for name in ("rules", "head"):
            yield from (Cell(task, None, 0, name) for task in (*SHORT, *LONG))
        for name in (*METHODS, "random head"):
            yield from (Cell(task, None, 0, name) for task in ("tweet_emotion", "sst2", "banking77"))
    elif part == "methods":
        other_rates = [name for name in SETTINGS if name.startswith(tuple(f"{each}, " for each in METHODS))]
        for name in (*METHODS, *other_rates):
            for task in ("sst2", "tweet_emotion", "banking77"):
                yield Cell(task, 500, 0, name)
    elif part == "encoder":
        for rows in (500, 50):
            for task in tasks_for(rows):
                for name in ("rules", "before 0.2", "head"):
                    yield Cell(task, rows, 0, name, "thenlper/gte-small")


def tasks_for(rows: int) -> tuple[str, ...]:
    """Return the tasks of short texts that have a row per label; banking77 has 77 labels."""
    return tuple(task for task in SHORT if task != "banking77" or rows >= 77)


def read_ledger(path: Path = LEDGER) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def run_part(part: str) -> None:
    """Run every cell of a part that neither the ledger has nor another process works on."""
    locks = Path(tempfile.gettempdir()) / "heedful-settings"
    locks.mkdir(exist_ok=True)
    for cell in cells(part):
        with (locks / cell.key.replace(" ", "-").replace("/", "-")).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            if cell.key in {row["key"] for row in read_ledger()}:
                continue
            row = run_cell(cell)
            with LEDGER.open("a", encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.write(json.dumps(row) + "\n")
            print(f"{cell.key}: dev {row['dev']:.3f}, test {row['test']:.3f}, {row['cpu']:.0f} s", flush=True)


def run_cell(cell: Cell) -> dict[str, Any]:
    """Run the command of a cell, and return its line of the ledger."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    began, before = time.monotonic(), os.times()
    with tempfile.TemporaryDirectory(prefix="heedful-settings-") as folder:
        run = Path(folder) / "run"
        command = [sys.executable, "-m", "heedful", *cell.command, "--out", str(run)]
        options = ["--threads", "1", "--train-eval-rows", "0"]
        done = subprocess.run(
            [*command, *options], check=False, capture_output=True, text=True, env=environment
        )
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
        results = json.loads((run / "results.json").read_text("utf-8"))
        config = tomllib.loads((run / "config.toml").read_text("utf-8"))
        environment_of_run = json.loads((run / "env.json").read_text("utf-8"))
        chosen = environment_of_run["chosen"]
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return {
        "key": cell.key,
        **{name: getattr(cell, name) for name in ("model", "task", "rows", "seed", "setting")},
        "command": "heedful " + " ".join(cell.command),
        "chosen": {name: config["adapt"].get(name) for name in chosen},
        **{split: results["splits"][split]["value"] for split in ("dev", "test")},
        "interval": results["splits"]["test"]["ci95"],
        "baselines": results["splits"]["test"]["baselines"],
        "best_step": results["best_step"],
        "parameters": results["trainable_parameters"],
        "precision": environment_of_run["precision"],
        "seconds": round(time.monotonic() - began, 1),
        "cpu": round(used, 1),
    }


def renew_baselines() -> None:
    """Score the simple rules of every line of the ledger as a run does it now, once per draw of the rows."""
    from heedful.evaluation.baselines import BagOfWords, score_task_baselines
    from heedful.options.training import AdaptOptions
    from heedful.training.linear import build_linear

    rows, scores = read_ledger(), {}
    for row in rows:
        draw = (row["task"], row["rows"], row["seed"])
        if draw not in scores:
            options = AdaptOptions(model="tfidf", task=row["task"], train_rows=row["rows"], seed=row["seed"])
            job = build_linear(options)
            bag = BagOfWords.from_task(job.task, job.rows, balanced=job.options.class_weights == "balanced")
            scores[draw] = score_task_baselines(job.task, ["test"], bag)["test"]
            print(*draw, scores[draw], flush=True)
        row["baselines"] = scores[draw]
    LEDGER.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def show_tables(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table per model and number of labels: settings by tasks, test accuracy."""
    parts = []
    groups = dict.fromkeys((row["model"], row["rows"]) for row in rows)
    for model, n in sorted(groups, key=lambda group: (group[0] != "minilm", group[1] or sys.maxsize)):
        labels = "all labels" if n is None else f"{n} labels"
        parts.append(f"### {model}, {labels}")
        parts.append(show_table([row for row in rows if (row["model"], row["rows"]) == (model, n)]))
    return "\n\n".join(parts)


def show_table(rows: list[dict[str, Any]]) -> str:
    """Return the table of one model and number of labels, simple rules first."""
    tasks = [task for task in (*SHORT, *LONG) if any(row["task"] == task for row in rows)]
    lines = [["setting", *tasks, "mean CPU seconds"], ["---", *["---:"] * (len(tasks) + 1)]]
    for baseline, label in (("majority", "most frequent label"), ("bag_of_words", "bag of words")):
        cells = []
        for task in tasks:  # all settings of a seed share their baselines
            by_seed = {row["seed"]: row["baselines"][baseline] for row in rows if row["task"] == task}
            cells.append(mean_cell([*by_seed.values()]))
        lines.append([label, *cells, ""])
    for setting in SETTINGS:
        of_setting = [row for row in rows if row["setting"] == setting]
        if of_setting:
            cells = [mean_cell([row["test"] for row in of_setting if row["task"] == task]) for task in tasks]
            seconds = fmean(row["cpu"] for row in of_setting)
            lines.append([DESCRIPTIONS.get(setting, setting), *cells, f"{seconds:,.0f}"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def mean_cell(values: list[float]) -> str:
    """Format the mean over seeds, with their number if there are several."""
    if not values:
        return ""
    return f"{fmean(values):.3f}" + (f" ({len(values)})" if len(values) > 1 else "")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("run", "baselines", "show"))
    parser.add_argument("--part", choices=("small", "all", "methods", "encoder"), default="small")
    arguments = parser.parse_args()
    if arguments.action == "run":
        run_part(arguments.part)
    elif arguments.action == "baselines":
        renew_baselines()
    else:
        print(show_tables(read_ledger()))


if __name__ == "__main__":
    main()
