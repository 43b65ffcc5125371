"""Scores of confusion matrices, many at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt


def macro_f1_batch(cells: npt.NDArray[np.integer]) -> npt.NDArray[np.float64]:
    """Return the macro F1 of each of many confusion matrices, `[..., classes, classes]`.

    A class that neither occurs nor is predicted is left out; one that occurs and is never predicted counts 0.
    """
    correct = np.diagonal(cells, axis1=-2, axis2=-1)
    total = cells.sum(-1) + cells.sum(-2)  # occurrences and predictions of each class
    present = total > 0
    scores = np.divide(2.0 * correct, total, out=np.zeros(total.shape), where=present)
    return np.asarray(scores.sum(-1) / np.maximum(1, present.sum(-1)))
