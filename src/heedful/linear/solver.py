"""The minimum of a multinomial logistic regression's loss, by L-BFGS.

Two things make it several times as fast as a general minimizer. The scores of the rows are linear in the
weights, so that a step's length is found without reading the features again. And the loss is much steeper in
the weights of common features than in those of rare ones; the steps take that into account from the start.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Labels: TypeAlias = npt.NDArray[np.integer[Any]]
Features: TypeAlias = Floats | csr_matrix

MOST_STEPS = 200
MEMORY = 8
"""Steps that the loss's curvature is estimated from."""
FEW_CLASSES = 10
SLOPE_LEFT = 0.1
"""Share of the slope that may be left at the end of a step."""
MOST_TRIALS = 20


class Change(NamedTuple):
    """A step, and how the gradient changed with it."""

    step: Floats
    gradient: Floats
    product: float


class SoftmaxRegression:
    """The log loss of rows, summed, plus half the penalty times the squared weights; the bias has no penalty.

    Weights are `[n_features + 1, n_classes]`, and their last row is the bias.
    """

    def __init__(self, features: Features, labels: Labels, n_classes: int, row_weights: Floats) -> None:
        self.forward, self.backward = features, features.T
        if not isinstance(features, np.ndarray):
            # Either form can be multiplied; which one is faster depends on the shape of the other factor.
            self.forward = features.tocsc()
            self.backward = features.T if n_classes <= FEW_CLASSES else self.forward.T
        self.row_weights = row_weights.astype(features.dtype)[:, None]
        self.total = float(row_weights.sum())
        self.truth = np.eye(n_classes, dtype=features.dtype)[labels]
        squares = np.append(square(features).T @ row_weights, self.total)
        self.squares = squares[:, None].astype(features.dtype)

    def start(self) -> Floats:
        """Return weights of zero."""
        return np.zeros((len(self.squares), self.truth.shape[1]), self.truth.dtype)

    def minimize(self, penalty: float, start: Floats, tolerance: float) -> Floats:
        """Return the weights whose mean loss is within about `tolerance` of the minimum."""
        dtype, weights = self.truth.dtype, start.copy()
        penalties = np.full((len(weights), 1), penalty, dtype)
        penalties[-1] = 0
        scores = self.score(weights)
        probabilities = softmax(scores)
        gradient = self.differentiate(probabilities) + penalties * weights
        history: deque[Change] = deque(maxlen=MEMORY)
        for _ in range(MOST_STEPS):
            inverse = 1 / (self.squares * measure_curvature(probabilities) + penalties)
            if np.vdot(gradient, inverse * gradient) <= 2 * tolerance * self.total:
                break
            direction = find_direction(gradient, inverse, history)
            slope = float(np.vdot(gradient, direction))
            if not slope < 0:
                break  # as near as this precision gets
            change, bend = self.score(direction), float(np.vdot(direction, penalties * direction))
            length, probabilities = self.search_line(probabilities, scores, change, slope, bend)
            step = np.asarray(length * direction, dtype)
            weights += step
            scores += np.asarray(length * change, dtype)
            before, gradient = gradient, self.differentiate(probabilities) + penalties * weights
            difference = gradient - before
            history.append(Change(step, difference, float(np.vdot(step, difference))))
        return weights

    def score(self, weights: Floats) -> Floats:
        """Return the score of each class `[n, n_classes]`."""
        return np.asarray(multiply(self.forward, weights[:-1]) + weights[-1])

    def differentiate(self, probabilities: Floats) -> Floats:
        """Return the gradient of the loss without the penalty."""
        errors = self.row_weights * (probabilities - self.truth)
        return np.vstack([multiply(self.backward, errors), errors.sum(0)])

    def search_line(
        self, probabilities: Floats, scores: Floats, change: Floats, slope: float, bend: float
    ) -> tuple[float, Floats]:
        """Return a step's length and the probabilities after it, by Newton's method within safe bounds.

        `slope` is that of the loss at length 0, and `bend` the second derivative of the penalty.
        """
        low, high, length = 0.0, np.inf, 0.0
        at_start = (self.row_weights * self.truth * change).sum()
        offset = slope - float((self.row_weights * probabilities * change).sum() - at_start)
        current = slope
        for _ in range(MOST_TRIALS):
            mean = (probabilities * change).sum(1, keepdims=True)
            variance = float((self.row_weights * probabilities * (change - mean) ** 2).sum())
            newton = length - current / (variance + bend)
            length = newton if low < newton < high else (low + high) / 2
            probabilities = softmax(scores + np.asarray(length * change, scores.dtype))
            error = float((self.row_weights * probabilities * change).sum() - at_start)
            current = error + offset + length * bend
            if abs(current) <= SLOPE_LEFT * abs(slope):
                break
            low, high = (length, high) if current < 0 else (low, length)
        return length, probabilities


def find_direction(gradient: Floats, inverse: Floats, history: Iterable[Change]) -> Floats:
    """Return the direction of the next step by the two loops of L-BFGS; `inverse` is its first estimate."""
    direction, changes, factors = -gradient, list(history), []
    for change in reversed(changes):
        factors.append(float(np.vdot(change.step, direction)) / change.product)
        direction -= np.asarray(factors[-1], gradient.dtype) * change.gradient
    direction *= inverse
    if changes:
        last = changes[-1]
        direction *= np.asarray(
            last.product / float(np.vdot(last.gradient, inverse * last.gradient)), gradient.dtype
        )
    for change, factor in zip(changes, reversed(factors), strict=True):
        correction = factor - float(np.vdot(change.gradient, direction)) / change.product
        direction += np.asarray(correction, gradient.dtype) * change.step
    return direction


def multiply(matrix: Features, columns: Floats) -> Floats:
    """Return a matrix product; the columns of two classes are each other's negative."""
    if columns.shape[1] == 2:
        product = matrix @ columns[:, 1]
        return np.stack([-product, product], axis=1)
    return np.asarray(matrix @ columns)


def square(features: Features) -> Features:
    if isinstance(features, np.ndarray):
        return features**2
    return csr_matrix((features.data**2, features.indices, features.indptr), shape=features.shape)


def measure_curvature(probabilities: Floats) -> Floats:
    """Return the mean second derivative of a row's loss in the score of each class, and at least a little."""
    curvature: Floats = (probabilities * (1 - probabilities)).mean(0)
    return np.maximum(curvature, np.asarray(1e-6, probabilities.dtype))


def softmax(scores: Floats) -> Floats:
    exponentials = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(exponentials / exponentials.sum(axis=1, keepdims=True))
