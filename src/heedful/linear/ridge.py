"""Ridge regression of a number, its strength chosen by the closed form of leaving out each row in turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, issparse

from heedful.linear.logistic import LinearFit, measure_columns, standardize
from heedful.linear.solver import Features, Floats

DENSE_STRENGTHS = (1e-5, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
"""1 / alpha for standardized features."""
SPARSE_STRENGTHS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
"""1 / alpha for tf-idf rows."""
MOST_CLOSED = 3_000
"""The closed form takes the cube of the number of rows, or of columns if these are fewer; beyond this many of
both, the strength is chosen on this many rows, and the weights are found by conjugate gradients."""
EXACT = 1e-10
"""The relative residual at which conjugate gradients end."""


def fit_ridge(
    features: Features, numbers: Floats, *, strengths: Sequence[float] | None = None, seed: int = 0
) -> LinearFit:
    """Fit what scikit-learn's `Ridge(alpha=1 / strength)` fits to standardized numbers.

    Parameters
    ----------
    features
        `[n, d]`, a numpy array, whose columns are standardized first, or a scipy CSR matrix.
    numbers
        `[n]`. They are standardized inside; the fit is in their own unit.
    strengths
        The values of 1 / alpha to choose from by the squared error of rows that are left out, as
        scikit-learn's `RidgeCV` does; a single one is used as it is. The default depends on the features.
    seed
        Decides which rows the strength is chosen on, where there are too many.

    """
    if strengths is None:
        strengths = SPARSE_STRENGTHS if issparse(features) else DENSE_STRENGTHS
    center, spread = float(np.mean(numbers)), float(np.std(numbers)) or 1.0
    target = (np.asarray(numbers, np.float64) - center) / spread
    mean, scale = measure_columns(features)
    mean, scale = np.asarray(mean, np.float64), np.asarray(scale, np.float64)
    standard = standardize(features, mean, scale).astype(np.float64)
    n, d = standard.shape
    if d == 0 or n < 2:
        return LinearFit(np.zeros((1, d)), np.array([center]), sorted(strengths)[len(strengths) // 2])
    if min(n, d) <= MOST_CLOSED:
        solved = ClosedForm(standard, target)
        strength = solved.choose(strengths)
        weight, bias = solved.solve(strength)
    else:
        rows = np.sort(np.random.default_rng(seed).permutation(n)[:MOST_CLOSED])
        strength = strengths[0]
        if len(strengths) > 1:
            strength = ClosedForm(standard[rows], target[rows]).choose(strengths)
        weight, bias = solve_by_gradients(standard, target, strength)
    weight = spread * weight / scale
    bias = center + spread * bias - float(np.sum(weight * mean))
    return LinearFit(weight[None], np.array([bias]), strength)


class ClosedForm:
    """The ridge regressions of all strengths, from one eigendecomposition.

    It is of the products of rows if these are fewer, and of columns otherwise.
    """

    def __init__(self, features: Features, target: Floats) -> None:
        self.features, self.target = features, target
        self.mean = np.asarray(features.mean(0)).ravel()
        self.center = float(target.mean())
        self.by_rows = features.shape[0] < features.shape[1]
        if self.by_rows:
            products = to_dense(features @ features.T)
            # What the products would be if the mean were subtracted from each column.
            products -= products.mean(0)
            products -= products.mean(1, keepdims=True)
        else:
            products = to_dense(features.T @ features) - len(target) * np.outer(self.mean, self.mean)
        self.values, self.vectors = np.linalg.eigh(products)
        self.values = np.maximum(self.values, 0.0)
        centered = target - self.center
        self.projected = self.vectors.T @ (centered if self.by_rows else self.pull(centered))

    def pull(self, rows: Floats) -> Floats:
        """Return the product of the centered features, transposed, with one number per row."""
        return np.asarray(self.features.T @ rows - self.mean * rows.sum())

    def choose(self, strengths: Sequence[float]) -> float:
        """Return the strength with the lowest squared error of rows, each predicted from all others."""
        strengths = sorted(strengths)
        errors = [float(np.mean(self.leave_out(one) ** 2)) for one in strengths] if strengths[1:] else [0.0]
        return strengths[int(np.argmin(errors))]

    def leave_out(self, strength: float) -> Floats:
        """Return the error of each row if the others are fitted: the residual over 1 - its own influence."""
        shrunk = self.values / (self.values + 1 / strength)
        if self.by_rows:
            basis, fitted = self.vectors, self.vectors @ (shrunk * self.projected)
        else:
            kept = self.values > 1e-12 * max(self.values[-1], 1e-300)
            rotation = self.vectors[:, kept] / np.sqrt(self.values[kept])
            basis = np.asarray(self.features @ rotation) - self.mean @ rotation
            shrunk = shrunk[kept]
            fitted = basis @ (shrunk * self.projected[kept] / np.sqrt(self.values[kept]))
        influence = (basis**2) @ shrunk + 1 / len(self.target)
        return np.asarray((self.target - self.center - fitted) / np.maximum(1 - influence, 1e-9))

    def solve(self, strength: float) -> tuple[Floats, float]:
        """Return the weights and the bias."""
        weight = self.vectors @ (self.projected / (self.values + 1 / strength))
        if self.by_rows:
            weight = self.pull(weight)
        return weight, self.center - float(self.mean @ weight)


def solve_by_gradients(features: Features, target: Floats, strength: float) -> tuple[Floats, float]:
    """Return the weights and the bias for many rows and columns."""
    d = features.shape[1]
    mean, center = np.asarray(features.mean(0)).ravel(), float(target.mean())

    def multiply(weight: Floats) -> Any:
        rows = features @ weight - float(mean @ weight)
        return features.T @ rows - mean * rows.sum() + weight / strength

    centered = target - center
    wanted = features.T @ centered - mean * centered.sum()
    from scipy.sparse.linalg import LinearOperator, cg

    weight, _ = cg(LinearOperator((d, d), multiply, dtype=np.float64), wanted, rtol=EXACT, maxiter=1_000)
    return weight, center - float(mean @ weight)


def to_dense(matrix: Any) -> Floats:
    return np.asarray(matrix.toarray() if isinstance(matrix, csr_matrix) or issparse(matrix) else matrix)
