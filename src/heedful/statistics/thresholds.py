"""Thresholds from which a label is predicted, one per label, tuned for F1."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Matrix = npt.NDArray[Any]
HALF = 0.5
GOALS = {"macro_f1": "macro", "weighted_f1": "macro", "f1": "macro", "hamming_loss": "half"}
"""What thresholds are tuned for where a metric selects, if it is not micro F1."""
GRID = np.linspace(0.05, 0.95, 37)
FEWEST = 10
"""A label with fewer texts has the threshold of all labels together: its own would be chance."""
FOLDS = 5
PASSES = 3


def find_goal(metric: str | None) -> str:
    """Return the goal for a metric by its name; that of one label, such as f1:joy, depends on it alone."""
    return GOALS.get((metric or "").partition(":")[0], "micro")


def apply_thresholds(probabilities: Floats, thresholds: Any) -> npt.NDArray[np.uint8]:
    """Return 1 where a probability reaches the threshold of its label."""
    return (probabilities >= np.asarray(HALF if thresholds is None else thresholds)).astype(np.uint8)


def tune_thresholds(probabilities: Floats, truth: Matrix, goal: str = "micro") -> Floats:
    """Return a threshold per label, with which F1 is largest.

    Parameters
    ----------
    probabilities, truth
        `[n, labels]`
    goal
        "micro" for the F1 of all decisions together, "macro" for that of each label, "half" for 0.5.

    """
    n_labels = truth.shape[1]
    if goal == "half" or not len(truth) or not truth.any():
        return np.full(n_labels, HALF)
    right, predicted = count_by_threshold(probabilities, truth)
    present = truth.sum(0, dtype=np.int64)
    common = int(np.argmax(2 * right.sum(0) / (predicted.sum(0) + present.sum())))
    chosen = np.full(n_labels, common)
    own = np.flatnonzero(present >= FEWEST)
    if goal == "macro":
        scores = 2 * right / np.maximum(predicted + present[:, None], 1)
        chosen[own] = scores[own].argmax(1)
        return np.asarray(GRID[chosen])
    rows = np.arange(n_labels)
    for _ in range(PASSES):
        before = chosen.copy()
        for label in own:
            others = rows != label
            hits = right[rows[others], chosen[others]].sum() + right[label]
            sizes = predicted[rows[others], chosen[others]].sum() + predicted[label]
            scores = 2 * hits / (sizes + present.sum())
            if scores.max() > scores[chosen[label]]:
                chosen[label] = int(scores.argmax())
        if (before == chosen).all():
            break
    return np.asarray(GRID[chosen])


def count_by_threshold(probabilities: Floats, truth: Matrix) -> tuple[Floats, Floats]:
    """Return how many texts are rightly given each label, and how many are given it, for each threshold."""
    right, predicted = (np.empty((truth.shape[1], len(GRID))) for _ in range(2))
    for place, threshold in enumerate(GRID):
        given = probabilities >= threshold
        predicted[:, place], right[:, place] = given.sum(0), (given & (truth == 1)).sum(0)
    return right, predicted


def cross_fit(probabilities: Floats, truth: Matrix, goal: str = "micro") -> npt.NDArray[np.uint8]:
    """Return predictions, those of each fifth of the texts by thresholds that the other texts chose.

    So a score of these predictions is not too high, as it is if the same texts choose the thresholds.
    """
    fold = np.arange(len(truth)) % FOLDS
    predicted = np.zeros(truth.shape, np.uint8)
    for number in range(FOLDS):
        held_out = fold == number
        thresholds = tune_thresholds(probabilities[~held_out], truth[~held_out], goal)
        predicted[held_out] = apply_thresholds(probabilities[held_out], thresholds)
    return predicted
