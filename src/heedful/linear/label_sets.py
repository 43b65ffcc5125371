"""One logistic regression per label, for texts with any number of labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from heedful.linear.logistic import (
    FEW_CLASSES,
    FEW_ROWS,
    FEWEST_CHOICE_ROWS,
    MOST_CHOICE_ROWS,
    MOST_CHOICE_SCORES,
    TOLERANCE,
    LinearFit,
    Regression,
    SimpleColumns,
    Strength,
    Trial,
    assign_folds,
    default_strengths,
    sample_stratified,
    search_strength,
)
from heedful.linear.solver import Features, Labels

MOST_CHOICE_LABELS = 12
"""Labels that the strength is chosen on, from the most frequent to the rarest."""
NO_ROWS = 0.5
"""What a label on no row, or on every row, counts as on the other side, so that nothing is impossible."""


def fit_label_sets(
    features: Features,
    sets: npt.NDArray[np.uint8],
    *,
    balanced: bool = False,
    strengths: Sequence[float] | None = None,
    seed: int = 0,
    tolerance: float | None = None,
) -> LinearFit:
    """Fit one logistic regression per label; the sigmoid of a score is the label's probability.

    All labels have the same strength: that with the lowest cross-validated log loss of all labels together.
    One for each label would be chosen by the few rows that rare labels have.

    Parameters
    ----------
    features
        `[n, d]`, a numpy array, whose columns are standardized first, or a scipy CSR matrix.
    sets
        `[n, labels]`, each 0 or 1.
    balanced
        Whether the rows with a label have the same total weight as those without it, for each label.
    strengths, seed, tolerance
        As for `fit_logistic`.

    """
    strengths = default_strengths(features) if strengths is None else strengths
    exact = tolerance is not None and tolerance < TOLERANCE
    simple = SimpleColumns(features, np.float64 if exact else np.float32)
    strength = cross_validate_sets(simple.features, sets, balanced, strengths, seed).value
    n_labels = sets.shape[1]
    weight, bias = np.zeros((n_labels, features.shape[1])), np.empty(n_labels)
    for number in range(n_labels):
        column = sets[:, number].astype(np.int64)
        present = int(column.sum())
        if present in (0, len(column)):
            bias[number] = np.log((present + NO_ROWS) / (len(column) - present + NO_ROWS))
            continue
        regression = Regression(simple.features, column, balanced)
        regression.improve(strength, tolerance)
        fitted, intercept = simple.restore(regression.weights)
        weight[number], bias[number] = fitted[1] - fitted[0], intercept[1] - intercept[0]
    dtype = np.float64 if exact else np.float32
    return LinearFit(weight.astype(dtype), bias.astype(dtype), strength)


def cross_validate_sets(
    features: Features,
    sets: npt.NDArray[np.uint8],
    balanced: bool,
    strengths: Sequence[float],
    seed: int,
) -> Strength:
    """Choose the strength for simple features as `fit_logistic` does, by the losses of all labels."""
    strengths = sorted(strengths)
    middle = len(strengths) // 2
    unknown = Strength(strengths[middle], float("nan"))
    if len(strengths) == 1:
        return unknown
    labels = choose_labels(sets)
    most = int(np.clip(MOST_CHOICE_SCORES // (2 * len(labels) or 1), FEWEST_CHOICE_ROWS, MOST_CHOICE_ROWS))
    rows = sample_stratified(find_rarest(sets), most, seed)
    share = 1.0 if issparse(features) else len(rows) / len(sets)
    features, sets = features[rows], sets[rows]
    few = len(rows) < FEW_ROWS
    n_folds, n_trials = (5, 5 if len(labels) <= FEW_CLASSES else 2) if few else (3, 2)
    folds = assign_folds(find_rarest(sets), n_folds, seed)
    trials = [
        trial
        for fold in range(n_trials)
        for label in labels
        if (trial := Trial(features, sets[:, label].astype(np.int64), folds == fold, balanced)).can_tell
    ]
    if not trials:
        return unknown
    total = sum(trial.total for trial in trials)
    best = search_strength(strengths, lambda value: sum(trial.sum_losses(value) for trial in trials) / total)
    return Strength(best.value * share, best.loss)


def choose_labels(sets: npt.NDArray[np.uint8]) -> Labels:
    """Return at most `MOST_CHOICE_LABELS` labels that some rows have and others do not."""
    counts = sets.sum(0, dtype=np.int64)
    order = np.argsort(-counts, kind="stable")
    order = order[(counts[order] > 1) & (counts[order] < len(sets))]
    if len(order) <= MOST_CHOICE_LABELS:
        return np.asarray(order)
    return np.asarray(order[np.linspace(0, len(order) - 1, MOST_CHOICE_LABELS).astype(np.int64)])


def find_rarest(sets: npt.NDArray[np.uint8]) -> Labels:
    """Return the rank of each row's rarest label, by which rows are spread over folds; the last for none."""
    counts = sets.sum(0, dtype=np.int64)
    rank = np.argsort(np.argsort(counts, kind="stable"))
    ranks = np.where(sets == 1, rank, len(counts))
    return np.asarray(ranks.min(1, initial=len(counts)), np.int64)
