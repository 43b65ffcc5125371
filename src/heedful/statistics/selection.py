"""The score of a model that was chosen among several, without the optimism of the choice.

The best of several scores is too high: it was chosen partly for its luck on these examples. The correction
repeats the choice on resamples of the examples and scores what was chosen on the examples that the resample
left out, as in BBC-CV (Tsamardinos, Greasidou and Borboudakis 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from heedful.statistics.prior import Belief, Expected, combine, difference_errors
from heedful.statistics.resampling import draw_weights

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
RESAMPLES = 500


@dataclass(frozen=True)
class Resamples:
    """The scores of all candidates on resamples of the examples; higher is better."""

    scores: Floats
    """On all examples, `[candidates]`."""
    drawn: Floats
    """On the examples of each resample, `[resamples, candidates]`."""
    left_out: Floats
    """On the examples that the resample left out."""


@dataclass(frozen=True)
class Optimism:
    """How much too high the score of the chosen candidate is expected to be, by two estimates."""

    left_out: float
    """From the examples that the resamples left out: nearly unbiased, and rather too large than too small
    where there are few examples and one candidate is clearly the best."""
    drawn: float
    """From the resamples themselves: too small where candidates are equally good."""
    stability: float
    """The share of the resamples in which the same candidate was chosen."""


def resample(
    compute: Callable[[Floats], Floats],
    n: int,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
    strata: Ints | None = None,
) -> Resamples:
    """Score candidates on resamples of `n` examples.

    `compute` takes weights `[resamples, n]`, how often each example counts, and returns the scores
    `[resamples, candidates]`. A score that is not a number, such as one that is undefined for some samples,
    counts as the score on all examples.
    """
    if n < 2:
        raise ValueError("resampling needs at least two examples")
    rng = np.random.default_rng(seed)
    scores = compute(np.ones((1, n)))[0]
    tables: tuple[list[Floats], list[Floats]] = ([], [])
    for weights in draw_weights(n, resamples, rng, strata):
        tables[0].append(compute(weights))
        tables[1].append(compute((weights == 0).astype(np.float64)))
    drawn, left_out = (np.concatenate(parts) for parts in tables)
    for table in (drawn, left_out):
        np.copyto(table, scores, where=~np.isfinite(table))
    return Resamples(scores, drawn, left_out)


def resample_shares(right: npt.ArrayLike, *, resamples: int = RESAMPLES, seed: int = 0) -> Resamples:
    """Do what `resample` does for shares of right examples, `[n, candidates]`, all resamples at once."""
    table = np.asarray(right, np.float64)
    n = len(table)
    if table.ndim != 2 or n < 2:
        raise ValueError("resampling needs an array of examples and candidates, at least two examples")
    rng = np.random.default_rng(seed)
    scores = table.mean(0)
    drawn, left_out = [], []
    step = max(1, 4_000_000 // n)
    for start in range(0, resamples, step):
        counts = rng.multinomial(n, np.full(n, 1 / n), size=min(step, resamples - start))
        absent = (counts == 0).astype(np.float64)
        drawn.append(counts @ table / n)
        total = absent.sum(1, keepdims=True)
        left_out.append(np.where(total > 0, absent @ table / np.maximum(1, total), scores))
    return Resamples(scores, np.concatenate(drawn), np.concatenate(left_out))


def estimate_optimism(resamples: Resamples, chosen: int, choose: Callable[[Floats], int]) -> Optimism:
    """Estimate the optimism of a choice; `choose` repeats it from the scores on a resample."""
    again = np.array([choose(scores) for scores in resamples.drawn])
    each = np.arange(len(again))
    # A candidate's own mean is the reference: that of macro F1 differs between small and large samples.
    drawn = resamples.drawn - resamples.drawn.mean(0)
    left_out = resamples.left_out - resamples.left_out.mean(0)
    expected = resamples.scores[again] + left_out[each, again]
    return Optimism(
        left_out=float(resamples.scores[chosen] - expected.mean()),
        drawn=float(drawn[each, again].mean()),
        stability=float(np.mean(again == chosen)),
    )


def form_belief(resamples: Resamples, expected: Sequence[Expected] | None, n: int) -> Belief:
    """Return what scores on `n` examples say about new ones; without expectations, that they are right.

    Each candidate is given one more example that it alone may be right about: candidates that agree on a few
    examples are not known to be equal.
    """
    covariance = np.atleast_2d(np.cov(resamples.drawn, rowvar=False))
    size = len(covariance)
    covariance = covariance + np.eye(size) / (n + 2) ** 2
    if expected is None:
        return Belief(np.eye(size), np.zeros(size), difference_errors(covariance))
    return combine(expected, covariance)
