"""Metrics: what a model is selected and compared by.

A `Metric` knows how it is computed, in which direction it is better, how far it can be trusted (its interval)
and how two models are compared by it (its paired test). Selection, early stopping, studies, checks, reports
and baselines ask the metric and never compare its name. `METRICS` lists all of them; another package adds one
through an entry point:

    [project.entry-points."heedful.metrics"]
    macro_f1 = "my_package:MACRO_F1"

where `MACRO_F1 = Metric("macro_f1", compute)` and `compute(labels, predicted)` returns a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError
from heedful.plugins import Registry
from heedful.statistics.comparison import (
    ALPHA,
    Comparison,
    compare,
    correct_for_tests,
    estimate_seed_variance,
    mcnemar,
)
from heedful.statistics.confusion import macro_f1_batch
from heedful.statistics.intervals import perplexity_interval
from heedful.statistics.proportions import LEVEL, Interval, wilson

if TYPE_CHECKING:
    from heedful.objectives import Evaluation

Labels = npt.ArrayLike
Counts = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Array = npt.NDArray[Any]
Reads = Literal["predictions", "probabilities", "losses"]
"""What a metric is computed from, and so what its two arrays hold, with one row per example: labels and
predicted labels (or texts); labels and probabilities; numbers of tokens and summed losses of texts."""
RESAMPLES = 1000
"""Resamples of the examples that a metric without an interval or a paired test of its own is computed on."""
TEXT_GROUPS = 5000
"""The largest number of texts that perplexity is resampled over; more texts are resampled in groups."""


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
        """Return the two arrays that the metric is computed from."""
        arrays = evaluation.arrays(self.reads)
        if arrays is None:
            raise UserError(f"--metric {self.name}: is computed from {self.reads}, which are not given here")
        return arrays

    def score(self, evaluation: Evaluation) -> Evaluation:
        """Return the evaluation with this metric's value."""
        if evaluation.metric == self.name:
            return evaluation
        targets, outputs = self.examples(evaluation)
        value = float(self.compute(targets, outputs)) if len(targets) else math.nan
        return replace(evaluation, metric=self.name, value=value)

    def evaluation_interval(self, evaluation: Evaluation) -> Interval | None:
        """Return the 95 % interval of an evaluation's value."""
        return self.interval(*self.examples(evaluation))

    def describe(self) -> dict[str, Any]:
        """Return what a `SplitResult` stores about its metric, so that whoever reads it needs no `Metric`."""
        facts = ("higher_is_better", "is_share", "unit")
        return {"metric": self.name, **{name: getattr(self, name) for name in facts}}

    def p_value(self, targets: Array, a: Array, b: Array) -> float:
        """Return the p value of the paired test of two runs."""
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
    compute: Callable[[Array, Array], float], targets: Array, outputs: Array, seed: int = 0
) -> Interval | None:
    """Return the percentile bootstrap interval of any metric, over the examples."""
    n = len(targets)
    if n < 2:
        return None
    rng = np.random.default_rng(seed)
    values = []
    for _ in range(RESAMPLES):
        rows = rng.integers(0, n, n)
        values.append(compute(targets[rows], outputs[rows]))
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
    seed: int = 0,
) -> Comparison:
    """Compare two arms by any metric, over resamples of the examples.

    The interval is a percentile bootstrap of the difference of the mean values, with the seeds' part added as
    Student's t. For single runs, p is that of a permutation test that exchanges the arms example by example.
    """
    n = len(targets)
    if n < 2:
        raise ValueError("a comparison needs at least two examples")
    rng = np.random.default_rng(seed)

    def values(runs: Sequence[Array], rows: Array | slice) -> Floats:
        return np.array([compute(targets[rows], run[rows]) for run in runs], np.float64)

    values_a, values_b = values(a, slice(None)), values(b, slice(None))
    difference = float(values_a.mean() - values_b.mean())
    resampled = np.empty(RESAMPLES)
    for i in range(RESAMPLES):
        rows = rng.integers(0, n, n)
        resampled[i] = values(a, rows).mean() - values(b, rows).mean()
    example_variance = float(resampled.var())
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
    return Comparison(
        *names,
        float(values_a.mean()),
        float(values_b.mean()),
        difference,
        float(low),
        float(high),
        p,
        n,
        min(len(a), len(b)),
        test,
        example_variance,
        seed_variance,
        freedom,
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
        exchange = rng.random(len(targets)) < 0.5
        exchange = exchange.reshape(-1, *[1] * (a.ndim - 1))
        drawn = compute(targets, np.where(exchange, b, a)) - compute(targets, np.where(exchange, a, b))
        as_large += abs(drawn) >= abs(difference) - 1e-9
    return (as_large + 1) / (RESAMPLES + 1)


def accuracy(labels: Labels, predicted: Labels) -> float:
    """Return the share of predictions that equal their label."""
    right = correct(labels, predicted)
    if not len(right):
        raise ValueError("accuracy of no examples")
    return float(right.mean())


def correct(labels: Labels, predicted: Labels) -> npt.NDArray[np.bool_]:
    """Return for each example whether the prediction is right."""
    truth, guess = np.asarray(labels), np.asarray(predicted)
    if truth.shape != guess.shape:
        raise ValueError(f"{truth.shape} labels and {guess.shape} predictions do not belong together")
    return np.asarray(truth == guess, dtype=np.bool_)


def share_interval(labels: Array, predicted: Array) -> Interval | None:
    """Return Wilson's interval of the share of predictions that equal their label."""
    return wilson(int(correct(labels, predicted).sum()), len(labels)) if len(labels) else None


def share_test(
    targets: Array,
    a: Sequence[Array],
    b: Sequence[Array],
    *,
    names: tuple[str, str] = ("a", "b"),
    paired_seeds: bool = False,
) -> Comparison:
    """Compare two arms by their shares of right predictions: McNemar's test for single runs."""
    right_a, right_b = ([correct(targets, run) for run in runs] for runs in (a, b))
    return compare(right_a, right_b, names=names, paired_seeds=paired_seeds)


def exact_match(references: Array, generated: Array) -> float:
    """Return the share of generated texts that equal their reference, runs of white space counting as one."""
    return accuracy([" ".join(t.split()) for t in references], [" ".join(t.split()) for t in generated])


def mean_share(right: Floats) -> tuple[float, Interval]:
    """Return the mean share of right examples `[runs, n]`, and its interval over examples and runs."""
    mean, n = float(right.mean()), right.shape[1]
    alone = wilson(round(mean * n), n)
    if len(right) == 1 or n < 2:
        return mean, alone
    c = compare(right, np.zeros_like(right))
    # Seeds that err on other examples each, or on none, would make the bootstrap too sure.
    return c.value_a, Interval(max(0.0, min(c.low, alone.low)), min(1.0, max(c.high, alone.high)))


def confusion(labels: Labels, predicted: Labels, n_classes: int) -> Counts:
    """Count examples: one row per true class, one column per predicted class."""
    truth, guess = np.asarray(labels, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    if truth.shape != guess.shape:
        raise ValueError(f"{truth.shape} labels and {guess.shape} predictions do not belong together")
    if len(truth) and not 0 <= min(truth.min(), guess.min()) <= max(truth.max(), guess.max()) < n_classes:
        raise ValueError(f"classes are numbered 0 to {n_classes - 1}")
    cells = np.bincount(truth * n_classes + guess, minlength=n_classes * n_classes)
    return cells.reshape(n_classes, n_classes).astype(np.int64)


def macro_f1(cells: npt.ArrayLike) -> float:
    """Return the unweighted mean of the classes' F1 of a confusion matrix.

    A class that neither occurs nor is predicted is left out; one that occurs and is never predicted counts 0.
    """
    return float(macro_f1_batch(np.asarray(cells)))


def perplexity(total_loss: float, n_tokens: int) -> float:
    """Return exp(summed loss / tokens) over the whole corpus: long texts count more than short ones."""
    if n_tokens < 1:
        raise ValueError("perplexity of no tokens")
    try:
        return math.exp(total_loss / n_tokens)
    except OverflowError:
        return math.inf


def text_perplexity(tokens: Array, losses: Array) -> float:
    """Return the perplexity of a corpus from each text's number of tokens and summed loss."""
    used = tokens > 0
    return perplexity(float(losses[used].sum()), int(tokens[used].sum()))


def text_perplexity_interval(tokens: Array, losses: Array) -> Interval | None:
    """Return the 95 % interval of a corpus's perplexity, over texts, or over groups of very many texts."""
    used = tokens > 0
    tokens, losses = tokens[used], losses[used]
    if len(losses) < 2:
        return None
    if len(losses) > TEXT_GROUPS:
        group = np.random.default_rng(len(losses)).permutation(len(losses)) % TEXT_GROUPS
        return perplexity_interval(np.bincount(group, losses), np.bincount(group, tokens))
    return perplexity_interval(losses, tokens)


ACCURACY = Metric("accuracy", accuracy, interval=share_interval, paired_test=share_test, is_share=True)
EXACT_MATCH = Metric(
    "exact_match", exact_match, interval=share_interval, paired_test=share_test, is_share=True
)
PERPLEXITY = Metric(
    "perplexity",
    text_perplexity,
    higher_is_better=False,
    interval=text_perplexity_interval,
    reads="losses",
    unit="tokens",
)
METRICS: Registry[Metric] = Registry(
    "metric",
    {
        "accuracy": f"{__name__}:ACCURACY",
        "exact_match": f"{__name__}:EXACT_MATCH",
        "perplexity": f"{__name__}:PERPLEXITY",
    },
)
