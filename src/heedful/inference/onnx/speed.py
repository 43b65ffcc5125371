"""How fast a model labels texts, and how much memory that takes: measured on this machine."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SINGLE, TOGETHER = 1, 32
"""Texts per call."""
SECONDS = 2.0
"""How long each model is measured at each of these."""

Labels = Callable[[Sequence[str], Sequence[str] | None], Any]

MEMORY = """
import sys, json
from heedful.inference.loading import load_run
from heedful.runs.environment import peak_memory_gb
texts, pairs = json.load(sys.stdin)
load_run(sys.argv[1], device="cpu").predict_proba(texts, pairs)
print(peak_memory_gb())
"""


@dataclass(frozen=True)
class Latency:
    """Times of calls with the same number of texts."""

    texts_per_second: float
    p50_ms: float
    p95_ms: float


def measure_latency(
    models: dict[str, Labels], texts: Sequence[str], pairs: Sequence[str] | None, size: int
) -> dict[str, Latency]:
    """Measure several models in turns, on the same texts, in calls of `size` texts."""
    starts = range(0, max(1, len(texts) - size + 1), size)
    times: dict[str, list[float]] = {name: [] for name in models}
    counts = dict.fromkeys(models, 0)
    for call in models.values():
        call(texts[:size], None if pairs is None else pairs[:size])
    end = time.monotonic() + SECONDS * len(models)
    for turn, start in enumerate(repeat(starts)):
        if turn >= 3 and time.monotonic() > end:
            break
        chosen, second = texts[start : start + size], None if pairs is None else pairs[start : start + size]
        for name, call in models.items():
            began = time.perf_counter()
            call(chosen, second)
            times[name].append(time.perf_counter() - began)
            counts[name] += len(chosen)
    return {name: summarize(each, counts[name]) for name, each in times.items()}


def repeat(starts: range) -> Any:
    while True:
        yield from starts


def summarize(times: Sequence[float], texts: int) -> Latency:
    p50, p95 = np.quantile(times, [0.5, 0.95]) * 1000
    return Latency(round(texts / sum(times), 1), round(float(p50), 2), round(float(p95), 2))


def measure_memory(folder: Path, texts: Sequence[str], pairs: Sequence[str] | None) -> float | None:
    """Return the peak memory in MB of a process that loads a model and labels a few texts."""
    import json

    given = json.dumps([list(texts), None if pairs is None else list(pairs)])
    command = [sys.executable, "-c", MEMORY, str(folder.absolute())]
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    return None if done.returncode else round(float(done.stdout.split()[-1]) * 1000, 1)
