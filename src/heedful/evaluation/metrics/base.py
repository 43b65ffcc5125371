"""The `Metric` class: a value, its direction, its interval and its paired test."""

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
from heedful.evaluation.metrics.resampling import (
    RESAMPLES,
    OnWeights,
    bootstrap_interval,
    bootstrap_test,
    resample_values,
)
from heedful.statistics.comparison import Comparison, correct_for_tests, mcnemar
from heedful.statistics.proportions import Interval
from heedful.statistics.seeds import UNKNOWN, PooledSeeds, RunScores, SeedVariance, pool_pairs, share_scores

if TYPE_CHECKING:
    from heedful.objectives import Evaluation

Reads = Literal["predictions", "probabilities", "losses"]
"""What a metric is computed from, and so what its two arrays hold, with one row per example: targets and
predictions (labels, numbers or texts); targets and probabilities; numbers of tokens and summed losses of
texts."""


class PairedTest(Protocol):
    """Compares two arms on the same examples; each arm is a sequence of runs, one per seed.

    `seeds` is what all arms of a study together say about the part of the seeds in the difference.
    """

    def __call__(
        self,
        targets: Array,
        a: Sequence[Array],
        b: Sequence[Array],
        *,
        names: tuple[str, str],
        seeds: SeedVariance = UNKNOWN,
    ) -> Comparison: ...


class Metric:
    """A number that says how good a model's outputs are.

    Parameters
    ----------
    name
        The name in options, in `results.json` and in the registry.
    compute
        Takes two arrays with one row per example, see `reads`, and returns the value.
    weigh
        Takes the same arrays, and returns a function from weights `[resamples, n]`, how often each example
        counts, to the value of each resample. With it, all resamples are computed at once; without it, one
        by one. One of `compute` and `weigh` is enough.
    higher_is_better
        The direction.
    interval
        Takes the same arrays and returns the 95 % interval, or None if there are too few examples. By
        default, a percentile bootstrap over the examples.
    paired_test
        Compares two arms. By default, a bootstrap over the examples, with a permutation test for single runs.
    reads
        What the two arrays hold: "predictions" (labels and predicted labels, numbers, or texts),
        "probabilities" (labels and probabilities `[n, classes]`) or "losses" (numbers of tokens and summed
        losses of texts).
    problems
        Names of the kinds of problems that it is for; by default all that give what it reads.
    stratified
        Whether it needs each label in each resample: the examples of a label with fewer than 15 are then
        drawn among themselves. Other labels are hardly ever lost, and their shares vary as in new data.
    undefined
        The value where it has none, such as F1 of a label that neither occurs nor is predicted.
    comparable
        Brings the outputs of any model to one scale, where the value does not depend on it, such as ranks for
        AUROC: the permutation test exchanges outputs of two models. By default they stay as they are.
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
        compute: Callable[[Array, Array], float] | None = None,
        *,
        weigh: Callable[[Array, Array], OnWeights] | None = None,
        higher_is_better: bool = True,
        interval: Callable[[Array, Array], Interval | None] | None = None,
        paired_test: PairedTest | None = None,
        reads: Reads = "predictions",
        problems: Sequence[str] = (),
        stratified: bool = False,
        undefined: float = math.nan,
        comparable: Callable[[Array], Array] | None = None,
        is_share: bool = False,
        unit: str = "examples",
        title: str | None = None,
    ) -> None:
        if compute is None and weigh is None:
            raise ValueError(f"metric {name}: needs compute or weigh")
        self.name, self.higher_is_better, self.weigh = name, higher_is_better, weigh
        self.compute = compute or self.compute_by_weights
        self.interval = interval or partial(bootstrap_interval, self)
        self.paired_test: PairedTest = paired_test or partial(bootstrap_test, self)
        self.comparable: Callable[[Array], Array] = comparable or np.asarray
        self.reads, self.is_share, self.unit = reads, is_share, unit
        self.problems, self.stratified, self.undefined = tuple(problems), stratified, undefined
        self.title = title or name.replace("_", " ")

    def compute_by_weights(self, targets: Array, outputs: Array) -> float:
        if not len(targets):
            raise ValueError(f"{self.title} of no examples")
        value = float(self.on_weights(targets, outputs)(np.ones((1, len(targets))))[0])
        return self.undefined if math.isnan(value) else value

    def fill_undefined(self, values: Floats) -> Floats:
        """Return the values of resamples with `undefined` where the metric has none."""
        return np.where(np.isnan(values), self.undefined, values)

    def on_weights(self, targets: Array, outputs: Array) -> OnWeights:
        """Return the values as a function of weights `[resamples, n]`; nan where there is none."""
        if self.weigh is not None:
            return self.weigh(np.asarray(targets), np.asarray(outputs))

        def compute_each(weights: Floats) -> Floats:
            samples = (np.repeat(np.arange(len(targets)), row.astype(np.int64)) for row in weights)
            values = [self.compute(targets[s], outputs[s]) if len(s) else math.nan for s in samples]
            return np.array(values, np.float64)

        return compute_each

    def bind(self, labels: Sequence[str]) -> Metric:
        """Return the metric for these names of labels, in the order of their numbers."""
        return self

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

    def pick_outputs(self, probabilities: Array) -> Array:
        """Return what the metric reads of probabilities `[n, classes]`: them, or the most probable labels."""
        return probabilities if self.reads == "probabilities" else probabilities.argmax(1)

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
        declared = ("higher_is_better", "is_share", "unit", "title")
        return {"metric": self.name, **{name: getattr(self, name) for name in declared}}

    def p_value(self, targets: Array, a: Array, b: Array) -> float:
        if self.is_share:  # McNemar's test alone, without the interval of the difference
            return mcnemar(correct(targets, a), correct(targets, b))
        return self.paired_test(targets, [a], [b], names=("a", "b")).p

    def mean_with_interval(self, targets: Array, runs: Sequence[Array]) -> tuple[float, Interval]:
        """Return the mean value of several runs, and its 95 % interval over examples and seeds."""
        return self.means_with_intervals(targets, {"": runs})[""]

    def means_with_intervals(
        self, targets: Array, arms: Mapping[str, Sequence[Array]]
    ) -> dict[str, tuple[float, Interval]]:
        """Return each arm's mean value over its runs, and its 95 % interval over examples and seeds.

        How much the seeds matter to an arm is estimated from all of them.
        """
        scores = {name: self.score_runs(targets, runs) for name, runs in arms.items()}
        pooled = PooledSeeds(scores)
        means = {}
        for name, runs in arms.items():
            if self.is_share:
                right = np.array([correct(targets, run) for run in runs], np.float64)
                means[name] = mean_share(right, pooled.estimate(name))
            else:
                means[name] = scores[name].mean_with_interval(pooled.estimate(name))
        return means

    def score_runs(self, targets: Array, runs: Sequence[Array]) -> RunScores:
        if self.is_share:
            return share_scores([correct(targets, run) for run in runs])
        values = np.array([self.compute(targets, run) for run in runs], np.float64)
        if len(targets) < 2:
            return RunScores(values, np.empty((0, len(runs))))
        table = resample_values(self, targets, runs, np.random.default_rng(0), RESAMPLES)
        return RunScores(values, table)

    def compare_all(
        self,
        targets: Array,
        arms: Mapping[str, Sequence[Array]],
        *,
        paired_seeds: bool = False,
        pairs: Sequence[tuple[str, str]] | None = None,
    ) -> list[Comparison]:
        """Compare every pair of arms: the better arm first, the best arm's pairs first, p values corrected.

        Each arm is a sequence of runs, one array of outputs per run. How much the seeds matter is estimated
        from all arms, also if only some `pairs` of them are compared.
        """
        means = {
            name: float(np.mean([self.compute(targets, run) for run in runs])) for name, runs in arms.items()
        }
        order = sorted(arms, key=lambda name: self.sort_key(means[name]), reverse=True)
        wanted = None if pairs is None else {frozenset(pair) for pair in pairs}
        compared = [pair for pair in combinations(order, 2) if wanted is None or frozenset(pair) in wanted]
        seeds = dict.fromkeys(compared, UNKNOWN)
        if any(len(runs) > 1 for runs in arms.values()):
            scores = {name: self.score_runs(targets, arms[name]) for name in order}
            seeds = pool_pairs(scores, compared, paired=paired_seeds)
        found = [
            self.paired_test(targets, arms[a], arms[b], names=(a, b), seeds=seeds[a, b]) for a, b in compared
        ]
        return correct_for_tests([replace(pair, higher_is_better=self.higher_is_better) for pair in found])
