"""What more labels would bring: a power law through the scores of models trained on nested subsets.

The score with n labels is modeled as limit - amount * n ** -exponent (Hestness et al. 2017). How far the
prediction can be trusted comes from resamples of the held-out examples, with the scatter of the scores around
the curve added: another subset of the same size would have given another score.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from heedful.statistics.proportions import LEVEL, Interval

Floats = npt.NDArray[np.float64]
FEWEST = 3
"""Sizes without which there is no curve."""
RESAMPLES = 1000
EXPONENTS = np.geomspace(0.1, 2.0, 25)
USUAL_EXPONENT, EXPONENT_SPREAD = 0.3, np.log(2.0)
"""What is known about exponents before any score is seen: 0.3, up to a factor of about four."""
SMALL_GAIN = 0.01
"""A curve that certainly gains less than this is flat."""
LEAST_ERROR = 1e-4
"""A standard error that is smaller is not believed."""

Verdict = Literal["rising", "flat", "unclear"]


@dataclass(frozen=True)
class LearningCurve:
    """A fitted curve, and its prediction for more labels than there are."""

    limit: float
    amount: float
    exponent: float
    size: float
    """The number of labels of the prediction."""
    expected: float
    """The score to expect with `size` labels."""
    interval: Interval
    """The 95 % interval of `expected`."""
    gain: float
    """The difference from the curve's value for the number of labels that there are."""
    gain_interval: Interval
    verdict: Verdict
    """`rising` if more labels help beyond chance, `flat` if they bring less than `SMALL_GAIN` beyond chance,
    otherwise `unclear`: there are too few or too noisy scores to tell."""

    def predict(self, size: float) -> float:
        return float(self.limit - self.amount * size**-self.exponent)


def fit_learning_curve(
    sizes: npt.ArrayLike,
    scores: npt.ArrayLike,
    draws: npt.ArrayLike,
    *,
    factor: float = 2.0,
    current: float | None = None,
    ceiling: float | None = 1.0,
    seed: int = 0,
) -> LearningCurve:
    """Fit a curve to scores, of which higher is better, and predict that of `factor` times the labels.

    Parameters
    ----------
    sizes
        Numbers of labels, at least three different ones.
    scores
        The score of the model trained on each.
    draws
        The same scores on resamples of the held-out examples, `[resamples, sizes]`.
    factor
        Multiple of `current` to predict for.
    current
        Number of labels that there are, by default the largest size.
    ceiling
        The best possible score; None if there is none.
    seed
        Seed of the scatter that is added to the resamples.

    """
    n, observed, table = (np.asarray(x, np.float64) for x in (sizes, scores, draws))
    if n.ndim != 1 or len(np.unique(n)) < FEWEST or n.min() < 1:
        raise ValueError(f"a learning curve needs at least {FEWEST} sizes")
    if observed.shape != n.shape or table.ndim != 2 or table.shape[1] != len(n) or len(table) < 2:
        raise ValueError("there is one score per size, and at least two resamples of them")
    top = np.inf if ceiling is None else ceiling
    errors = np.maximum(table.std(0, ddof=1), LEAST_ERROR)
    limit, amount, exponent = fit_power_laws(n, observed[None], errors, top)
    residuals = observed - (limit - amount * n[None] ** -exponent[:, None]).ravel()
    scatter = float(np.sqrt(np.square(residuals).sum() / (len(n) - 2)))
    rng = np.random.default_rng(seed)
    noisy = np.minimum(table + rng.normal(0.0, scatter, table.shape), top)
    current = float(n.max()) if current is None else current
    size = factor * current
    limits, amounts, exponents = fit_power_laws(n, noisy, np.hypot(errors, scatter), top)
    ahead = limits - amounts * size**-exponents
    gains = ahead - (limits - amounts * current**-exponents)
    # The score itself will be a draw too, not the value of the curve.
    future = np.minimum(ahead + rng.normal(0.0, scatter, len(ahead)), top)
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = (float(x) for x in np.quantile(future, tails))
    least, most = (float(x) for x in np.quantile(gains, tails))
    verdict: Verdict = "rising" if least > 1e-3 else "flat" if most < SMALL_GAIN else "unclear"
    a, b, c = float(limit[0]), float(amount[0]), float(exponent[0])
    expected = a - b * size**-c
    return LearningCurve(
        a,
        b,
        c,
        float(size),
        float(expected),
        Interval(min(low, float(expected)), max(high, float(expected))),
        float(expected - (a - b * current**-c)),
        Interval(least, most),
        verdict,
    )


def fit_share_curve(
    sizes: npt.ArrayLike, right: npt.ArrayLike, *, factor: float = 2.0, seed: int = 0
) -> LearningCurve:
    """Fit a curve to shares of right examples: `right` has a row per held-out example, a column per size."""
    table = np.asarray(right, np.float64)
    # Few different rows occur, so it is enough to draw how often each of them does.
    kinds, counts = np.unique(table, axis=0, return_counts=True)
    drawn = np.random.default_rng(seed).multinomial(len(table), counts / len(table), size=RESAMPLES)
    return fit_learning_curve(sizes, table.mean(0), drawn @ kinds / len(table), factor=factor, seed=seed)


def fit_power_laws(
    sizes: Floats, scores: Floats, errors: Floats, ceiling: float
) -> tuple[Floats, Floats, Floats]:
    """Fit limit, amount and exponent to each row of `scores` `[rows, sizes]`, by weighted least squares.

    For a given exponent the law is linear; the exponent is the most probable of a list. The limit is at most
    the ceiling, and the amount is not negative: more labels do not harm.
    """
    weights = errors**-2.0
    best = np.full(len(scores), np.inf)
    limit, amount, exponent = (np.empty(len(scores)) for _ in range(3))
    for power in EXPONENTS:
        x = -(sizes**-power)
        mean_x, mean_y = weights @ x / weights.sum(), scores @ weights / weights.sum()
        slope = (scores - mean_y[:, None]) @ (weights * (x - mean_x)) / (weights @ (x - mean_x) ** 2)
        slope = np.maximum(0.0, slope)
        start = mean_y - slope * mean_x
        above = start > ceiling
        if above.any():
            from_ceiling = (scores - ceiling) @ (weights * x) / (weights @ x**2)
            slope, start = np.where(above, np.maximum(0.0, from_ceiling), slope), np.minimum(start, ceiling)
        distance = np.square(scores - start[:, None] - slope[:, None] * x) @ weights
        distance += (np.log(power / USUAL_EXPONENT) / EXPONENT_SPREAD) ** 2
        better = distance < best
        best[better] = distance[better]
        limit[better], amount[better], exponent[better] = start[better], slope[better], power
    return limit, amount, exponent
