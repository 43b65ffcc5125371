"""Sample sizes: which difference a comparison could detect, and how many examples or seeds it would take."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from scipy import special

from heedful.statistics.comparison import ALPHA, Comparison

POWER = 0.8
MANY = 1000.0
"""From this many degrees of freedom on, Student's t is approximated by the normal distribution."""
MOST_EXAMPLES, MOST_SEEDS = 10**9, 10**4


@dataclass(frozen=True)
class RequiredData:
    """What it takes to show the observed difference of a comparison with the wanted power."""

    detectable: float
    """The smallest true difference that the data at hand would show."""
    more_examples: int | None
    """Additional examples; None if no number of examples is enough."""
    more_seeds: int | None
    """Additional seeds per arm; None if no number of seeds is enough or nothing is known about seeds."""


def required_data(comparison: Comparison) -> RequiredData:
    examples, seeds = examples_needed(comparison), seeds_needed(comparison)
    return RequiredData(
        detectable_difference(comparison),
        None if examples is None else max(0, examples - comparison.n),
        None if seeds is None else max(0, seeds - comparison.seeds),
    )


def detectable_difference(comparison: Comparison, n: int = 0, seeds: int = 0) -> float:
    """Return the smallest true difference that `n` examples and `seeds` would show four times in five.

    By default, these are the numbers of the comparison.
    """
    c = comparison
    n, seeds = n or c.n, seeds or c.seeds
    by_examples = (c.example_variance - c.shared_variance) * c.n / n
    by_seeds = c.seed_variance * c.seeds / max(1, seeds)
    total = by_examples + by_seeds
    if not by_seeds or not c.freedom:
        return standard_errors_needed(c.tests) * math.sqrt(total)
    freedom = c.freedom * (seeds - 1) / (c.seeds - 1) if c.seeds > 1 else c.freedom
    # Welch and Satterthwaite: the variance over examples is known well enough to count as exact.
    return standard_errors_needed(c.tests, freedom * (total / by_seeds) ** 2) * math.sqrt(total)


@lru_cache(maxsize=4096)
def standard_errors_needed(tests: int = 1, freedom: float = math.inf) -> float:
    """Return how many standard errors a difference must have to be detected four times in five.

    p is corrected for `tests`; `freedom` are the degrees of freedom of the standard error.
    """
    level = 1 - ALPHA / tests / 2
    if freedom > MANY:
        return float(special.ndtri(level) + special.ndtri(POWER))
    return float(special.nctdtrinc(freedom, 1 - POWER, special.stdtrit(freedom, level)))


def examples_needed(comparison: Comparison, difference: float | None = None) -> int | None:
    """Return how many examples would show `difference` (default: the observed one) four times in five.

    None if no number of examples would, because the seeds alone vary too much, or if the difference is 0.
    """
    wanted = abs(comparison.difference if difference is None else difference)
    if not wanted:
        return None
    return find_smallest(2, MOST_EXAMPLES, lambda n: detectable_difference(comparison, n) <= wanted)


def seeds_needed(comparison: Comparison, difference: float | None = None) -> int | None:
    """Return how many seeds per arm would show `difference` four times in five, on the same examples.

    None if no number of seeds would, if the difference is 0, or if there is only one seed, whose variance is
    unknown.
    """
    wanted = abs(comparison.difference if difference is None else difference)
    if comparison.seeds < 2 or not wanted:
        return None
    return find_smallest(2, MOST_SEEDS, lambda n: detectable_difference(comparison, seeds=n) <= wanted)


def find_smallest(least: int, most: int, enough: Callable[[int], bool]) -> int | None:
    """Find the smallest number that is enough, if any up to `most` is."""
    if not enough(most):
        return None
    return least + bisect_left(range(least, most + 1), True, key=enough)
