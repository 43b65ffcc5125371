"""Metrics of numbers: targets and predictions `[n]` in their own units, or numbers of ordered classes."""

from __future__ import annotations

import numpy as np

from heedful.evaluation.metrics.counts import divide
from heedful.evaluation.metrics.probabilities import mean_of_examples, sort_ties
from heedful.evaluation.metrics.resampling import Array, Floats, OnWeights

SMALLEST = 1e-12
"""A variance that is a smaller part of its terms is a rounding error of 0."""


def mae(targets: Array, predicted: Array) -> OnWeights:
    return mean_of_examples(np.abs(errors(targets, predicted)))


def rmse(targets: Array, predicted: Array) -> OnWeights:
    mean = mean_of_examples(errors(targets, predicted) ** 2)
    return lambda weights: np.sqrt(mean(weights))


def errors(targets: Array, predicted: Array) -> Floats:
    if targets.shape != predicted.shape:
        raise ValueError(f"{targets.shape} numbers and {predicted.shape} predictions do not belong together")
    return np.asarray(predicted.astype(np.float64) - targets.astype(np.float64))


def r2(targets: Array, predicted: Array) -> OnWeights:
    """Compute the share of the variance that is explained.

    Where the targets do not vary it is 1 if all are right, and else 0, as in scikit-learn.
    """
    squares = errors(targets, predicted) ** 2
    centered = targets.astype(np.float64) - targets.mean()

    def score(weights: Floats) -> Floats:
        residual, varies = weights @ squares, variance_sum(weights, centered)
        return np.where(varies > 0, 1 - divide(residual, varies), np.where(residual > 0, 0.0, 1.0))

    return score


def standardize(predicted: Array) -> Floats:
    """Return the predictions with mean 0 and variance 1, or zeros where they do not vary."""
    centered = predicted.astype(np.float64) - predicted.mean()
    return np.asarray(centered / (float(centered.std()) or 1.0))


def add_weighted(weights: Floats, values: Floats) -> Floats:
    """Return the weighted sum of values `[n]`, or of those of each resample, `[resamples, n]`."""
    return weights @ values if values.ndim == 1 else np.einsum("rn,rn->r", weights, values)


def variance_sum(weights: Floats, values: Floats) -> Floats:
    """Return the weighted sum of squared distances from the mean."""
    squares, total = add_weighted(weights, values**2), add_weighted(weights, values)
    spread = squares - divide(total**2, weights.sum(1), 0.0)
    return np.where(spread > SMALLEST * np.maximum(squares, np.finfo(np.float64).tiny), spread, 0.0)


def correlate(weights: Floats, x: Floats, y: Floats) -> Floats:
    """Return the weighted correlation of each resample; nan where one of the two does not vary."""
    product_of_sums = add_weighted(weights, x) * add_weighted(weights, y)
    covariance = add_weighted(weights, x * y) - divide(product_of_sums, weights.sum(1), 0.0)
    correlation = divide(covariance, np.sqrt(variance_sum(weights, x) * variance_sum(weights, y)))
    return np.clip(correlation, -1.0, 1.0)


def pearson(targets: Array, predicted: Array) -> OnWeights:
    """Compute Pearson's correlation."""
    x, y = (part.astype(np.float64) - part.mean() for part in (targets, predicted))
    return lambda weights: correlate(weights, x, y)


def spearman(targets: Array, predicted: Array) -> OnWeights:
    """Compute Spearman's correlation: that of the ranks, where equal values share their mean rank."""
    rank_targets, rank_predicted = rank_weighted(targets), rank_weighted(predicted)
    return lambda weights: correlate(weights, rank_targets(weights), rank_predicted(weights))


def rank_weighted(values: Array) -> OnWeights:
    """Return the ranks in each resample, `[resamples, n]`, counted from their middle."""
    order, starts = sort_ties(values)
    group = np.empty(len(values), np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff([*starts, len(values)]))

    def rank(weights: Floats) -> Floats:
        sizes = np.add.reduceat(weights[:, order], starts, axis=1)
        middles = sizes.cumsum(1) - sizes / 2 - weights.sum(1, keepdims=True) / 2
        return np.asarray(middles[:, group])

    return rank
