"""Multinomial logistic regression on dense or sparse features, its strength chosen by cross-validation.

This is the one place that fits a linear classifier. It gives what scikit-learn's LogisticRegression gives,
without scikit-learn, whose import takes as long as torch's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from heedful.linear.solver import Features, Floats, Labels, SoftmaxRegression, softmax

DENSE_STRENGTHS = (1e-6, 1e-5, 1e-4, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
"""scikit-learn's C for standardized features; the first one leaves only the shares of the labels."""
SPARSE_STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0)
"""scikit-learn's C for tf-idf rows of length 1."""
TOLERANCE = 1e-5
"""How far the mean loss may be from its minimum; single precision reaches this."""
SPARSE_TOLERANCE = 1e-3
"""The same for many sparse rows, which take longer; further steps change accuracy by less than its noise."""
SMALLEST_PART = 1e-6
"""Of the products of rows, what is smaller relative to the largest part is rounding: rows may be equal."""
MOST_CHOICE_ROWS = 3_000
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
    """A fitted classifier or regression, for plain features: standardizing is folded into its weights."""

    weight: Floats
    """`[n_classes, n_features]`; one row for a number."""
    bias: Floats
    """`[n_classes]`."""
    strength: float
    """scikit-learn's C; of a ridge regression, 1 / alpha."""

    def apply(self, features: Features) -> Floats:
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
    tolerance: float | None = None,
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
    tolerance
        How far the mean loss may be from its minimum. The default is 0.001 for many sparse rows and 1e-5 for
        others; a fit to less than that is computed in double precision.

    """
    strengths = default_strengths(features) if strengths is None else strengths
    present = np.unique(labels)
    if len(present) < 2:
        bias = np.where(np.isin(np.arange(n_classes), present), 0, ABSENT)
        return LinearFit(np.zeros((n_classes, features.shape[1])), bias, strengths[0])
    exact = tolerance is not None and tolerance < TOLERANCE
    simple = SimpleColumns(features, np.float64 if exact else np.float32)
    strength = cross_validate(simple.features, labels, n_classes, balanced, strengths, seed).value
    regression = Regression(simple.features, labels, balanced)
    regression.improve(strength, tolerance)
    fitted, intercept = simple.restore(regression.weights)
    weight = np.zeros((n_classes, features.shape[1]), fitted.dtype)
    bias = np.full(n_classes, intercept.min() + ABSENT, fitted.dtype)
    weight[present], bias[present] = fitted, intercept
    return LinearFit(weight, bias, strength)


class SimpleColumns:
    """The same features with columns that are easier to fit, and the way back.

    Dense columns get mean 0 and scale 1. They are then rotated so that none is correlated with another, which
    changes no fit but makes it many times as fast. The columns of a few sparse rows become as many as there
    are rows: a fit depends on the products of rows alone (the representer theorem).
    """

    def __init__(self, features: Features, precision: type[np.floating[Any]] = np.float32) -> None:
        self.mean, self.scale = measure_columns(features)
        standard = standardize(features, self.mean, self.scale).astype(precision)
        rows, columns = features.shape
        if issparse(features) and rows >= min(FEW_ROWS, columns):
            self.basis, self.rotation, self.features = None, None, standard
            return
        by_rows = rows < columns
        products = standard @ standard.T if by_rows else standard.T @ standard
        values, vectors = np.linalg.eigh(products if isinstance(products, np.ndarray) else products.toarray())
        if by_rows:
            kept = values > SMALLEST_PART * values[-1]
            lengths = np.sqrt(values[kept])
            self.basis, self.rotation = standard, vectors[:, kept] / lengths
            self.features = vectors[:, kept] * lengths
        else:
            self.basis, self.rotation, self.features = None, vectors, standard @ vectors

    def restore(self, weights: Floats) -> tuple[Floats, Floats]:
        """Return weight `[n_classes, d]` and bias for the features as they were."""
        weight, bias = weights[:-1], weights[-1]
        if self.rotation is not None:
            weight = self.rotation @ weight
        if self.basis is not None:
            weight = np.asarray(self.basis.T @ weight)
        weight = np.ascontiguousarray(weight.T / self.scale, weights.dtype)
        return weight, bias - weight @ self.mean if np.ndim(self.mean) else bias


class Regression:
    """A regression on simple features and on the labels that occur; a fit starts where the last one ended."""

    def __init__(self, features: Features, labels: Labels, balanced: bool) -> None:
        self.labels, numbers, counts = np.unique(labels, return_inverse=True, return_counts=True)
        row_weights = (len(labels) / (len(counts) * counts) if balanced else np.ones(len(counts)))[numbers]
        self.loss = SoftmaxRegression(features, numbers, len(counts), row_weights)
        self.weights: Floats = self.loss.start()

    def improve(self, strength: float, tolerance: float | None = None) -> None:
        default = SPARSE_TOLERANCE if issparse(self.loss.forward) else TOLERANCE
        # Two labels have one row of weights in scikit-learn; here they have two, each half as long.
        penalty = (2 if len(self.labels) == 2 else 1) / strength
        self.weights = self.loss.minimize(penalty, self.weights, default if tolerance is None else tolerance)


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
    strengths = default_strengths(features) if strengths is None else strengths
    return cross_validate(SimpleColumns(features).features, labels, n_classes, balanced, strengths, seed)


def cross_validate(
    features: Features,
    labels: Labels,
    n_classes: int,
    balanced: bool,
    strengths: Sequence[float],
    seed: int,
) -> Strength:
    """Choose a strength as in `choose_strength`; dense features are simple already."""
    strengths = sorted(strengths)
    middle = len(strengths) // 2
    most = int(np.clip(MOST_CHOICE_SCORES // n_classes, FEWEST_CHOICE_ROWS, MOST_CHOICE_ROWS))
    rows = sample_stratified(labels, most, seed)
    counts = np.bincount(labels[rows], minlength=n_classes)
    if len(strengths) == 1 or (counts > 1).sum() < max(2, (counts > 0).sum() / 2):
        return Strength(strengths[middle], float("nan"))
    share = 1.0 if issparse(features) else len(rows) / len(labels)
    features, labels = features[rows], labels[rows]
    n_folds, n_trials = (5, 5 if n_classes <= FEW_CLASSES else 2) if len(rows) < FEW_ROWS else (3, 2)
    folds = assign_folds(labels, n_folds, seed)
    trials = [Trial(features, labels, folds == fold, balanced) for fold in range(n_trials)]
    trials = [trial for trial in trials if trial.can_tell]
    if not trials:
        return Strength(strengths[middle], float("nan"))
    total = sum(trial.total for trial in trials)

    def measure_loss(strength: float) -> float:
        return sum(trial.sum_losses(strength) for trial in trials) / total

    best = search_strength(strengths, measure_loss)
    return Strength(best.value * share, best.loss)


def search_strength(strengths: Sequence[float], measure_loss: Callable[[float], float]) -> Strength:
    """Return the best of ascending strengths: the middle one, or one further on as long as the loss falls."""
    middle = len(strengths) // 2
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
    return best


class Trial:
    """One fold of the cross-validation."""

    def __init__(
        self, features: Features, labels: Labels, held_out: npt.NDArray[np.bool_], balanced: bool
    ) -> None:
        train = labels[~held_out]
        self.regression = Regression(features[~held_out], train, balanced)
        # A row whose label has no other rows says nothing about the strength.
        scored = held_out & np.isin(labels, train)
        self.scored, self.truth = features[scored], labels[scored]
        self.row_weights = 1 / np.bincount(labels)[self.truth] if balanced else np.ones(len(self.truth))
        self.total = float(self.row_weights.sum())

    @property
    def can_tell(self) -> bool:
        """Whether there are rows to score and at least two labels to fit."""
        return len(self.truth) > 0 and len(self.regression.labels) > 1

    def sum_losses(self, strength: float) -> float:
        """Return the weighted sum of the log losses of the rows that are held out."""
        self.regression.improve(strength)
        weights = self.regression.weights
        probabilities = softmax(np.asarray(self.scored @ weights[:-1] + weights[-1], np.float64))
        chosen = probabilities[
            np.arange(len(self.truth)), np.searchsorted(self.regression.labels, self.truth)
        ]
        return float(-(self.row_weights * np.log(np.maximum(chosen, 1e-13))).sum())


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
