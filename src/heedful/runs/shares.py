"""Wilson's interval of a share: for scores as they are made, and for those that are only shown."""

from __future__ import annotations

import math
from collections.abc import Iterable
from statistics import NormalDist
from typing import NamedTuple

LEVEL = 0.95


class Interval(NamedTuple):
    """From `low` to `high`."""

    low: float
    high: float


def normal_quantile(level: float) -> float:
    """Give the half-width of a two-sided interval in standard errors."""
    return NormalDist().inv_cdf((1 + level) / 2)


def check_counts(successes: float, n: int) -> None:
    """Refuse counts that are none."""
    if n < 1 or not 0 <= successes <= n:
        raise ValueError(f"{successes:g} of {n} is not a proportion")


def widest(scores: Iterable[tuple[float | None, int | None]]) -> float | None:
    """The width of the widest interval of shares, each with its count: smaller differences say little."""
    found = (wilson(value * n, n) for value, n in scores if value is not None and n and 0 <= value <= 1)
    return max((high - low for low, high in found), default=None)


def wilson(successes: float, n: int, level: float = LEVEL) -> Interval:
    """Give Wilson's score interval of a proportion (Wilson 1927)."""
    check_counts(successes, n)
    z = normal_quantile(level)
    share, weight = successes / n, z * z / n
    centre = (share + weight / 2) / (1 + weight)
    half = z / (1 + weight) * math.sqrt(share * (1 - share) / n + weight / (4 * n))
    return Interval(0.0 if successes == 0 else centre - half, 1.0 if successes == n else centre + half)
