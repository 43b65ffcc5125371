"""Rows whose label is probably wrong, by confident learning (Northcutt, Jiang and Chuang 2021).

The probabilities must be out of fold: a model that has seen a wrong label has learned it. A class's threshold
is its mean probability among the rows that have its label. A row counts as a member of the most probable
class that reaches its threshold. Counting rows by given label and by this class estimates how many labels of
each kind are wrong; that many rows with the largest margins are reported.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
ROUNDING = 1e-6
"""Probabilities of float32 that are less than this below a threshold have reached it."""


@dataclass(frozen=True)
class LabelErrors:
    """Rows that are probably labeled wrongly, the most suspicious first."""

    rows: Ints
    suggested: Ints
    """The most probable class of each of these rows."""
    margins: Floats
    """How much more probable the suggested class is than the given label."""
    joint: Floats
    """The estimated share of rows with each given label (row) and true class (column); it sums to 1."""

    agreement: float
    """The share of all rows whose most probable class is their label. Nothing tells a wrong label from a text
    that the model does not understand: where this is low, most of the reported rows are difficult ones."""

    @property
    def noise(self) -> float:
        """The estimated share of wrong labels."""
        return float(1 - np.trace(self.joint))


def find_label_errors(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> LabelErrors:
    """Find the rows whose label is probably wrong, from out-of-fold probabilities `[n, classes]`."""
    given, table = check_rows(labels, probabilities)
    n, n_classes = table.shape
    joint = estimate_joint(given, table)
    wrong = np.zeros(n, bool)
    for label in range(n_classes):
        of_label = np.flatnonzero(given == label)
        for other, expected in enumerate(round_to_sum(joint[label] * n)):
            if other != label and expected:
                margin = table[of_label, other] - table[of_label, label]
                wrong[of_label[np.argsort(-margin, kind="stable")[:expected]]] = True
    suggested = table.argmax(1)
    wrong &= suggested != given
    margins = table[np.arange(n), suggested] - table[np.arange(n), given]
    rows = np.flatnonzero(wrong)
    rows = rows[np.argsort(-margins[rows], kind="stable")]
    return LabelErrors(rows, suggested[rows], margins[rows], joint, float(np.mean(suggested == given)))


def estimate_joint(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> Floats:
    """Estimate the joint distribution of given labels (rows) and true classes (columns).

    The counts of `count_confident` are scaled so that each given label has the share that it has in the data.
    """
    given, table = check_rows(labels, probabilities)
    n_classes = table.shape[1]
    counts = count_confident(given, table).astype(np.float64)
    sizes = np.bincount(given, minlength=n_classes)
    # A label none of whose rows reaches a threshold is taken at its word.
    unknown = counts.sum(1) == 0
    counts[unknown, unknown] = 1.0
    return np.asarray(counts / counts.sum(1, keepdims=True) * sizes[:, None] / len(given))


def count_confident(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> Ints:
    """Count rows by given label and by the most probable class that reaches its threshold."""
    given, table = check_rows(labels, probabilities)
    n_classes = table.shape[1]
    sizes = np.bincount(given, minlength=n_classes)
    own = np.bincount(given, table[np.arange(len(given)), given], minlength=n_classes)
    # No row can be a confident member of a class that no label names.
    thresholds = np.where(sizes > 0, own / np.maximum(1, sizes), np.inf)
    reached = np.where(table >= thresholds - ROUNDING, table, -np.inf)
    confident = np.isfinite(reached).any(1)
    cells = given[confident] * n_classes + reached[confident].argmax(1)
    return np.bincount(cells, minlength=n_classes**2).reshape(n_classes, n_classes).astype(np.int64)


def round_to_sum(values: Floats) -> Ints:
    """Round numbers so that their sum is the rounded sum; the largest remainders are rounded up."""
    whole = np.floor(values + 1e-9).astype(np.int64)
    missing = round(float(values.sum())) - int(whole.sum())
    if missing > 0:
        whole[np.argsort(whole - values, kind="stable")[:missing]] += 1
    return whole


def check_rows(labels: npt.ArrayLike, probabilities: npt.ArrayLike) -> tuple[Ints, Floats]:
    given, table = np.asarray(labels, np.int64), np.asarray(probabilities, np.float64)
    if table.ndim != 2 or given.shape != table.shape[:1] or not len(given):
        raise ValueError("probabilities are [rows, classes], with one label for each row")
    if np.isnan(table).any():
        raise ValueError("a probability is not a number")
    if not 0 <= given.min() <= given.max() < table.shape[1]:
        raise ValueError(f"classes are numbered 0 to {table.shape[1] - 1}")
    return given, table
