"""Choosing among candidates that were scored on the same examples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from heedful.evaluation.metrics import Array, Metric, correct
from heedful.statistics.comparison import ALPHA, Comparison, correct_for_tests
from heedful.statistics.prior import Belief, Expected
from heedful.statistics.proportions import Interval, normal_quantile, wilson
from heedful.statistics.resampling import find_strata
from heedful.statistics.selection import (
    RESAMPLES,
    Optimism,
    Resamples,
    estimate_optimism,
    form_belief,
    resample,
    resample_shares,
)

Floats = npt.NDArray[np.float64]
Preference = Literal["accuracy", "speed", "small"]
TOLERANCE = 0.02
"""The loss that is accepted for a faster or a smaller model."""


@dataclass(frozen=True)
class Cost:
    """What it costs to use a model."""

    milliseconds: float
    """Time per text."""
    megabytes: float


@dataclass(frozen=True)
class Selection:
    """The candidate that was chosen, and how it compares with the others."""

    chosen: str
    best: str
    """The candidate with the best score."""
    scores: dict[str, float]
    """The score of each candidate on all examples, the best first."""
    comparisons: dict[str, Comparison]
    """The best against each other candidate; p values are corrected for their number."""
    undecided: tuple[str, ...]
    """The best candidate and those that are not shown to be worse than it."""
    eligible: tuple[str, ...]
    """The candidates that the preference accepts; the cheapest of them was chosen."""
    value: float
    """The score of the chosen candidate, corrected for the optimism of the choice."""
    interval: Interval | None
    """The 95 % interval of `value`; None if there are too few examples."""
    optimism: float
    """How much was subtracted from the score, or added to it if lower is better."""
    stability: float
    """The share of resamples of the examples in which the same candidate was chosen."""
    expected: dict[str, float]
    """The score to expect of each candidate on new examples, from its score and what was expected before."""


def select(
    metric: Metric,
    targets: Array,
    outputs: Mapping[str, Array],
    costs: Mapping[str, Cost],
    prefer: Preference | None = None,
    *,
    prior: Mapping[str, Expected] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Selection:
    """Choose one of several candidates by their outputs on the same examples.

    A candidate is shown to be worse than the best by the metric's paired test at 5 %, corrected for the
    number of tests. By default the fastest of the others is chosen, if its score is at most one standard
    error of the difference below the best (the rule of Breiman et al. 1984) and at most `TOLERANCE`: with few
    examples, a candidate that is much worse is not shown to be worse either. With `prefer`, "accuracy" takes
    the best score, and "speed" and "small" take the fastest or the smallest of the candidates that are not
    shown to be worse by more than `TOLERANCE`.

    With `prior`, what is expected of each candidate before it is scored, "best" above means the best score to
    expect on new examples, where few examples count for less than the expectation and many for more
    (`heedful.statistics.prior`). A candidate that is shown to be worse is not chosen for it.

    The score of the chosen candidate is corrected for the optimism of the choice, which is repeated on
    resamples of the examples.
    """
    if not outputs:
        raise ValueError("there is no candidate to choose")
    values = {name: float(metric.compute(targets, one)) for name, one in outputs.items()}
    # Of equal scores, the cheaper candidate is the better one.
    order = sorted(
        values, key=lambda name: (-metric.sort_key(values[name])[0], rank_cost(costs[name], prefer))
    )
    best = order[0]
    comparisons = compare_with_best(metric, targets, outputs, order) if len(targets) > 1 else {}
    undecided = (best, *(name for name, c in comparisons.items() if not c.differs))
    scores = {name: values[name] for name in order}
    sign = 1 if metric.higher_is_better else -1
    if len(targets) < 2 or len(order) < 2:
        optimism, expected = Optimism(0.0, 0.0, 1.0), scores
        eligible: tuple[str, ...] = (best,)
        chosen = best
    else:
        table = resample_metric(metric, targets, [outputs[name] for name in order], resamples, seed)
        belief = form_belief(table, None if prior is None else [prior[name] for name in order], len(targets))
        believed = dict(zip(order, belief.scores(table.scores).tolist(), strict=True))
        if prefer in ("speed", "small"):
            eligible = (best, *(name for name, c in comparisons.items() if may_replace_best(c)))
        else:
            eligible = find_equals(believed, belief, undecided, prefer)
        # Of equally cheap candidates, the better one.
        by_cost = sorted(order, key=lambda name: (rank_cost(costs[name], prefer), -believed[name]))
        chosen = next(name for name in by_cost if name in eligible)
        repeat = repeat_choice(belief, [order.index(name) for name in by_cost], prefer)
        optimism = estimate_optimism(table, order.index(chosen), repeat)
        expected = {name: sign * score for name, score in believed.items()}
    value = values[chosen] - sign * optimism.left_out
    if metric.is_share:
        value = min(1.0, max(0.0, value))
    return Selection(
        chosen,
        best,
        scores,
        comparisons,
        undecided,
        eligible,
        value,
        correct_interval(metric, targets, outputs[chosen], values[chosen], optimism),
        optimism.left_out,
        optimism.stability,
        expected,
    )


def rank_cost(cost: Cost, prefer: Preference | None) -> tuple[float, float]:
    pair = (cost.milliseconds, cost.megabytes)
    return pair[::-1] if prefer == "small" else pair


def compare_with_best(
    metric: Metric, targets: Array, outputs: Mapping[str, Array], order: list[str]
) -> dict[str, Comparison]:
    best, *others = order
    pairs = [
        metric.paired_test(targets, [outputs[best]], [outputs[name]], names=(best, name)) for name in others
    ]
    corrected = correct_for_tests([replace(c, higher_is_better=metric.higher_is_better) for c in pairs])
    return dict(zip(others, corrected, strict=True))


def may_replace_best(comparison: Comparison) -> bool:
    """Whether the second arm is not shown to be worse than the first, the best, by more than `TOLERANCE`."""
    least = comparison.low if comparison.higher_is_better else -comparison.high
    return not comparison.differs or least <= TOLERANCE


def find_equals(
    believed: Mapping[str, float], belief: Belief, undecided: Sequence[str], prefer: Preference | None
) -> tuple[str, ...]:
    """Return the best candidate, and those that may be chosen in its place because they are cheaper."""
    top = max(undecided, key=lambda name: believed[name])
    if prefer == "accuracy":
        return (top,)
    errors = dict(zip(believed, belief.errors[list(believed).index(top)].tolist(), strict=True))
    near = (name for name in undecided if believed[top] - believed[name] <= min(errors[name], TOLERANCE))
    return (top, *(name for name in near if name != top))


def repeat_choice(belief: Belief, by_cost: list[int], prefer: Preference | None) -> Callable[[Floats], int]:
    """Return the choice of `select` as a function of scores; tests become their normal approximation."""
    if prefer in ("speed", "small"):
        critical = normal_quantile(1 - ALPHA) * belief.errors + TOLERANCE
    else:
        critical = np.minimum(belief.errors, TOLERANCE)

    def choose(scores: Floats) -> int:
        believed = belief.scores(scores)
        best = int(believed.argmax())
        if prefer == "accuracy":
            return best
        near = believed[best] - believed[by_cost] <= critical[best, by_cost]
        return by_cost[int(near.argmax())]

    return choose


def resample_metric(
    metric: Metric, targets: Array, outputs: list[Array], resamples: int, seed: int
) -> Resamples:
    """Score all candidates on resamples of the examples, with the sign by which higher is better."""
    if metric.is_share:
        right = np.stack([correct(targets, one) for one in outputs], axis=1)
        return resample_shares(right, resamples=resamples, seed=seed)
    sign = 1.0 if metric.higher_is_better else -1.0
    scores = [metric.on_weights(targets, one) for one in outputs]

    def compute(weights: Floats) -> Floats:
        return sign * np.stack([score(weights) for score in scores], axis=1)

    strata = find_strata(targets) if metric.stratified else None
    table = resample(compute, len(targets), resamples=resamples, seed=seed, strata=strata)
    # Where a metric has no value by its formula, it may have one by its definition.
    own = np.array([sign * metric.compute(targets, one) for one in outputs])
    filled = (np.where(np.isfinite(part), part, own) for part in (table.scores, table.drawn, table.left_out))
    return Resamples(*filled)


def correct_interval(
    metric: Metric, targets: Array, output: Array, value: float, optimism: Optimism
) -> Interval | None:
    """Return the interval of the chosen candidate's score, corrected for the optimism of the choice.

    Each end is corrected by the estimate that errs to the safe side: the lower end by the examples that the
    resamples left out, the upper end by the smaller of the two estimates.
    """
    more, less = optimism.left_out, min(optimism.left_out, optimism.drawn)
    if metric.is_share and len(targets):
        n = len(targets)
        ends = [min(1.0, max(0.0, value - by)) for by in (more, less)]
        return Interval(wilson(ends[0] * n, n).low, wilson(ends[1] * n, n).high)
    plain = metric.interval(targets, output)
    if plain is None:
        return None
    if metric.higher_is_better:
        return Interval(plain.low - more, plain.high - less)
    return Interval(plain.low + less, plain.high + more)
