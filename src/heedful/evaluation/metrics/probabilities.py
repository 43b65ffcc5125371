"""Metrics of probabilities: how well they rank the examples, and how close they are to what is true.

The targets are one class per example, `[n]`, with probabilities `[n, classes]`, or one 0 or 1 per example and
label, `[n, labels]`, with a probability each.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from heedful.evaluation.metrics.counts import divide, mean_defined
from heedful.evaluation.metrics.resampling import Array, Floats, OnWeights

Bools = npt.NDArray[np.bool_]
Rank = Callable[[Bools, Array], OnWeights]


def select_class(number: int, targets: Array, probabilities: Array) -> tuple[Bools, Array]:
    """Return which examples have a class or label, and its probabilities."""
    has = targets[:, number] == 1 if targets.ndim == 2 else targets == number
    return np.asarray(has, np.bool_), probabilities[:, number]


def average_classes(rank: Rank, targets: Array, probabilities: Array) -> OnWeights:
    """Compute a metric of two classes for the second class, or average it over classes or labels.

    Of more than two classes, each is ranked against the rest. A class that no example has, or every one, has
    no value and is left out.
    """
    one = targets.ndim == 1 and probabilities.shape[1] == 2
    numbers = [1] if one else range(probabilities.shape[1])
    scores = [rank(*select_class(number, targets, probabilities)) for number in numbers]
    return lambda weights: mean_defined(np.stack([score(weights) for score in scores], axis=1))


def rank_area(has: Bools, scores: Array) -> OnWeights:
    """Compute the share of pairs of an example with and one without the class that are ranked right.

    It is the area under the ROC curve; a pair with equal scores counts half.
    """
    order, starts = sort_ties(scores)
    is_positive = has[order].astype(np.float64)

    def area(weights: Floats) -> Floats:
        positive, negative = add_ties(weights[:, order], is_positive, starts)
        below = negative.cumsum(1) - negative
        pairs = positive.sum(1) * negative.sum(1)
        return divide((positive * (below + negative / 2)).sum(1), pairs)

    return area


def rank_precision(has: Bools, scores: Array) -> OnWeights:
    """Compute average precision: the precision at each example with the class, averaged over them."""
    order, starts = sort_ties(-scores)
    is_positive = has[order].astype(np.float64)

    def average(weights: Floats) -> Floats:
        positive, negative = add_ties(weights[:, order], is_positive, starts)
        right, above = positive.cumsum(1), (positive + negative).cumsum(1)
        return divide((positive * divide(right, above, 0.0)).sum(1), positive.sum(1))

    return average


def sort_ties(scores: Array) -> tuple[Array, Array]:
    """Return the order of the scores, and where each distinct score begins in it."""
    order = np.argsort(scores, kind="stable")
    _, starts = np.unique(scores[order], return_index=True)
    return order, starts


def rank_columns(outputs: Array) -> Floats:
    """Return the rank of each output among those of its column; equal ones share the mean of their ranks."""
    ranks = []
    for column in outputs.reshape(len(outputs), -1).T:
        _, places, counts = np.unique(column, return_inverse=True, return_counts=True)
        ranks.append((counts.cumsum() - (counts - 1) / 2)[places])
    return np.stack(ranks, axis=1).reshape(outputs.shape)


def add_ties(weights: Floats, is_positive: Floats, starts: Array) -> tuple[Floats, Floats]:
    """Add the weights of the examples with and without the class at each distinct score."""
    positive = weights * is_positive
    if len(starts) == weights.shape[1]:
        return positive, weights - positive
    positive, total = (np.add.reduceat(part, starts, axis=1) for part in (positive, weights))
    return positive, total - positive


def auroc(targets: Array, probabilities: Array) -> OnWeights:
    return average_classes(rank_area, targets, probabilities)


def average_precision(targets: Array, probabilities: Array) -> OnWeights:
    return average_classes(rank_precision, targets, probabilities)


def average_precision_of_class(number: int, targets: Array, probabilities: Array) -> OnWeights:
    return rank_precision(*select_class(number, targets, probabilities))


def mean_of_examples(values: Floats) -> OnWeights:
    """Return the metric that is the mean of one value per example."""
    return lambda weights: divide(weights @ values, weights.sum(1))


def log_loss(targets: Array, probabilities: Array) -> OnWeights:
    """Average -log p of the true class; with several labels per example, also over the labels."""
    eps = np.finfo(np.float64).eps  # as in scikit-learn: a single 0 does not make the mean infinite
    p = np.clip(probabilities.astype(np.float64), eps, 1 - eps)
    if targets.ndim == 2:
        return mean_of_examples(-np.where(targets == 1, np.log(p), np.log1p(-p)).mean(1))
    return mean_of_examples(-np.log(p[np.arange(len(p)), targets]))


def brier(targets: Array, probabilities: Array) -> OnWeights:
    """Average the squared error of the probabilities (Brier 1950), summed over more than two classes.

    Of two classes one is enough, and of several labels the mean is taken.
    """
    if targets.ndim == 2:
        return mean_of_examples(((probabilities - targets) ** 2).mean(1))
    errors = (probabilities - np.eye(probabilities.shape[1])[targets]) ** 2
    return mean_of_examples(errors[:, 1] if probabilities.shape[1] == 2 else errors.sum(1))
