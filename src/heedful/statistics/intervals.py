"""95 % intervals of means and of perplexity, and the bootstrap they rest on.

Which interval belongs to which score (`ci95` in results.json); each is checked by simulation in the tests:

- accuracy and exact match: Wilson's score interval (`proportions.wilson`). It never leaves [0, 1], is
  sensible at both ends, and its average coverage is the stated one. Clopper and Pearson's never covers less,
  and is wider.
- macro F1 and all others: percentile bootstrap over the examples (`heedful.evaluation.metrics.resampling`).
- perplexity: BCa bootstrap over texts, because the tokens of one text are not independent.
- a mean over seeds: Student's t.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from heedful.statistics.proportions import LEVEL, Interval

Floats = npt.NDArray[np.float64]
RESAMPLES = 2000
CHUNK = 2_000_000
JACKKNIFE_GROUPS = 200


def mean_interval(values: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """Return Student's t interval of a mean, for example over seeds; it needs at least two values."""
    sample = np.asarray(values, dtype=np.float64)
    n = len(sample)
    if n < 2:
        raise ValueError("an interval of a mean needs at least two values")
    half = special.stdtrit(n - 1, (1 + level) / 2) * sample.std(ddof=1) / np.sqrt(n)
    return Interval(float(sample.mean() - half), float(sample.mean() + half))


def perplexity_interval(
    losses: npt.ArrayLike, tokens: npt.ArrayLike, level: float = LEVEL, seed: int = 0
) -> Interval:
    """Return the BCa bootstrap interval of perplexity from the summed loss and token count of each text."""

    def logarithm(loss: Floats, count: Floats) -> Floats:
        return np.asarray(loss.sum(-1) / count.sum(-1))

    interval = bootstrap(logarithm, losses, tokens, level=level, seed=seed)
    with np.errstate(over="ignore"):
        return Interval(float(np.exp(interval.low)), float(np.exp(interval.high)))


def bootstrap(
    statistic: Callable[..., Floats],
    *samples: npt.ArrayLike,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
    bca: bool = True,
) -> Interval:
    """Return a bootstrap interval: bias-corrected and accelerated (Efron 1987), or plain percentiles.

    `samples` are arrays of equal length whose entries belong together. `statistic` takes them with leading
    axes, `[..., n]`, and returns `[...]`: all resamples are computed at once, in chunks of bounded memory.
    """
    data = [np.asarray(sample, dtype=np.float64) for sample in samples]
    n = len(data[0])
    if n < 2 or any(sample.shape != (n,) for sample in data):
        raise ValueError("a bootstrap needs at least two entries, and equally many in each sample")
    rng = np.random.default_rng(seed)
    rows = max(1, CHUNK // n)
    drawn = []
    for start in range(0, resamples, rows):
        index = rng.integers(0, n, size=(min(rows, resamples - start), n))
        drawn.append(statistic(*(sample[index] for sample in data)))
    values = np.concatenate(drawn)
    tails = np.asarray([(1 - level) / 2, (1 + level) / 2])
    if bca:
        tails = bca_tails(values, float(statistic(*data)), jackknife(statistic, data), tails)
    low, high = np.quantile(values, tails)
    return Interval(float(low), float(high))


def jackknife(statistic: Callable[..., Floats], data: list[Floats]) -> Floats:
    """Compute the statistic without each entry, or, for long samples, without each of many groups."""
    n = len(data[0])
    groups = np.array_split(np.random.default_rng(n).permutation(n), min(n, JACKKNIFE_GROUPS))
    return np.asarray([float(statistic(*(np.delete(sample, g) for sample in data))) for g in groups])


def bca_tails(values: Floats, observed: float, without: Floats, tails: Floats) -> Floats:
    """Correct the tails for bias (the fraction of resamples below the observed value) and for skewness."""
    below = (np.sum(values < observed) + np.sum(values <= observed)) / (2 * len(values))
    if not 0 < below < 1:
        return tails
    bias = special.ndtri(below)
    away = without.mean() - without
    spread = np.sum(away**2)
    acceleration = np.sum(away**3) / (6 * spread**1.5) if spread > 0 else 0.0
    shifted = bias + special.ndtri(tails)
    return np.asarray(special.ndtr(bias + shifted / (1 - acceleration * shifted)))
