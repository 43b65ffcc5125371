"""Metrics of labels that need only counts: how often each class occurs, is predicted, and is predicted right.

The targets are one class per example, `[n]`, or one 0 or 1 per example and label, `[n, labels]`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.evaluation.metrics.resampling import Array, Floats, OnWeights


class Counts(NamedTuple):
    """Weighted counts of each class, `[resamples, classes]`."""

    right: Floats
    occurs: Floats
    predicted: Floats


def divide(above: Floats, below: Floats, undefined: float = np.nan) -> Floats:
    """Return the quotient, and `undefined` where the divisor is 0."""
    out = np.full(np.shape(above), undefined)
    return np.asarray(np.divide(above, below, out=out, where=below != 0))


def mean_defined(values: Floats) -> Floats:
    """Return the mean of each row over its values that are numbers; nan if it has none."""
    defined = np.isfinite(values)
    return divide(np.where(defined, values, 0.0).sum(1), defined.sum(1).astype(np.float64))


def number_classes(targets: Array, outputs: Array) -> tuple[Array, Array, int]:
    """Return both as class numbers, and the number of classes; classes may be given as texts."""
    if targets.shape != outputs.shape:
        raise ValueError(f"{targets.shape} labels and {outputs.shape} predictions do not belong together")
    if all(np.issubdtype(classes.dtype, np.integer) for classes in (targets, outputs)):
        return targets, outputs, int(max(targets.max(initial=0), outputs.max(initial=0))) + 1
    names, numbers = np.unique(np.concatenate([targets, outputs]), return_inverse=True)
    return numbers[: len(targets)], numbers[len(targets) :], len(names)


def count(targets: npt.ArrayLike, outputs: npt.ArrayLike) -> Callable[[Floats], Counts]:
    """Return a function from weights to the counts of each class, or of each of several labels."""
    truth, guess = np.asarray(targets), np.asarray(outputs)
    if truth.ndim == 2:
        occur, predict = truth.astype(np.float64), guess.astype(np.float64)
        return lambda weights: Counts(weights @ (occur * predict), weights @ occur, weights @ predict)
    truth, guess, n_classes = number_classes(truth, guess)
    # Few pairs of a class and a predicted class occur: their rows are added first.
    pairs = truth.astype(np.int64) * n_classes + guess
    order = np.argsort(pairs, kind="stable")
    cells, starts = np.unique(pairs[order], return_index=True)
    true_class, predicted_class = np.divmod(cells, n_classes)
    of_true, of_predicted = np.eye(n_classes)[true_class], np.eye(n_classes)[predicted_class]
    of_right = of_true * (true_class == predicted_class)[:, None]

    def add(weights: Floats) -> Counts:
        in_cells = np.add.reduceat(weights[:, order], starts, axis=1)  # [resamples, pairs]
        return Counts(in_cells @ of_right, in_cells @ of_true, in_cells @ of_predicted)

    return add


def class_f1(counts: Counts) -> Floats:
    """Return F1 of each class; nan for one that neither occurs nor is predicted."""
    return divide(2 * counts.right, counts.occurs + counts.predicted)


def macro_f1(targets: Array, outputs: Array) -> OnWeights:
    """Average F1 over the classes that occur or are predicted."""
    counts = count(targets, outputs)
    return lambda weights: mean_defined(class_f1(counts(weights)))


def weighted_f1(targets: Array, outputs: Array) -> OnWeights:
    """Average F1 over the classes, each weighted by its number of examples."""
    counts = count(targets, outputs)

    def score(weights: Floats) -> Floats:
        c = counts(weights)
        return divide((np.nan_to_num(class_f1(c)) * c.occurs).sum(1), c.occurs.sum(1))

    return score


def micro_f1(targets: Array, outputs: Array) -> OnWeights:
    """Compute F1 of all labels of all examples together."""
    counts = count(targets, outputs)

    def score(weights: Floats) -> Floats:
        c = counts(weights)
        return divide(2 * c.right.sum(1), c.occurs.sum(1) + c.predicted.sum(1))

    return score


def f1_of_class(number: int, targets: Array, outputs: Array) -> OnWeights:
    """Compute F1 of one class, or of one of several labels; nan where it neither occurs nor is predicted."""
    if targets.ndim == 2:
        targets, outputs = targets[:, number], outputs[:, number]
    else:
        targets, outputs = targets == number, outputs == number
    occurs, predicted = targets.astype(np.float64), outputs.astype(np.float64)
    columns = np.stack([2 * occurs * predicted, occurs + predicted], axis=1)

    def score(weights: Floats) -> Floats:
        sums = weights @ columns
        return divide(sums[:, 0], sums[:, 1])

    return score


def balanced_accuracy(targets: Array, outputs: Array) -> OnWeights:
    """Average the share that is right over the classes that occur."""
    counts = count(targets, outputs)

    def score(weights: Floats) -> Floats:
        c = counts(weights)
        return mean_defined(divide(c.right, c.occurs))

    return score


def matthews(targets: Array, outputs: Array) -> OnWeights:
    """Compute Matthews' correlation of labels and predictions (Gorodkin 2004 for more than two classes)."""
    counts = count(targets, outputs)

    def score(weights: Floats) -> Floats:
        c = counts(weights)
        total = c.occurs.sum(1)
        covariance = c.right.sum(1) * total - (c.occurs * c.predicted).sum(1)
        variances = [total**2 - (part**2).sum(1) for part in (c.occurs, c.predicted)]
        return divide(covariance, np.sqrt(variances[0] * variances[1]))

    return score


def quadratic_kappa(targets: Array, outputs: Array) -> OnWeights:
    """Compute Cohen's kappa with squared distances of the class numbers as weights (Cohen 1968)."""
    truth, guess = targets.astype(np.float64), outputs.astype(np.float64)
    columns = np.stack([np.ones(len(truth)), truth, guess, truth**2, guess**2, (truth - guess) ** 2], axis=1)

    def score(weights: Floats) -> Floats:
        total, sum_t, sum_p, squares_t, squares_p, observed = (weights @ columns).T
        expected = squares_t + squares_p - 2 * divide(sum_t * sum_p, total, 0.0)
        return 1 - divide(observed, expected)

    return score
