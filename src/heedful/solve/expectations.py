"""What is expected of each candidate before it is scored, from what it was worth on other tasks.

With 50 labels, ten more rows decide nothing: two candidates of which one is five points better differ in the
other direction on 50 held-out rows in a third of all draws. `benchmarks/candidates.py` measured most of the
numbers below; docs/solve.md says what they mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import numpy as np

from heedful.evaluation.metrics import Metric
from heedful.options.model_names import ENSEMBLE, MAJORITY
from heedful.solve.candidates import FEW_LABELS, DataFacts, name_whole
from heedful.statistics.prior import Expected

ROWS = (50, 500, 5000)
"""Numbers of training rows that the columns below are for; between them, the logarithm decides."""
FEW: Mapping[str, tuple[tuple[float, float], ...]] = {
    MAJORITY: ((-0.20, 0.20), (-0.25, 0.20), (-0.30, 0.20)),
    "tfidf": ((-0.15, 0.08), (-0.07, 0.08), (-0.045, 0.05)),
    "head": ((-0.07, 0.04), (-0.025, 0.03), (-0.05, 0.03)),
    "head-words": ((-0.07, 0.04), (-0.01, 0.03), (-0.03, 0.03)),
    "contrastive": ((-0.01, 0.04), (-0.03, 0.04), (-0.05, 0.04)),
    "top-layers": ((-0.02, 0.02), (-0.005, 0.03), (-0.025, 0.02)),
    "full": ((0.0, 0.02), (0.0, 0.02), (0.0, 0.02)),
    "full-fast": ((-0.005, 0.02), (-0.005, 0.02), (-0.005, 0.02)),
    "full-slow": ((-0.005, 0.02), (-0.005, 0.02), (-0.005, 0.02)),
    ENSEMBLE: ((0.01, 0.02), (0.01, 0.02), (0.005, 0.02)),
}
"""Accuracy relative to full fine-tuning, and its standard deviation between tasks, for each of `ROWS`."""
MANY: Mapping[str, tuple[tuple[float, float], ...]] = {
    **FEW,
    MAJORITY: ((-0.60, 0.20), (-0.70, 0.20), (-0.80, 0.20)),
    "tfidf": ((-0.19, 0.08), (-0.15, 0.08), (-0.025, 0.05)),
    "head": ((0.0, 0.03), (-0.015, 0.02), (-0.015, 0.02)),
    "head-words": ((0.005, 0.03), (-0.005, 0.02), (-0.01, 0.02)),
    "top-layers": ((0.005, 0.02), (0.0, 0.02), (-0.02, 0.02)),
}
"""The same with more labels than `FEW_LABELS`."""


def expect_scores(names: Iterable[str], facts: DataFacts) -> dict[str, Expected]:
    """Return what is expected of candidates with these training rows and labels."""
    table = FEW if facts.labels <= FEW_LABELS else MANY
    return {name: interpolate(table[find_entry(name)], facts.train) for name in names}


def is_like_accuracy(metric: Metric) -> bool:
    """Whether differences of a metric are about as large as those of accuracy, for which the table is."""
    return metric.reads == "predictions" and metric.higher_is_better


def find_entry(name: str) -> str:
    """Return the entry of a candidate; its second attempt, and a further average, have that of the first."""
    for entry in sorted(FEW, key=len, reverse=True):
        if name in (entry, name_whole(entry)) or (entry == ENSEMBLE and name.startswith(f"{entry}-")):
            return entry
    raise KeyError(name)


def interpolate(points: tuple[tuple[float, float], ...], rows: int) -> Expected:
    logs = [math.log(count) for count in ROWS]
    difference, error = (
        float(np.interp(math.log(max(rows, 1)), logs, [point[i] for point in points])) for i in (0, 1)
    )
    return Expected(difference, error)
