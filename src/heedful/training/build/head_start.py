"""Fits a new linear head to the states of the pretrained model, before the first step.

A random head sends random gradients into the pretrained body until it has learned something itself; a fitted
one does not (Kumar et al. 2022, Fine-tuning can distort pretrained features). It costs one forward pass.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
import torch

from heedful.models import Classifier
from heedful.models.heads import LinearHead
from heedful.objectives import Classify

REGULARIZATION = 0.01
"""Scikit-learn's C, on standardized states: the best or close to it on every task that was tried."""
ITERATIONS = 200
MOST_ROWS = 20_000
"""More rows take longer and hardly change a linear head."""
ABSENT = -2.0
"""The bias of a label without training rows, relative to the lowest of the others."""


def fit_head(model: Classifier, objective: Classify) -> float:
    """Set the head to a logistic regression on the pooled states of the training rows.

    Returns
    -------
    float
        The seconds that this took.

    """
    began = time.monotonic()
    assert isinstance(model.head, LinearHead)
    rows = objective.rows
    if len(rows) > MOST_ROWS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_ROWS).astype(np.int64)]
    states = objective.pooled_states(model, "train", rows)[torch.from_numpy(rows)].numpy()
    weight, bias = fit_linear(
        states, objective.labels["train"][rows], model.n_classes, balanced=objective.class_weights is not None
    )
    with torch.no_grad():
        model.head.out.weight.copy_(torch.from_numpy(weight))
        if model.head.out.bias is not None:
            model.head.out.bias.copy_(torch.from_numpy(bias))
    return time.monotonic() - began


def fit_linear(
    states: npt.NDArray[np.float32], labels: npt.NDArray[np.int64], n_classes: int, *, balanced: bool
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the weights [n_classes, d] and biases [n_classes] of a multinomial logistic regression."""
    from sklearn.linear_model import LogisticRegression

    weight, bias = np.zeros((n_classes, states.shape[1])), np.zeros(n_classes)
    present = np.unique(labels)
    if len(present) < 2:
        return weight, bias
    mean, scale = states.mean(0), states.std(0) + 1e-6
    model = LogisticRegression(
        C=REGULARIZATION, max_iter=ITERATIONS, class_weight="balanced" if balanced else None
    )
    model.fit((states - mean) / scale, labels)
    fitted, intercept = model.coef_, model.intercept_
    if len(present) == 2:  # one row of coefficients tells the two classes apart
        fitted, intercept = np.concatenate([-fitted, fitted]) / 2, np.concatenate([-intercept, intercept]) / 2
    fitted = fitted / scale
    intercept = intercept - fitted @ mean
    bias[:] = intercept.min() + ABSENT
    weight[present], bias[present] = fitted, intercept
    return weight, bias
