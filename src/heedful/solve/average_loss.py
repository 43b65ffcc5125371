"""What the weights of an average minimize: the log loss of probabilities, or the squared error of numbers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

Floats = npt.NDArray[np.float64]
ROUNDS, PRECISION = 200, 1e-5
TINY = 1e-12
SUM_WEIGHT = 1e4
"""How much more than all rows together the sum of the weights counts, so that it is 1."""


class Loss(ABC):
    """The loss of averages of models on some rows."""

    n_models: int

    def measure(self, members: Sequence[int]) -> float:
        """Return the loss of the best average of these models."""
        return self.evaluate(members, self.fit(members))

    @abstractmethod
    def fit(self, members: Sequence[int]) -> Floats:
        """Return the weights of these models with the lowest loss; they are positive and sum to 1."""

    @abstractmethod
    def evaluate(self, members: Sequence[int], weights: Floats) -> float:
        """Return the loss of an average of these models."""


class LogLoss(Loss):
    """The mean log loss of the probabilities of what is true `[examples, models]`."""

    def __init__(self, likelihoods: Floats) -> None:
        self.likelihoods = np.maximum(likelihoods, TINY)
        self.n_models = likelihoods.shape[1]

    def evaluate(self, members: Sequence[int], weights: Floats) -> float:
        return float(-np.log(self.likelihoods[:, list(members)] @ weights).mean())

    def fit(self, members: Sequence[int]) -> Floats:
        """Return the weights by expectation maximization: the loss is convex, and each step lowers it."""
        likelihoods = self.likelihoods[:, list(members)]
        weights = np.full(len(members), 1 / len(members))
        for _ in range(ROUNDS):
            shares = weights * likelihoods
            new = (shares / shares.sum(1, keepdims=True)).mean(0)
            if np.abs(new - weights).max() < PRECISION:
                break
            weights = new
        return weights


class SquaredLoss(Loss):
    """Half the log of the mean squared error of numbers `[rows, models]`: the log loss of a normal law."""

    def __init__(self, numbers: Floats, truth: Floats) -> None:
        self.errors = numbers - np.asarray(truth, np.float64)[:, None]
        self.n_models = numbers.shape[1]

    def evaluate(self, members: Sequence[int], weights: Floats) -> float:
        return float(0.5 * np.log(np.mean((self.errors[:, list(members)] @ weights) ** 2) + TINY))

    def fit(self, members: Sequence[int]) -> Floats:
        errors = self.errors[:, list(members)]
        size = SUM_WEIGHT * (np.sqrt((errors**2).sum()) + TINY)
        rows = np.vstack([errors, np.full(len(members), size)])
        weights, _ = nnls(rows, np.append(np.zeros(len(errors)), size))
        return np.asarray(weights / weights.sum())
