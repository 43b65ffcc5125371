"""Cumulative-link regression (McCullagh 1980) of ordered classes, on dense features."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from heedful.linear.logistic import DENSE_STRENGTHS, LinearFit

Floats = npt.NDArray[Any]
FOLDS = 5
SMALLEST_GAP = 1e-3
"""The least distance of two thresholds where a class between them has no rows."""


def fit_ordinal(
    features: Floats,
    labels: Floats,
    n_classes: int,
    *,
    balanced: bool = False,
    strengths: Sequence[float] | None = None,
) -> tuple[LinearFit, Floats]:
    """Fit a cumulative-link model; return its score and its ordered thresholds.

    With `balanced`, each class has the same total weight.
    """
    mean, std = features.mean(0, dtype=np.float64), features.std(0, dtype=np.float64)
    std[std == 0] = 1.0
    simple = (features - mean) / std
    weights = np.ones(len(labels))
    if balanced:
        counts = np.bincount(labels, minlength=n_classes)
        weights = (len(labels) / (n_classes * np.maximum(counts, 1)))[labels]
    strengths = DENSE_STRENGTHS if strengths is None else strengths
    strength = strengths[0]
    if len(strengths) > 1 and len(labels) >= FOLDS:
        part = np.arange(len(labels)) % FOLDS != 0
        losses = []
        for one in strengths:
            weight, thresholds = solve_ordinal(simple[part], labels[part], n_classes, one, weights[part])
            held_out = ordinal_losses(simple[~part] @ weight, thresholds, labels[~part])
            losses.append(float(held_out @ weights[~part]))
        strength = strengths[int(np.argmin(losses))]
    weight, thresholds = solve_ordinal(simple, labels, n_classes, strength, weights)
    shift = float(weight @ (mean / std))
    return LinearFit((weight / std)[None], np.zeros(1), strength), thresholds + shift


def solve_ordinal(
    features: Floats, labels: Floats, n_classes: int, strength: float, weights: Floats
) -> tuple[Floats, Floats]:
    d = features.shape[1]
    shares = np.cumsum(np.bincount(labels, weights, n_classes) + 1)[:-1] / (weights.sum() + n_classes)
    first = np.log(shares / (1 - shares))
    start = np.concatenate([np.zeros(d), first[:1], np.log(np.maximum(np.diff(first), SMALLEST_GAP))])

    def compute(parameters: Floats) -> tuple[float, Floats]:
        weight, gaps = parameters[:d], np.exp(parameters[d + 1 :])
        thresholds = parameters[d] + np.concatenate([[0.0], np.cumsum(gaps)])
        score = features @ weight
        loss, of_score, of_thresholds = ordinal_gradient(score, thresholds, labels, weights)
        later = np.cumsum(of_thresholds[::-1])[::-1]
        gradient = np.concatenate(
            [features.T @ of_score + weight / strength, [of_thresholds.sum()], later[1:] * gaps]
        )
        return loss + float(weight @ weight) / (2 * strength), gradient

    from scipy.optimize import minimize

    found = minimize(compute, start, jac=True, method="L-BFGS-B", options={"maxiter": 500}).x
    gaps = np.maximum(np.exp(found[d + 1 :]), SMALLEST_GAP)
    return found[:d], found[d] + np.concatenate([[0.0], np.cumsum(gaps)])


def ordinal_bounds(score: Floats, thresholds: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Return the distances from a score to the thresholds above and below its class."""
    edges = np.concatenate([[-np.inf], thresholds, [np.inf]])
    return edges[labels + 1] - score, edges[labels] - score


def ordinal_losses(score: Floats, thresholds: Floats, labels: Floats) -> Floats:
    above, below = ordinal_bounds(score, thresholds, labels)
    return np.asarray(-np.log(np.maximum(expit(above) - expit(below), 1e-300)))


def ordinal_gradient(
    score: Floats, thresholds: Floats, labels: Floats, weights: Floats
) -> tuple[float, Floats, Floats]:
    """Return the weighted loss, and its derivatives by the scores and by the thresholds."""
    above, below = ordinal_bounds(score, thresholds, labels)
    high, low = expit(above), expit(below)
    share = np.maximum(high - low, 1e-300)
    slope_high, slope_low = weights * high * (1 - high) / share, weights * low * (1 - low) / share
    of_edges = np.bincount(labels + 1, -slope_high, len(thresholds) + 2)
    of_edges += np.bincount(labels, slope_low, len(thresholds) + 2)
    return float(-np.log(share) @ weights), slope_high - slope_low, of_edges[1:-1]
