"""Whether `heedful solve` keeps its promises, on files that are generated for this purpose alone.

    python -m benchmarks.solve_promises files         three files: wrong labels, 95:5, 40 labels
    python -m benchmarks.solve_promises budget        one and two threads, and a machine that becomes slower
    python -m benchmarks.solve_promises coverage      200 small files: how often the interval covers the truth
    python -m benchmarks.solve_promises show          the tables, from what was measured so far

Each file is one line of docs/results/solve_promises.jsonl, so that a stopped measurement continues. For
coverage the candidates are those that do not train the encoder: the most frequent label, tf-idf, embeddings,
and both together. They are fitted as `adapt` fits them, on part of the 60 to 800 rows of a generated problem
with some wrong labels, and chosen from on dev and five folds as `solve` chooses. The truth is the accuracy on
thousands of further rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data.world.messages import Messages
from heedful.data.world.people import World
from heedful.data.world.reviews import Reviews
from heedful.data.world.sentiment import Sentences
from heedful.evaluation.metrics import METRICS
from heedful.linear.joint import fit_words_and_states
from heedful.linear.logistic import assign_folds, fit_logistic
from heedful.linear.model import TfidfModel
from heedful.runs.directory import Run, follow_choice
from heedful.solve.choice import Cost, ScoredCandidate, ScoredCandidates, choose
from heedful.statistics.label_errors import find_label_errors
from heedful.statistics.proportions import wilson

LEDGER = Path(__file__).parents[1] / "docs" / "results" / "solve_promises.jsonl"
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
MINUTES = 2.0
FILES = ("wrong labels", "95 to 5", "40 labels")
WRONG_SHARE, RARE_SHARE, MANY = 0.1, 0.05, 40
FILE_ROWS = 3000
BUDGETS = {
    "one thread": (1, False),
    "two threads": (2, False),
    "two threads, four other processes from half of the time on": (2, True),
}
POOL = 6000
"""Rows of each kind of problem; what a file does not use measures the truth."""
SIZES = (60, 150, 400, 800)
PROBLEMS = ("messages", "sentiment", "reviews")
NOISES = (0.0, 0.1, 0.2)
FOLDS = 5
SEED = 20_000
"""The world's seed; nothing else uses it."""
COSTS = {"majority": 0.001, "tfidf": 0.1, "head": 5.0, "head-words": 6.0}
"""Milliseconds per text, for the choice among equals."""


@dataclass(frozen=True)
class Pool:
    """Rows of a generated problem, with the states of the frozen encoder."""

    texts: list[str]
    labels: Ints
    n_labels: int
    states: Floats


def generate(kind: str, rows: int, seed: int) -> tuple[list[str], list[str]]:
    """Return texts and labels of a problem of the generated world."""
    world = World(seed)
    source: Any = {"messages": Messages, "sentiment": Sentences, "reviews": Reviews}[kind](world, seed)
    drawn = [source.at(i) for i in range(rows)]
    return [one.text for one in drawn], [str(one.label) for one in drawn]


def spoil(labels: Ints, n_labels: int, share: float, rng: np.random.Generator) -> Ints:
    """Return the labels after a share of them is replaced by another label."""
    chosen = rng.random(len(labels)) < share
    other = (labels + rng.integers(1, n_labels, len(labels))) % n_labels
    return np.where(chosen, other, labels)


@cache
def make_pool(kind: str) -> Pool:
    texts, names = generate(kind, POOL, SEED)
    labels, codes = np.unique(names, return_inverse=True)
    return Pool(texts, codes.astype(np.int64), len(labels), embed(texts))


def embed(texts: list[str]) -> Floats:
    """Return the mean of MiniLM's states for each text."""
    import torch

    from heedful.checkpoints import load
    from heedful.text import load as load_tokenizer

    tokenizer, model = load_tokenizer("minilm"), load("minilm")
    ids = [tokenizer.encode(text).ids[:128] for text in texts]
    order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
    out = np.empty((len(ids), 384))
    with torch.inference_mode():
        for start in range(0, len(order), 64):
            chunk = order[start : start + 64]
            width = max(len(ids[i]) for i in chunk)
            tokens = torch.tensor([ids[i] + [0] * (width - len(ids[i])) for i in chunk])
            mask = torch.tensor([[1] * len(ids[i]) + [0] * (width - len(ids[i])) for i in chunk])
            states = model(tokens, attention_mask=mask)
            sums = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
            out[chunk] = sums.numpy()
    return out


def predict_all(name: str, pool: Pool, labels: Ints, train: Ints, rows: Ints) -> Ints:
    """Fit a candidate on rows of the pool, and return its labels of others."""
    names = [str(i) for i in range(pool.n_labels)]
    texts = [pool.texts[i] for i in train]
    others = [pool.texts[i] for i in rows]
    if name == "majority":
        return np.full(len(rows), np.bincount(labels[train], minlength=pool.n_labels).argmax())
    if name == "tfidf":
        return TfidfModel.fit(texts, None, labels[train], names).logits(others).argmax(1)
    if name == "head":
        return (
            fit_logistic(pool.states[train], labels[train], pool.n_labels).apply(pool.states[rows]).argmax(1)
        )
    states, words = fit_words_and_states(pool.states[train], texts, None, labels[train], names)
    return (states.apply(pool.states[rows]) + words.logits(others)).argmax(1)


def measure_coverage(number: int) -> dict[str, Any]:
    """Simulate one file: choose a candidate on held-out rows, and compare what is said with the truth."""
    rng = np.random.default_rng(number)
    kind, noise = PROBLEMS[number % len(PROBLEMS)], NOISES[number // len(PROBLEMS) % len(NOISES)]
    size = SIZES[rng.integers(len(SIZES))]
    pool = make_pool(kind)
    labels = spoil(pool.labels, pool.n_labels, noise, rng)
    order = rng.permutation(POOL)
    train, dev, test = np.split(order[:size], [int(0.8 * size), int(0.9 * size)])
    truth = order[size:]
    folds = assign_folds(labels[train], FOLDS, number)
    held_out = np.concatenate([dev, *(train[folds == fold] for fold in range(FOLDS))])
    scored, true, on_test = [], {}, {}
    for name in COSTS:
        asked = np.concatenate([dev, test, truth])
        main = predict_all(name, pool, labels, train, asked)
        parts = [main[: len(dev)]]
        parts += [
            predict_all(name, pool, labels, train[folds != fold], train[folds == fold])
            for fold in range(FOLDS)
        ]
        cost = Cost(1.0, COSTS[name], 1.0)
        scored.append(ScoredCandidate(name, name, np.concatenate(parts), cost))
        on_test[name] = int((main[len(dev) :][: len(test)] == labels[test]).sum())
        true[name] = float((main[len(dev) + len(test) :] == labels[truth]).mean())
    choice = choose(ScoredCandidates(tuple(scored), labels[held_out], METRICS.find("accuracy")))
    chosen = choice.chosen
    interval, of_test = choice.interval, wilson(on_test[chosen], len(test))
    assert interval is not None
    return {
        "key": f"coverage {number}",
        "part": "coverage",
        "problem": kind,
        "noise": noise,
        "rows": size,
        "chosen": chosen,
        "true": true,
        "value": choice.value,
        "interval": [interval.low, interval.high],
        "covered": bool(interval.low <= true[chosen] <= interval.high),
        "covered_on_test": bool(of_test.low <= true[chosen] <= of_test.high),
    }


def make_file(name: str) -> tuple[list[str], list[str], list[bool]]:
    """Return texts, labels, and which labels are wrong, of one of the three files."""
    rng = np.random.default_rng(SEED + FILES.index(name))
    texts, labels = generate("messages" if name != "95 to 5" else "sentiment", 20 * FILE_ROWS, SEED + 1)
    if name == "wrong labels":
        names, codes = np.unique(labels[:FILE_ROWS], return_inverse=True)
        given = spoil(codes.astype(np.int64), len(names), WRONG_SHARE, rng)
        return texts[:FILE_ROWS], [str(names[i]) for i in given], list(given != codes)
    if name == "95 to 5":
        rare = [i for i, label in enumerate(labels) if label == "1"][: int(RARE_SHARE * FILE_ROWS)]
        usual = [i for i, label in enumerate(labels) if label == "0"][: FILE_ROWS - len(rare)]
        chosen = rng.permutation([*rare, *usual])
        return [texts[i] for i in chosen], [labels[i] for i in chosen], [False] * FILE_ROWS
    return *make_many_labels(texts), [False] * FILE_ROWS


def make_many_labels(texts: list[str]) -> tuple[list[str], list[str]]:
    """Return texts about 40 subjects, labeled with the subject, of which the text keeps the first half."""
    from heedful.data.world.messages import DESKS

    subjects = sorted({subject for desk in DESKS.values() for subject in desk})[:MANY]
    found = [(text, next((s for s in subjects if s in text), None)) for text in texts]
    rows = [(text, subject) for text, subject in found if subject is not None][:FILE_ROWS]
    # Only the first letters of the subject stay, so that words alone do not decide.
    hidden = [text.replace(subject, subject[: max(2, len(subject) // 2)]) for text, subject in rows]
    return hidden, [subject for _, subject in rows]


@dataclass(frozen=True)
class Solved:
    """A solve folder after its command, and the seconds that this took."""

    folder: Path
    seconds: float

    @property
    def run(self) -> Run:
        return Run.open(follow_choice(self.folder))

    @property
    def facts(self) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads((self.folder / "answer.json").read_text("utf-8"))
        return dict(answer["facts"])


@contextmanager
def solve_file(texts: list[str], labels: list[str], threads: int | None, slower: bool) -> Iterator[Solved]:
    """Run the command on a file; with `slower`, four other processes compute from half of the time on."""
    words = [] if threads is None else ["--threads", str(threads)]
    hogs: list[subprocess.Popen[bytes]] = []
    with tempfile.TemporaryDirectory(prefix="heedful-promises-") as folder:
        file, out = Path(folder) / "data.csv", Path(folder) / "solved"
        with file.open("w", newline="", encoding="utf-8") as opened:
            csv.writer(opened).writerows([("text", "label"), *zip(texts, labels, strict=True)])
        words = ["solve", str(file), "--minutes", f"{MINUTES:g}", "--out", str(out), *words]
        began = time.monotonic()
        process = subprocess.Popen([sys.executable, "-m", "heedful", *words], stderr=subprocess.DEVNULL)
        try:
            if slower:
                with suppress(subprocess.TimeoutExpired):
                    process.wait(30 * MINUTES)
                hogs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
            status = process.wait()
        finally:
            for hog in hogs:
                hog.kill()
        seconds = time.monotonic() - began
        if status:
            sys.exit(f"solve ended with status {status}")
        yield Solved(out, round(seconds, 1))


def measure_file(name: str) -> dict[str, Any]:
    """Solve one of the three files, and compare what it does with its promises."""
    texts, labels, wrong = make_file(name)
    with solve_file(texts, labels, None, slower=False) as solved:
        rows, test = solved.run.read_predictions("dev"), solved.run.read_results().splits["test"]
        found = {}
        if any(wrong):
            is_wrong = dict(zip(texts, wrong, strict=True))
            names = sorted(set(labels))
            codes = [names.index(str(row.label)) for row in rows]
            table = [[row.probabilities[one] for one in names] for row in rows]
            truly = sum(is_wrong[str(row.text)] for row in rows)
            hits = [is_wrong[str(rows[i].text)] for i in find_label_errors(codes, table).rows]
            at = hits[:truly]
            found = {"wrong": truly, "reported": len(hits), "precision": sum(at) / max(1, len(at))}
        return {
            "key": f"file {name}",
            "part": "files",
            "file": name,
            "minutes": MINUTES,
            "seconds": solved.seconds,
            "chosen": solved.facts["chosen"],
            "test": test.value,
            "interval": test.ci95,
            "baselines": test.baselines,
            **found,
        }


def measure_budget(name: str) -> dict[str, Any]:
    """Solve a file with a number of threads, on a machine that stays as it is or becomes slower."""
    threads, slower = BUDGETS[name]
    texts, labels = generate("reviews", FILE_ROWS, SEED + 2)
    with solve_file(texts, labels, threads, slower) as solved:
        return {
            "key": f"budget {name}",
            "part": "budget",
            "budget": name,
            "minutes": MINUTES,
            "seconds": solved.seconds,
            "chosen": solved.facts["chosen"],
            "test": solved.run.read_results().splits["test"].value,
        }


def read_ledger(path: Path = LEDGER) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []


def measure(part: str, count: int) -> Iterator[dict[str, Any]]:
    """Measure what the ledger lacks."""
    measured = {row["key"] for row in read_ledger()}
    if part == "files":
        yield from (measure_file(name) for name in FILES if f"file {name}" not in measured)
    elif part == "budget":
        yield from (measure_budget(name) for name in BUDGETS if f"budget {name}" not in measured)
    else:
        yield from (measure_coverage(i) for i in range(count) if f"coverage {i}" not in measured)


def show_tables(rows: list[dict[str, Any]]) -> str:
    parts = []
    if files := [row for row in rows if row["part"] == "files"]:
        lines = [
            "| file | seconds of 120 | chosen | test accuracy | most frequent label | wrong labels found |"
        ]
        lines.append("| --- | ---: | --- | --- | ---: | --- |")
        for row in files:
            low, high = row["interval"]
            found = (
                f"{row['precision']:.2f} of the first {row['wrong']} rows listed" if "wrong" in row else ""
            )
            score = f"{row['test']:.3f} ({low:.3f} to {high:.3f})"
            majority = f"{row['baselines']['majority']:.3f}"
            lines.append(
                f"| {row['file']} | {row['seconds']:.0f} | {row['chosen']} | {score} | {majority} | {found} |"
            )
        parts.append("\n".join(lines))
    if budgets := [row for row in rows if row["part"] == "budget"]:
        lines = ["| solve with | seconds of 120 | chosen | test accuracy |", "| --- | ---: | --- | ---: |"]
        lines += [
            f"| {r['budget']} | {r['seconds']:.0f} | {r['chosen']} | {r['test']:.3f} |" for r in budgets
        ]
        parts.append("\n".join(lines))
    if covered := [row for row in rows if row["part"] == "coverage"]:
        lines = ["| rows | files | interval on held-out rows covers | interval on test covers | mean error |"]
        lines.append("| ---: | ---: | ---: | ---: | ---: |")
        for size in (*SIZES, None):
            part = [row for row in covered if size in (None, row["rows"])]
            if part:
                shares = [np.mean([row[key] for row in part]) for key in ("covered", "covered_on_test")]
                error = np.mean([row["value"] - row["true"][row["chosen"]] for row in part])
                label = "all" if size is None else size
                lines.append(f"| {label} | {len(part)} | {shares[0]:.3f} | {shares[1]:.3f} | {error:+.3f} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("files", "budget", "coverage", "show"))
    parser.add_argument("--count", type=int, default=200, help="number of simulated files")
    parser.add_argument("--most", type=int, help="stop after this many lines, to go on later")
    arguments = parser.parse_args()
    if arguments.part == "show":
        print(show_tables(read_ledger()))
        return
    for row in islice(measure(arguments.part, arguments.count), arguments.most):
        with LEDGER.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        print({name: value for name, value in row.items() if name != "baselines"}, flush=True)


if __name__ == "__main__":
    main()
