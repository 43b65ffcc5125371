"""Calibrated probabilities by temperature scaling (Guo et al. 2017): one number, fitted on held-out rows."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax

Floats = npt.NDArray[np.float64]
SMALLEST = 1e-12
"""A probability of zero has no logarithm; a smaller one counts as this."""
MOST = 20.0
"""The largest temperature, and the inverse of the smallest."""


def scale_temperature(probabilities: npt.ArrayLike, temperature: float) -> Floats:
    """Return the probabilities `[..., classes]` whose logits are divided by `temperature`.

    Above 1 they are less extreme. The order of the classes stays the same.
    """
    logits = np.log(np.maximum(np.asarray(probabilities, np.float64), SMALLEST))
    return np.asarray(np.exp(log_softmax(logits / temperature, axis=-1)))


def fit_temperature(probabilities: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Return the temperature that makes held-out labels most probable.

    Two examples are added, one that the model has right and one that it has wrong, so that a model without a
    mistake on few examples does not become certain.
    """
    table, truth = np.asarray(probabilities, np.float64), np.asarray(labels, np.int64)
    if table.ndim != 2 or len(table) != len(truth) or not len(truth):
        raise ValueError("probabilities are [examples, classes], one label for each example")
    logits = np.log(np.maximum(table, SMALLEST))
    # The added examples are the mean example of the model, once with its class and once with the runner-up.
    ordered = np.sort(logits, axis=1)[:, ::-1].mean(0)

    def loss(log_temperature: float) -> float:
        temperature = math.exp(log_temperature)
        right = log_softmax(logits / temperature, axis=1)[np.arange(len(truth)), truth].sum()
        added = log_softmax(ordered / temperature)
        return float(-(right + added[0] + added[1])) if len(added) > 1 else 0.0

    from scipy.optimize import minimize_scalar

    bounds = (-math.log(MOST), math.log(MOST))
    return math.exp(float(minimize_scalar(loss, bounds=bounds, method="bounded").x))
