"""Resamples of examples as weights: how often each example is drawn, many resamples at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
CELLS = 100_000
"""Weights that are held at once: 0.8 MB, which stays in a core's cache."""
RARE = 15
"""A label with this many examples is missing from one resample in three million; a rarer one from more."""


def find_strata(targets: npt.NDArray[Any]) -> Ints | None:
    """Return the stratum of each example: one for each rare label, and one for all other examples.

    None if no label is rare, or if the targets are not one label per example.
    """
    if targets.ndim != 1:
        return None
    _, codes, counts = np.unique(targets, return_inverse=True, return_counts=True)
    rare = counts < RARE
    return np.where(rare[codes], codes + 1, 0) if rare.any() else None


def draw_weights(
    n: int, resamples: int, rng: np.random.Generator, strata: Ints | None = None
) -> Iterator[Floats]:
    """Yield how often each of `n` examples is drawn, `[some resamples, n]`; each stratum keeps its size."""
    groups = [np.arange(n)]
    if strata is not None:
        groups = [np.flatnonzero(strata == stratum) for stratum in np.unique(strata)]
    for count in chunk_sizes(n, resamples):
        drawn = [rows[rng.integers(0, len(rows), (count, len(rows)))] for rows in groups]
        cells = np.concatenate(drawn, axis=1) + n * np.arange(count)[:, None]
        yield np.bincount(cells.ravel(), minlength=count * n).reshape(count, n).astype(np.float64)


def chunk_sizes(n: int, resamples: int) -> Iterator[int]:
    step = max(1, CELLS // max(1, n))
    for start in range(0, resamples, step):
        yield min(step, resamples - start)
