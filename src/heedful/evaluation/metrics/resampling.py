"""Intervals and paired tests of any metric, over resamples of the examples that are all scored at once.

A resample is a row of weights: how often each example was drawn. A metric is given as a function from weights
`[resamples, n]` to values `[resamples]`, see `Metric.on_weights`; `heedful.statistics.resampling` draws them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from heedful.statistics.comparison import ALPHA, SEEDS_TEST, Comparison, two_sided_p
from heedful.statistics.proportions import LEVEL, Interval
from heedful.statistics.resampling import chunk_sizes, draw_weights, find_strata
from heedful.statistics.seeds import UNKNOWN, SeedVariance

if TYPE_CHECKING:
    from heedful.evaluation.metrics.base import Metric

Array = npt.NDArray[Any]
Floats = npt.NDArray[np.float64]
OnWeights = Callable[[Floats], Floats]
"""Takes weights `[resamples, n]` and returns the metric's value of each resample; nan where it has none."""
RESAMPLES = 1000
"""Resamples of the examples that a metric without an interval or a paired test of its own is computed on."""


def resample_values(
    metric: Metric, targets: Array, runs: Sequence[Array], rng: np.random.Generator, resamples: int
) -> Floats:
    """Return the value of each run on the same resamples, `[resamples, runs]`."""
    strata = find_strata(targets) if metric.stratified else None
    scores = [metric.on_weights(targets, run) for run in runs]
    parts = [
        metric.fill_undefined(np.stack([score(weights) for score in scores], axis=1))
        for weights in draw_weights(len(targets), resamples, rng, strata)
    ]
    return np.concatenate(parts)


def bootstrap_interval(metric: Metric, targets: Array, outputs: Array) -> Interval | None:
    """Return the percentile bootstrap interval of any metric, over the examples.

    Resamples in which the metric has no value are left out.
    """
    if len(targets) < 2:
        return None
    values = resample_values(metric, targets, [outputs], np.random.default_rng(0), RESAMPLES)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def bootstrap_test(
    metric: Metric,
    targets: Array,
    a: Sequence[Array],
    b: Sequence[Array],
    *,
    names: tuple[str, str] = ("a", "b"),
    seeds: SeedVariance = UNKNOWN,
) -> Comparison:
    """Compare two arms by any metric, over resamples of the examples.

    The interval is a percentile bootstrap of the difference of the mean values, with the seeds' part added as
    Student's t. For single runs, p is that of a permutation test that exchanges the arms example by example.
    """
    n = len(targets)
    if n < 2:
        raise ValueError("a comparison needs at least two examples")
    rng = np.random.default_rng(0)
    mean_a, mean_b = (float(np.mean([metric.compute(targets, run) for run in runs])) for runs in (a, b))
    difference = mean_a - mean_b
    table = resample_values(metric, targets, [*a, *b], rng, RESAMPLES)
    draws = table[:, : len(a)].mean(1) - table[:, len(a) :].mean(1)
    draws = np.where(np.isfinite(draws), draws, difference)
    example_variance = float(draws.var())
    if len(a) == len(b) == 1:
        example_p, test = exchange_test(metric, targets, a[0], b[0], difference, rng), "permutation"
    else:
        example_p, test = two_sided_p(draws), SEEDS_TEST
    p = example_p
    if seeds.freedom:
        draws = seeds.widen(draws, example_variance, rng)
        p, test = max(example_p, two_sided_p(draws)), SEEDS_TEST
    low, high = np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2])
    return Comparison(
        *names,
        value_a=mean_a,
        value_b=mean_b,
        difference=difference,
        low=float(low),
        high=float(high),
        p=p,
        example_p=example_p,
        n=n,
        seeds=min(len(a), len(b)),
        test=test,
        example_variance=example_variance,
        seed_variance=seeds.variance,
        freedom=seeds.freedom,
        shared_variance=min(seeds.residual, example_variance),
    )


def exchange_test(
    metric: Metric, targets: Array, a: Array, b: Array, difference: float, rng: np.random.Generator
) -> float:
    """Return the two-sided p of exchanging two runs' outputs at random, example by example.

    An exchange is a choice of n of the 2 n rows of both runs, and so a row of weights, too.
    """
    outputs = np.concatenate([metric.comparable(a), metric.comparable(b)])
    score = metric.on_weights(np.concatenate([targets, targets]), outputs)
    as_large = 0
    for count in chunk_sizes(2 * len(targets), RESAMPLES):
        own = (rng.random((count, len(targets))) < 0.5).astype(np.float64)
        one, other = (
            metric.fill_undefined(score(np.hstack(pair))) for pair in ((own, 1 - own), (1 - own, own))
        )
        # Values that are not defined show no difference.
        as_large += int(np.sum(~(np.abs(one - other) < abs(difference) - 1e-9)))
    return (as_large + 1) / (RESAMPLES + 1)
