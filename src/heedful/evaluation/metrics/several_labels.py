"""Metrics of several labels per example: targets and predictions `[n, labels]` of 0 and 1."""

from __future__ import annotations

import numpy as np

from heedful.evaluation.metrics.counts import divide
from heedful.evaluation.metrics.probabilities import mean_of_examples
from heedful.evaluation.metrics.resampling import Array, OnWeights

ROWS = 2048
"""Examples whose labels are compared with each other at once."""


def subset_accuracy(targets: Array, predicted: Array) -> OnWeights:
    """Compute the share of examples with no wrong label at all."""
    return mean_of_examples((targets == predicted).all(1).astype(np.float64))


def hamming_loss(targets: Array, predicted: Array) -> OnWeights:
    """Compute the share of all labels of all examples that are wrong."""
    return mean_of_examples((targets != predicted).mean(1))


def jaccard(targets: Array, predicted: Array) -> OnWeights:
    """Average the labels that are in both sets over those in either, as SemEval-2018 E-c does.

    An example with no label that is predicted to have none counts 1; scikit-learn's default is 0, and
    `zero_division=1` is this.
    """
    truth, guess = targets == 1, predicted == 1
    both, either = (truth & guess).sum(1).astype(np.float64), (truth | guess).sum(1).astype(np.float64)
    return mean_of_examples(divide(both, either, 1.0))


def label_ranking_average_precision(targets: Array, probabilities: Array) -> OnWeights:
    """Average, over an example's labels, the share of right labels among those ranked as high or higher.

    An example with no label, or with all, counts 1.
    """
    values = np.ones(len(targets))
    for start in range(0, len(targets), ROWS):
        truth, p = targets[start : start + ROWS] == 1, probabilities[start : start + ROWS]
        as_high = p[:, None, :] >= p[:, :, None]  # [n, label, other label]
        ranks, right = as_high.sum(2), (as_high & truth[:, None, :]).sum(2)
        n_labels = truth.sum(1).astype(np.float64)
        values[start : start + ROWS] = divide(np.where(truth, right / ranks, 0.0).sum(1), n_labels, 1.0)
    return mean_of_examples(values)
