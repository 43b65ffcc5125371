"""Intervals of proportions, such as accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import NamedTuple

from scipy import special

LEVEL = 0.95


class Interval(NamedTuple):
    low: float
    high: float


def normal_quantile(level: float) -> float:
    """Return the half-width of a two-sided normal interval in standard errors."""
    return NormalDist().inv_cdf((1 + level) / 2)


def wilson(successes: float, n: float, level: float = LEVEL) -> Interval:
    """Return Wilson's score interval of a proportion (Wilson 1927)."""
    _check_counts(successes, n)
    z = normal_quantile(level)
    proportion, weight = successes / n, z * z / n
    center = (proportion + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(proportion * (1 - proportion) / n + weight / (4 * n))
    return Interval(0.0 if successes == 0 else center - half, 1.0 if successes == n else center + half)


def clopper_pearson(successes: int, n: int, level: float = LEVEL) -> Interval:
    """Return the exact interval of a proportion: its coverage is at least `level` (Clopper, Pearson 1934)."""
    _check_counts(successes, n)
    tail = (1 - level) / 2
    low = 0.0 if successes == 0 else float(special.betaincinv(successes, n - successes + 1, tail))
    high = 1.0 if successes == n else float(special.betaincinv(successes + 1, n - successes, 1 - tail))
    return Interval(low, high)


def widest_interval(scores: Iterable[tuple[float | None, int | None]]) -> float | None:
    """Return the width of the widest Wilson interval of (proportion, number of examples) pairs.

    Values that are missing or no proportion are skipped. A chart whose axis is at least this long does not
    make differences within chance look large.
    """
    intervals = (wilson(value * n, n) for value, n in scores if value is not None and n and 0 <= value <= 1)
    return max((high - low for low, high in intervals), default=None)


def _check_counts(successes: float, n: float) -> None:
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes:g} of {n} is not a proportion")
