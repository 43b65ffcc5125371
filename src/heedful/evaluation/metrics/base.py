"""The `Metric` class, and the bootstrap that serves a metric without an interval or a paired test."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from heedful.errors import UserError
from heedful.evaluation.metrics.functions import Array, Floats, correct, mean_share
from heedful.statistics.comparison import (
    ALPHA,
    Comparison,
    correct_for_tests,
    estimate_seed_variance,
    mcnemar,
)
from heedful.statistics.proportions import LEVEL, Interval

if TYPE_CHECKING:
    from heedful.objectives import Evaluation

Reads = Literal["predictions", "probabilities", "losses"]
"""What a metric is computed from, and so what its two arrays hold, with one row per example: labels and
predicted labels (or texts); labels and probabilities; numbers of tokens and summed losses of texts."""
RESAMPLES = 1000
"""Resamples of the examples that a metric without an interval or a paired test of its own is computed on."""


class PairedTest(Protocol):
    """Compares two arms on the same examples; each arm is a sequence of runs, one per seed."""

    def __call__(
        self,
        targets: Array,
        a: Sequence[Array],
        b: Sequence[Array],
        *,
        names: tuple[str, str],
        paired_seeds: bool,
    ) -> Comparison: ...


class Metric:
    """A number that says how good a model's outputs are.

    Parameters
    ----------
    name
        The name in options, in `results.json` and in the registry.
    compute
        Takes two arrays with one row per example, see `reads`, and returns the value.
    higher_is_better
        The direction.
    interval
        Takes the same arrays and returns the 95 % interval, or None if there are too few examples. By
        default, a percentile bootstrap over the examples.
    paired_test
        Compares two arms. By default, a bootstrap over the examples, with a permutation test for single runs.
    reads
        What the two arrays hold: "predictions" (labels and predicted labels, or texts), "probabilities"
        (labels and probabilities `[n, classes]`) or "losses" (numbers of tokens and summed losses of texts).
    is_share
        Whether the value is the share of examples that are right.
    unit
        What the value is computed over, in the plural.
    title
        The name in sentences, tables and figures. By default, the name with spaces.

    """

    def __init__(
        self,
        name: str,
        compute: Callable[[Array, Array], float],
        *,
        higher_is_better: bool = True,
        interval: Callable[[Array, Array], Interval | None] | None = None,
        paired_test: PairedTest | None = None,
        reads: Reads = "predictions",
        is_share: bool = False,
        unit: str = "examples",
        title: str | None = None,
    ) -> None:
        self.name, self.compute, self.higher_is_better = name, compute, higher_is_better
        self.interval = interval or partial(bootstrap_interval, compute)
        self.paired_test = paired_test or partial(bootstrap_test, compute)
        self.reads, self.is_share, self.unit = reads, is_share, unit
        self.title = title or name.replace("_", " ")

    def __repr__(self) -> str:
        return f"Metric({self.name!r})"

    def sort_key(self, value: float, loss: float = 0.0) -> tuple[float, float]:
        """Return a key by which a better value is larger; of equal values, that with the lower loss is."""
        return (value if self.higher_is_better else -value, -loss)

    def improvement(self, old: float, new: float) -> float:
        """Return by how much the new value is better than the old one; negative if it is worse."""
        return new - old if self.higher_is_better else old - new

    def noise(self, value: float, n: int | None) -> float:
        """Return by how much the value may change by chance, from the value and the number of examples alone.

        The standard error of a share; one point if the number of examples is not known. For other metrics,
        2 %, because two successive epochs of a steady run differ by less.
        """
        if not self.is_share:
            return 0.02 * abs(value)
        if not n:
            return 0.01
        # One right and one wrong example more, so that a perfect score has a standard error too.
        share = (value * n + 1) / (n + 2)
        return math.sqrt(share * (1 - share) / n)

    def examples(self, evaluation: Evaluation) -> tuple[Array, Array]:
        arrays = evaluation.arrays(self.reads)
        if arrays is None:
            raise UserError(f"--metric {self.name}: is computed from {self.reads}, which are not given here")
        return arrays

    def score(self, evaluation: Evaluation) -> Evaluation:
        if evaluation.metric == self.name:
            return evaluation
        targets, outputs = self.examples(evaluation)
        value = float(self.compute(targets, outputs)) if len(targets) else math.nan
        return replace(evaluation, metric=self.name, value=value)

    def evaluation_interval(self, evaluation: Evaluation) -> Interval | None:
        return self.interval(*self.examples(evaluation))

    def describe(self) -> dict[str, Any]:
        """Return what a `SplitResult` stores about its metric, so that whoever reads it needs no `Metric`."""
        declared = ("higher_is_better", "is_share", "unit")
        return {"metric": self.name, **{name: getattr(self, name) for name in declared}}

    def p_value(self, targets: Array, a: Array, b: Array) -> float:
        if self.is_share:  # McNemar's test alone, without the interval of the difference
            return mcnemar(correct(targets, a), correct(targets, b))
        return self.paired_test(targets, [a], [b], names=("a", "b"), paired_seeds=False).p

    def mean_with_interval(self, targets: Array, runs: Sequence[Array]) -> tuple[float, Interval]:
        """Return the mean value of several runs, and its 95 % interval over examples and seeds."""
        if self.is_share:
            return mean_share(np.array([correct(targets, run) for run in runs], np.float64))
        values = np.array([self.compute(targets, run) for run in runs], np.float64)
        mean, n = float(values.mean()), len(targets)
        if n < 2:
            return mean, Interval(math.nan, math.nan)
        rng = np.random.default_rng(0)
        samples = (rng.integers(0, n, n) for _ in range(RESAMPLES))
        draws = np.array([np.mean([self.compute(targets[s], run[s]) for run in runs]) for s in samples])
        if len(runs) > 1:
            error = math.sqrt(values.var(ddof=1) / len(runs))
            draws = draws + error * rng.standard_t(len(runs) - 1, size=RESAMPLES)
        low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return mean, Interval(float(low), float(high))

    def compare_all(
        self, targets: Array, arms: Mapping[str, Sequence[Array]], *, paired_seeds: bool = False
    ) -> list[Comparison]:
        """Compare every pair of arms: the better arm first, the best arm's pairs first, p values corrected.

        Each arm is a sequence of runs, one array of outputs per run.
        """
        means = {
            name: float(np.mean([self.compute(targets, run) for run in runs])) for name, runs in arms.items()
        }
        order = sorted(arms, key=lambda name: self.sort_key(means[name]), reverse=True)
        pairs = [
            self.paired_test(targets, arms[a], arms[b], names=(a, b), paired_seeds=paired_seeds)
            for a, b in combinations(order, 2)
        ]
        return correct_for_tests([replace(pair, higher_is_better=self.higher_is_better) for pair in pairs])


def bootstrap_interval(
    compute: Callable[[Array, Array], float], targets: Array, outputs: Array
) -> Interval | None:
    """Return the percentile bootstrap interval of any metric, over the examples."""
    n = len(targets)
    if n < 2:
        return None
    rng = np.random.default_rng(0)
    samples = (rng.integers(0, n, n) for _ in range(RESAMPLES))
    values = [compute(targets[rows], outputs[rows]) for rows in samples]
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(float(low), float(high))


def bootstrap_test(
    compute: Callable[[Array, Array], float],
    targets: Array,
    a: Sequence[Array],
    b: Sequence[Array],
    *,
    names: tuple[str, str] = ("a", "b"),
    paired_seeds: bool = False,
) -> Comparison:
    """Compare two arms by any metric, over resamples of the examples.

    The interval is a percentile bootstrap of the difference of the mean values, with the seeds' part added as
    Student's t. For single runs, p is that of a permutation test that exchanges the arms example by example.
    """
    n = len(targets)
    if n < 2:
        raise ValueError("a comparison needs at least two examples")
    rng = np.random.default_rng(0)

    def values(runs: Sequence[Array], rows: Array | slice) -> Floats:
        return np.array([compute(targets[rows], run[rows]) for run in runs], np.float64)

    values_a, values_b = values(a, slice(None)), values(b, slice(None))
    difference = float(values_a.mean() - values_b.mean())
    resampled = np.empty(RESAMPLES)
    for i in range(RESAMPLES):
        rows = rng.integers(0, n, n)
        resampled[i] = values(a, rows).mean() - values(b, rows).mean()
    seed_variance, freedom = estimate_seed_variance(values_a[:, None], values_b[:, None], paired_seeds)
    draws = resampled
    if freedom:
        draws = resampled + math.sqrt(seed_variance) * rng.standard_t(freedom, size=RESAMPLES)
    if len(a) == len(b) == 1:
        p, test = exchange_test(compute, targets, a[0], b[0], difference, rng), "permutation"
    else:
        beyond = min(np.sum(draws <= 0), np.sum(draws >= 0))
        p, test = float(min(1.0, 2 * (beyond + 1) / (RESAMPLES + 1))), "bootstrap over examples and seeds"
    low, high = np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2])
    mean_a, mean_b, seeds = float(values_a.mean()), float(values_b.mean()), min(len(a), len(b))
    variances = float(resampled.var()), seed_variance
    return Comparison(
        *names, mean_a, mean_b, difference, float(low), float(high), p, n, seeds, test, *variances, freedom
    )


def exchange_test(
    compute: Callable[[Array, Array], float],
    targets: Array,
    a: Array,
    b: Array,
    difference: float,
    rng: np.random.Generator,
) -> float:
    """Return the two-sided p of exchanging two runs' outputs at random, example by example."""
    as_large = 0
    for _ in range(RESAMPLES):
        exchange = (rng.random(len(targets)) < 0.5).reshape(-1, *[1] * (a.ndim - 1))
        drawn = compute(targets, np.where(exchange, b, a)) - compute(targets, np.where(exchange, a, b))
        as_large += abs(drawn) >= abs(difference) - 1e-9
    return (as_large + 1) / (RESAMPLES + 1)
