"""Multinomial logistic regression on dense or sparse features, its strength chosen by cross-validation.

This is the one place that fits a linear classifier. scikit-learn is imported while fitting and never for
predicting: its import takes as long as torch's.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, issparse

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Labels: TypeAlias = npt.NDArray[np.integer[Any]]
Features: TypeAlias = Floats | csr_matrix

DENSE_STRENGTHS = (0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""scikit-learn's C for standardized features."""
SPARSE_STRENGTHS = (0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""scikit-learn's C for tf-idf rows of length 1."""
ITERATIONS = 200
CHOICE_ITERATIONS = 100
MOST_CHOICE_ROWS = 5_000
FEWEST_CHOICE_ROWS = 2_000
MOST_CHOICE_SCORES = 200_000
"""Rows times classes that the strength is chosen on, within the two numbers of rows above."""
FEW_ROWS = 1_000
"""Below this many rows there are five folds, and each is held out; of more rows, two folds of three are."""
FEW_CLASSES = 10
"""With more classes, which take longer, two of the five folds are held out."""
ABSENT = -2.0
"""The bias of a label without training rows, relative to the lowest of the others."""


@dataclass(frozen=True)
class LinearFit:
    """A fitted classifier, for features that need no standardizing: that is folded into its weights."""

    weight: Floats
    """`[n_classes, n_features]`."""
    bias: Floats
    """`[n_classes]`."""
    strength: float
    """scikit-learn's C."""

    def logits(self, features: Features) -> Floats:
        """Return the score of each class `[n, n_classes]`; their softmax is the probabilities."""
        return np.asarray(features @ self.weight.T + self.bias)


@dataclass(frozen=True)
class Strength:
    """The strength with the lowest held-out loss."""

    value: float
    loss: float
    """Mean log loss of rows that were held out; nan if there were too few rows to hold any out."""


def fit_logistic(
    features: Features,
    labels: Labels,
    n_classes: int,
    *,
    balanced: bool = False,
    strengths: Sequence[float] | None = None,
    seed: int = 0,
) -> LinearFit:
    """Fit a multinomial logistic regression.

    Dense features are standardized first, sparse ones are taken as they are. A label without rows gets no
    weights and a bias below all others.

    Parameters
    ----------
    features
        `[n, d]`, a numpy array or a scipy CSR matrix.
    labels
        `[n]`, from 0 to `n_classes` - 1.
    balanced
        Whether each class has the same total weight.
    strengths
        The values of scikit-learn's C to choose from by cross-validated log loss; a single one is used as it
        is. The default depends on whether the features are dense or sparse.
    seed
        Decides which rows are held out together.

    """
    weight, bias = np.zeros((n_classes, features.shape[1])), np.zeros(n_classes)
    strengths = default_strengths(features) if strengths is None else strengths
    present = np.unique(labels)
    if len(present) < 2:
        bias[np.setdiff1d(np.arange(n_classes), present)] = ABSENT
        return LinearFit(weight, bias, strengths[0])
    strength = choose_strength(
        features, labels, n_classes, balanced=balanced, strengths=strengths, seed=seed
    ).value
    mean, scale = measure_columns(features)
    model = make_model(balanced, max_iter=ITERATIONS, C=strength)
    fit_quietly(model, standardize(features, mean, scale), labels)
    fitted, intercept = model.coef_, model.intercept_
    if len(present) == 2:  # one row of coefficients tells the two classes apart
        fitted, intercept = np.concatenate([-fitted, fitted]) / 2, np.concatenate([-intercept, intercept]) / 2
    fitted = fitted / scale
    intercept = intercept - fitted @ mean if np.ndim(mean) else intercept
    bias[:] = intercept.min() + ABSENT
    weight[present], bias[present] = fitted, intercept
    return LinearFit(weight, bias, strength)


def choose_strength(
    features: Features,
    labels: Labels,
    n_classes: int,
    *,
    balanced: bool = False,
    strengths: Sequence[float] | None = None,
    seed: int = 0,
) -> Strength:
    """Return the strength with the lowest log loss of held-out rows.

    The middle strength and its neighbors are tried first, and then further ones as long as the loss falls.
    With fewer than two rows for most labels nothing can be held out, and the middle strength is returned.
    Where only a part of the rows decides, the strength for dense features is lowered accordingly: C
    multiplies the sum over all rows, and not their mean.
    """
    strengths = sorted(default_strengths(features) if strengths is None else strengths)
    middle = len(strengths) // 2
    most = int(np.clip(MOST_CHOICE_SCORES // n_classes, FEWEST_CHOICE_ROWS, MOST_CHOICE_ROWS))
    rows = sample_stratified(labels, most, seed)
    counts = np.bincount(labels[rows], minlength=n_classes)
    if len(strengths) == 1 or (counts > 1).sum() < max(2, (counts > 0).sum() / 2):
        return Strength(strengths[middle], float("nan"))
    share = 1.0 if issparse(features) else len(rows) / len(labels)
    features, labels = features[rows], labels[rows]
    n_folds, n_trials = (5, 5 if n_classes <= FEW_CLASSES else 2) if len(rows) < FEW_ROWS else (3, 2)
    if issparse(features) and len(rows) < min(FEW_ROWS, features.shape[1]):
        features = shorten_rows(features)
    folds = assign_folds(labels, n_folds, seed)
    trials = [Trial(features, labels, folds == fold, balanced) for fold in range(n_trials)]
    trials = [trial for trial in trials if trial.can_tell]
    if not trials:
        return Strength(strengths[middle], float("nan"))
    total = sum(trial.total for trial in trials)

    def measure_loss(strength: float) -> float:
        return sum(trial.sum_losses(strength) for trial in trials) / total

    best = Strength(strengths[middle], measure_loss(strengths[middle]))
    for direction in (strengths[middle + 1 :], strengths[:middle][::-1]):
        before = best
        for strength in direction:
            loss = measure_loss(strength)
            if loss >= best.loss:
                break
            best = Strength(strength, loss)
        if best is not before:
            break  # the loss has one minimum, and it is on this side
    return Strength(best.value * share, best.loss)


def shorten_rows(features: csr_matrix) -> csr_matrix:
    """Return as many columns as rows, with the same products of rows.

    A fit depends on nothing else (the representer theorem), and is many times faster with fewer columns.
    """
    products = (features @ features.T).toarray().astype(np.float64)
    products[np.diag_indices_from(products)] += 1e-8  # rows may be equal
    return csr_matrix(np.linalg.cholesky(products))


class Trial:
    """One fold of the cross-validation: each fit starts from where the last one ended."""

    def __init__(
        self, features: Features, labels: Labels, held_out: npt.NDArray[np.bool_], balanced: bool
    ) -> None:
        train, self.labels = features[~held_out], labels[~held_out]
        mean, scale = measure_columns(train)
        self.train = standardize(train, mean, scale)
        # A row whose label has no other rows says nothing about the strength.
        scored = held_out & np.isin(labels, self.labels)
        self.scored, self.truth = standardize(features[scored], mean, scale), labels[scored]
        self.row_weights = 1 / np.bincount(labels)[self.truth] if balanced else np.ones(len(self.truth))
        self.total = float(self.row_weights.sum())
        self.model = make_model(balanced, max_iter=CHOICE_ITERATIONS, warm_start=True)

    @property
    def can_tell(self) -> bool:
        """Whether there are rows to score and at least two labels to fit."""
        return len(self.truth) > 0 and len(np.unique(self.labels)) > 1

    def sum_losses(self, strength: float) -> float:
        """Return the weighted sum of the log losses of the rows that are held out."""
        fit_quietly(self.model.set_params(C=strength), self.train, self.labels)
        logs = self.model.predict_log_proba(self.scored)
        chosen = logs[np.arange(len(logs)), np.searchsorted(self.model.classes_, self.truth)]
        return float(-(self.row_weights * np.maximum(chosen, -30)).sum())


def assign_folds(labels: Labels, n_folds: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the fold of each row; each label's rows are spread over the folds as evenly as possible."""
    folds = np.empty(len(labels), np.int64)
    folds[shuffle_by_label(labels, seed)] = np.arange(len(labels)) % n_folds
    return folds


def sample_stratified(labels: Labels, most: int, seed: int) -> npt.NDArray[np.int64]:
    """Return at most `most` rows, in their order, with the labels' shares of all rows."""
    if len(labels) <= most:
        return np.arange(len(labels))
    order = shuffle_by_label(labels, seed)
    return np.sort(order[np.linspace(0, len(order) - 1, most).astype(np.int64)])


def shuffle_by_label(labels: Labels, seed: int) -> npt.NDArray[np.int64]:
    """Return all rows, label after label, those of one label shuffled."""
    order = np.random.default_rng(seed).permutation(len(labels))
    return np.asarray(order[np.argsort(labels[order], kind="stable")], np.int64)


def default_strengths(features: Features) -> tuple[float, ...]:
    return SPARSE_STRENGTHS if issparse(features) else DENSE_STRENGTHS


def measure_columns(features: Features) -> tuple[Floats | float, Floats | float]:
    """Return what dense features are standardized by, and 0 and 1 for sparse ones, which stay as they are."""
    if issparse(features):
        return 0.0, 1.0
    dense = np.asarray(features)
    return dense.mean(0), dense.std(0) + 1e-6


def standardize(features: Features, mean: Floats | float, scale: Floats | float) -> Features:
    return features if issparse(features) else np.asarray((features - mean) / scale)


def make_model(balanced: bool, **settings: Any) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(class_weight="balanced" if balanced else None, **settings)


def fit_quietly(model: Any, features: Features, labels: Labels) -> None:
    """Fit a model; that it stopped at its last iteration is no news to a user."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(features, labels)
