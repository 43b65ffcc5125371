"""Which unlabeled rows are the most useful to label next."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
COUNT = 50
POOL = 10
"""Uncertain rows per row that is chosen; the most different ones of them are."""


def measure_margins(probabilities: npt.ArrayLike) -> Floats:
    """Return how much more probable the first class is than the second, for each row `[n, classes]`."""
    table = np.asarray(probabilities, np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise ValueError("probabilities are [rows, classes], of at least two classes")
    if np.isnan(table).any():
        raise ValueError("a probability is not a number")
    top = np.partition(table, -2, axis=1)
    return np.asarray(top[:, -1] - top[:, -2])


def choose_rows_to_label(
    probabilities: npt.ArrayLike, features: Any, count: int = COUNT, *, pool: int = POOL
) -> Ints:
    """Choose rows that a model is unsure about and that differ from one another.

    Of the rows with the smallest margins, `pool` times as many as are wanted, the first is the most uncertain
    one. Each further one is that with the largest distance (by cosine) from all chosen ones, so that no two
    copies of a text are chosen as long as there are others (the greedy k-center of Sener and Savarese 2018).

    Parameters
    ----------
    probabilities
        The model's probabilities, `[rows, classes]`.
    features
        A numpy array or a scipy sparse matrix, `[rows, features]`: states of an encoder, or tf-idf.
    count
        Number of rows to choose, in the order in which to label them.
    pool
        Number of uncertain rows per row that is chosen.

    """
    margins = measure_margins(probabilities)
    if features.shape[0] != len(margins):
        raise ValueError(f"{features.shape[0]} rows of features and {len(margins)} of probabilities")
    uncertain = np.argsort(margins, kind="stable")[: count * pool]
    if not len(uncertain) or count < 1:
        return np.empty(0, np.int64)
    directions = normalize_rows(features[uncertain])
    nearest = np.full(len(uncertain), -np.inf)  # the similarity to the nearest chosen row
    chosen: list[int] = []
    position = 0
    while len(chosen) < min(count, len(uncertain)):
        chosen.append(position)
        row = directions[[position]]
        similarity = directions @ row.T
        nearest = np.maximum(nearest, np.asarray(densify(similarity), np.float64).ravel())
        nearest[chosen] = np.inf
        position = int(nearest.argmin())  # of equals, the most uncertain
    return np.asarray(uncertain[chosen], np.int64)


def densify(values: Any) -> Any:
    return values.toarray() if hasattr(values, "toarray") else values


def normalize_rows(features: Any) -> Any:
    """Scale the rows of a dense or sparse matrix to length 1; a row of zeros stays."""
    if hasattr(features, "multiply"):
        lengths = np.sqrt(np.asarray(features.multiply(features).sum(axis=1), np.float64)).ravel()
        return features.multiply(1 / np.maximum(lengths, 1e-12)[:, None]).tocsr()
    table = np.asarray(features, np.float64)
    return table / np.maximum(np.linalg.norm(table, axis=1, keepdims=True), 1e-12)
