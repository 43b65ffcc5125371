"""Measure how time and memory grow with rows, lengths, classes, runs of a study and runs of a report.

    python -m benchmarks.growth                     everything, up to sizes that take a few minutes
    python -m benchmarks.growth rows report --large

Each size is a child process with one thread. Its processor time, and its peak memory beyond what it had
before, are read as size to a power between the two largest sizes: 1 is in proportion, 2 a square. What grows
with a higher power than the case allows is marked; what hardly grows is "flat".

rows        reading a task of N rows and tokenizing it (`load_task`, `tokenize`)
length      a forward and backward pass of softmax attention over one text of N tokens
classes     `heedful adapt tfidf` on 4,000 rows with N labels
study       the states and results of a study of N runs, read as its table reads them
report      `heedful report` on N run directories
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import busy_share, run_child

WORDS = ("the", "room", "was", "clean", "and", "staff", "kind", "food", "cold", "we", "table", "never")


@dataclass(frozen=True)
class Case:
    sizes: tuple[int, ...]
    large: tuple[int, ...]
    allowed_time: float = 1.15
    allowed_memory: float = 1.15


CASES = {
    "rows": Case((1_000, 10_000, 100_000), (1_000_000,), allowed_memory=0.75),
    "length": Case((256, 1_024, 4_096), (16_384,), allowed_time=2.1),
    "classes": Case((2, 10, 100), (1_000,)),
    "study": Case((10, 100, 1_000), ()),
    "report": Case((1, 10, 50), (500,)),
}
FLAT_SECONDS, FLAT_GB = 0.1, 0.02
"""Growth over the whole range below which nothing can be said about its form."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"cases to run (default: all): {', '.join(CASES)}")
    parser.add_argument("--large", action="store_true", help="also the largest sizes")
    parser.add_argument("--out", type=Path, help="also write the numbers to this JSON file")
    parser.add_argument("--size", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    for name in args.cases:
        if name not in CASES:
            parser.error(f"there is no case {name}; there are {', '.join(CASES)}")
    if args.size:
        print(json.dumps(measure(args.cases[0], args.size)))
        return
    os.environ["OMP_NUM_THREADS"] = "1"
    print(f"{busy_share():.0%} of the machine's processors are in use by others", file=sys.stderr)
    rows = []
    for name in args.cases or CASES:
        case = CASES[name]
        sizes = (*case.sizes, *(case.large if args.large else ()))
        measured = [run_child("benchmarks.growth", name, "--size", str(size)) for size in sizes]
        rows += [judge(name, sizes, measured, key) for key in ("cpu", "memory")]
    if args.out:
        args.out.write_text(json.dumps(rows, indent=2) + "\n", "utf-8")


def measure(name: str, size: int) -> dict[str, float]:
    """Do the work of one size in this process; return its processor time and its peak memory."""
    from heedful.runs.environment import forget_peak_memory, peak_memory_gb

    work = {"rows": prepare_rows, "length": prepare_length, "classes": prepare_classes,
            "study": prepare_study, "report": prepare_report}[name]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HEEDFUL_CACHE"] = str(Path(folder) / "cache")
        do = work(Path(folder), size)
        forget_peak_memory()
        before, start = peak_memory_gb(), time.process_time()
        do()
        return {"cpu": time.process_time() - start, "memory": max(0.0, peak_memory_gb() - before)}


def write_table(path: Path, rows: int, labels: int) -> Path:
    """Write rows with labels that their words decide."""
    with path.open("w", encoding="utf-8") as file:
        file.write("text,label\n")
        for i in range(rows):
            words = [WORDS[(i * step) % len(WORDS)] for step in (1, 5, 7, 11)]
            file.write(f"{' '.join(words)} topic{i % labels} {i},label{i % labels}\n")
    return path


def prepare_rows(folder: Path, size: int) -> Callable[[], Any]:
    from heedful.data import load_task, tokenize
    from heedful.text import load

    table, tokenizer = write_table(folder / "rows.csv", size, 2), load("minilm")
    return lambda: tokenize(load_task(str(table)).splits["train"], tokenizer, max_len=64)


def prepare_length(folder: Path, size: int) -> Callable[[], Any]:
    import torch

    from heedful import attention

    torch.set_num_threads(1)
    torch.manual_seed(0)
    mechanism = attention.make("softmax", n_heads=4, d_head=32, max_len=size, scale=32**-0.5, dropout=0.1)
    q, k, v = (torch.randn(1, 4, size, 32, requires_grad=True) for _ in range(3))

    def do() -> None:
        mechanism(q, k, v, attention.Mask()).sum().backward()

    return do


def prepare_classes(folder: Path, size: int) -> Callable[[], Any]:
    import heedful

    table = write_table(folder / "rows.csv", 4_000, size)
    return lambda: heedful.adapt("tfidf", table, out=folder / "run")


def copy_runs(folder: Path, size: int) -> list[Path]:
    """Make one run, and copies of it."""
    import heedful

    run = heedful.adapt("tfidf", write_table(folder / "rows.csv", 400, 2), out=folder / "runs" / "0").folder
    return [run, *(Path(shutil.copytree(run, run.with_name(str(i)))) for i in range(1, size))]


def prepare_study(folder: Path, size: int) -> Callable[[], Any]:
    from heedful.runs.studies import Configuration, StudyFolder, StudyRecord

    runs = copy_runs(folder, size)
    settings = (Configuration(run.name, {"seed": number}) for number, run in enumerate(runs))
    study = StudyFolder(folder)
    study.write(StudyRecord("search", "how does it grow?", 0, {"run": {}}, tuple(settings)))
    return study.read_outcomes


def prepare_report(folder: Path, size: int) -> Callable[[], Any]:
    import heedful

    runs = copy_runs(folder, size)
    return lambda: heedful.report(*runs, out=folder / "report.html")


def judge(name: str, sizes: tuple[int, ...], measured: list[dict[str, float]], key: str) -> dict[str, Any]:
    """Print the exponent of one quantity and whether it is allowed, and return them."""
    case, values = CASES[name], [one[key] for one in measured]
    allowed = case.allowed_time if key == "cpu" else case.allowed_memory
    flat = values[-1] - values[0] < (FLAT_SECONDS if key == "cpu" else FLAT_GB)
    exponent = 0.0 if flat else fit_exponent(sizes, values)
    verdict = "flat" if flat else "as it should" if exponent <= allowed else "faster than it should"
    unit = "s" if key == "cpu" else "GB"
    shown = ", ".join(f"{size:,}: {value:.3g} {unit}" for size, value in zip(sizes, values, strict=True))
    print(f"{name:8} {key:6} exponent {exponent:4.2f} (at most {allowed:g}): {verdict}; {shown}", flush=True)
    return {"case": name, "what": key, "sizes": sizes, "values": values, "exponent": exponent,
            "allowed": allowed, "verdict": verdict}  # fmt: skip


def fit_exponent(sizes: tuple[int, ...], values: list[float]) -> float:
    """Return the slope between the logarithms of the two largest sizes."""
    return math.log(values[-1] / max(values[-2], 1e-9)) / math.log(sizes[-1] / sizes[-2])


if __name__ == "__main__":
    main()
