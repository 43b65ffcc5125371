"""Scores combined with what was expected of them before they were measured.

With few held-out examples, the differences between candidates are mostly chance. What other tasks have shown
about the candidates is then worth more than the scores; with many examples it is worth next to nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
LEVEL_VARIANCE = 1.0
"""Variance of the level that all candidates share: how difficult a task is, is not known before."""


@dataclass(frozen=True)
class Expected:
    """What is expected of a candidate before it is scored, in units of the metric."""

    difference: float
    """Its score relative to that of a reference, which is the same for all candidates."""
    error: float
    """The standard deviation of this difference between tasks."""


@dataclass(frozen=True)
class Belief:
    """The scores to expect on new examples, as a linear function of the measured ones."""

    weights: Floats
    """`[candidates, candidates]`"""
    offsets: Floats
    """`[candidates]`"""
    errors: Floats
    """The standard error of the difference of each pair of candidates, `[candidates, candidates]`."""

    def scores(self, measured: Floats) -> Floats:
        return np.asarray(self.weights @ measured + self.offsets)


def combine(expected: Sequence[Expected], covariance: Floats) -> Belief:
    """Return the posterior mean of normal scores, with independent normal expectations and an unknown level.

    `covariance` is that of the errors of the measured scores.
    """
    mean = np.array([e.difference for e in expected])
    prior = np.diag([e.error**2 for e in expected]) + LEVEL_VARIANCE
    weights: Floats = np.linalg.solve(prior + covariance, prior).T.astype(np.float64)
    posterior = prior - weights @ prior
    return Belief(weights, mean - weights @ mean, difference_errors(posterior))


def difference_errors(covariance: Floats) -> Floats:
    """Return the standard error of the difference of each pair, `[candidates, candidates]`."""
    variances = np.diagonal(covariance)
    return np.asarray(np.sqrt(np.maximum(0.0, variances[:, None] + variances[None, :] - 2 * covariance)))
