"""Compare `heedful adapt --method contrastive` with SetFit, the head alone and full fine-tuning.

    python -m benchmarks.contrastive run --part goal --setfit PYTHON     SST-2, 50 labels, ten draws
    python -m benchmarks.contrastive run --part more --setfit PYTHON     other tasks, 50 and 500 labels
    python -m benchmarks.contrastive show                                the tables of what was measured

PYTHON is the interpreter of an environment with `setfit==1.2.*`, in which nothing else is needed. For each
draw, all systems get the same training rows, the same encoder (MiniLM) and one thread, are run one after the
other, and are scored once on the same rows of test; there is no dev split. The CPU seconds are those of the
whole process. Each finished run is one line of docs/results/contrastive.jsonl, so that a stopped measurement
continues where it was. The data are read from $HEEDFUL_DATA.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

LEDGER = Path(__file__).parents[1] / "docs" / "results" / "contrastive.jsonl"
TEST_ROWS = 872
SYSTEMS = {
    "contrastive": ("--method", "contrastive"),
    "setfit": None,
    "head": ("--method", "head"),
    "full": (),
}
"""What each system adds to the command; SetFit has its own."""


class Cell(NamedTuple):
    """One run."""

    task: str
    rows: int
    draw: int
    system: str

    @property
    def key(self) -> str:
        return f"{self.task} {self.rows} {self.draw} {self.system}"


def cells(part: str) -> Iterator[Cell]:
    if part == "goal":
        for draw in range(10):
            yield from (Cell("sst2", 50, draw, system) for system in ("contrastive", "setfit"))
        return
    for draw in range(3):
        yield from (Cell("sst2", 50, draw, system) for system in ("head", "full"))
        for task, rows in (("tweet_emotion", 50), ("tweet_emotion", 500), ("banking77", 500)):
            yield from (Cell(task, rows, draw, system) for system in ("contrastive", "head", "full"))
        yield Cell("tweet_emotion", 50, draw, "setfit")


def run_part(part: str, python: str | None, systems: set[str], most: int | None) -> None:
    from benchmarks.settings import read_ledger  # not at the top: SetFit's environment has only this file

    measured = {row["key"] for row in read_ledger(LEDGER)}
    todo = [cell for cell in cells(part) if cell.system in systems and cell.key not in measured]
    for cell in todo[:most]:
        with tempfile.TemporaryDirectory(prefix="heedful-contrastive-") as folder:
            write_rows(cell, Path(folder))
            row = run_setfit(folder, python) if cell.system == "setfit" else run_heedful(cell, Path(folder))
        row = {"key": cell.key, **cell._asdict(), **row}
        with LEDGER.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{cell.key}: test {row['test']:.3f}, {row['cpu']:.0f} s", flush=True)


def write_rows(cell: Cell, folder: Path) -> None:
    """Write the training rows of a draw and the test rows, which are the same for all draws, as CSV files."""
    import numpy as np

    from heedful.data import load_task
    from heedful.data.random import stream
    from heedful.objectives.classify import choose_train_rows

    task = load_task(cell.task)
    train, test = task.splits["train"], task.splits["test"]
    assert train.labels is not None
    assert test.labels is not None
    test_order = stream(0, "contrastive benchmark").permutation(len(test))
    chosen = {
        "train": (train, choose_train_rows(np.asarray(train.labels).astype(np.int64), cell.rows, cell.draw)),
        "test": (test, np.sort(test_order[:TEST_ROWS])),
    }
    for name, (split, rows) in chosen.items():
        assert split.labels is not None
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            writer.writerows([split.texts[i], task.label_names[split.labels[i]]] for i in rows)


def run_heedful(cell: Cell, folder: Path) -> dict[str, Any]:
    more = SYSTEMS[cell.system]
    assert more is not None
    words = ["adapt", "minilm", str(folder), *more, "--seed", str(cell.draw), "--threads", "1"]
    out = folder / "run"
    _, cpu = run_process(
        [sys.executable, "-m", "heedful", *words, "--train-eval-rows", "0", "--out", str(out)]
    )
    results = json.loads((out / "results.json").read_text("utf-8"))
    return {"test": results["splits"]["test"]["value"], "cpu": cpu}


def run_setfit(folder: str, python: str | None) -> dict[str, Any]:
    from heedful.text.model_folders import minilm_folder

    if python is None:
        sys.exit("--setfit PYTHON: which interpreter has setfit?")
    output, cpu = run_process([python, str(Path(__file__).resolve()), "setfit", folder, str(minilm_folder())])
    return {**json.loads(output.strip().splitlines()[-1]), "cpu": cpu}


def run_process(command: list[str]) -> tuple[str, float]:
    """Return what a process writes, and the CPU seconds that it used."""
    offline = {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false", "CUDA_VISIBLE_DEVICES": ""}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        env=os.environ | offline | {"OMP_NUM_THREADS": "1"},
    )
    if done.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return done.stdout, round(used, 1)


def train_setfit(folder: Path, model: str) -> None:
    """Train SetFit with its defaults and print its score; called in the environment that has it."""
    import setfit
    from datasets import Dataset

    tables = {}
    for split in ("train", "test"):
        with (folder / f"{split}.csv").open(encoding="utf-8", newline="") as file:
            tables[split] = list(csv.DictReader(file))
    names = sorted({row["label"] for row in tables["train"] + tables["test"]})
    columns = {
        split: {"text": [r["text"] for r in rows], "label": [names.index(r["label"]) for r in rows]}
        for split, rows in tables.items()
    }
    classifier = setfit.SetFitModel.from_pretrained(model)
    arguments = setfit.TrainingArguments(
        output_dir=str(folder / "setfit"), save_strategy="no", report_to="none"
    )
    trainer = setfit.Trainer(
        model=classifier, args=arguments, train_dataset=Dataset.from_dict(columns["train"])
    )
    trainer.train()
    predicted = [int(label) for label in classifier.predict(columns["test"]["text"])]
    right = [one == other for one, other in zip(predicted, columns["test"]["label"], strict=True)]
    print(json.dumps({"test": fmean(right), "version": setfit.__version__}))


def show_tables(rows: list[dict[str, Any]]) -> str:
    """Return a Markdown table of mean test accuracies, and the paired comparison with SetFit."""
    groups = dict.fromkeys((row["task"], row["rows"]) for row in rows)
    lines = [["task", "labels", *SYSTEMS], ["---", "---:", *["---:"] * len(SYSTEMS)]]
    for task, n in groups:
        of_group = [row for row in rows if (row["task"], row["rows"]) == (task, n)]
        lines.append([task, str(n), *(mean_cell([r for r in of_group if r["system"] == s]) for s in SYSTEMS)])
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return "\n\n".join([table, *(compare_with_setfit(rows, task, n) for task, n in groups)]).rstrip()


def mean_cell(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    return f"{fmean(r['test'] for r in rows):.3f} ({len(rows)}), {fmean(r['cpu'] for r in rows):.0f} s"


def compare_with_setfit(rows: list[dict[str, Any]], task: str, n: int) -> str:
    """Return a sentence about the draws that both were run on: a paired t interval, and the CPU seconds."""
    from scipy.stats import t as student

    by_key = {row["key"]: row for row in rows}
    draws = [row["draw"] for row in rows if row["key"] == f"{task} {n} {row['draw']} setfit"]
    pairs = [
        (by_key[f"{task} {n} {draw} contrastive"], by_key[f"{task} {n} {draw} setfit"])
        for draw in draws
        if f"{task} {n} {draw} contrastive" in by_key
    ]
    if len(pairs) < 2:
        return ""
    differences = [ours["test"] - theirs["test"] for ours, theirs in pairs]
    mean, error = fmean(differences), stdev(differences) / math.sqrt(len(pairs))
    half = float(student.ppf(0.975, len(pairs) - 1)) * error
    p = 2 * float(student.sf(abs(mean) / error, len(pairs) - 1)) if error else 1.0
    seconds = [fmean(pair[side]["cpu"] for pair in pairs) for side in (0, 1)]
    return (
        f"{task}, {n} labels, {len(pairs)} draws: contrastive minus SetFit {mean:+.3f} "
        f"(95 % interval {mean - half:+.3f} to {mean + half:+.3f}, paired t test p = {p:.3f}); "
        f"CPU seconds {seconds[0]:.0f} against {seconds[1]:.0f}."
    )


def main() -> None:
    if sys.argv[1:2] == ["setfit"]:
        train_setfit(Path(sys.argv[2]), sys.argv[3])
        return
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("action", choices=("run", "show"))
    parser.add_argument("--part", choices=("goal", "more"), default="goal")
    parser.add_argument("--setfit", metavar="PYTHON")
    parser.add_argument("--systems", nargs="+", choices=SYSTEMS, default=[*SYSTEMS])
    parser.add_argument("--most", type=int, help="stop after this many runs, to go on later")
    arguments = parser.parse_args()
    if arguments.action == "run":
        run_part(arguments.part, arguments.setfit, set(arguments.systems), arguments.most)
    else:
        from benchmarks.settings import read_ledger

        print(show_tables(read_ledger(LEDGER)))


if __name__ == "__main__":
    main()
