"""Scores of predictions: accuracy, macro F1, confusion, exact match, perplexity."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from heedful.statistics.confusion import macro_f1_batch

Labels = npt.ArrayLike
Counts = npt.NDArray[np.int64]


def accuracy(labels: Labels, predicted: Labels) -> float:
    """Give the share of predictions that equal their label."""
    right = correct(labels, predicted)
    if not len(right):
        raise ValueError("accuracy of no examples")
    return float(right.mean())


def correct(labels: Labels, predicted: Labels) -> npt.NDArray[np.bool_]:
    """Tell for each example whether the prediction is right."""
    truth, guess = np.asarray(labels), np.asarray(predicted)
    if truth.shape != guess.shape:
        raise ValueError(f"{truth.shape} labels and {guess.shape} predictions do not belong together")
    return np.asarray(truth == guess, dtype=np.bool_)


def confusion(labels: Labels, predicted: Labels, n_classes: int) -> Counts:
    """Count examples: a row for each true class, a column for each predicted one."""
    truth, guess = np.asarray(labels, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    if truth.shape != guess.shape:
        raise ValueError(f"{truth.shape} labels and {guess.shape} predictions do not belong together")
    if len(truth) and not 0 <= min(truth.min(), guess.min()) <= max(truth.max(), guess.max()) < n_classes:
        raise ValueError(f"classes are numbered 0 to {n_classes - 1}")
    cells = np.bincount(truth * n_classes + guess, minlength=n_classes * n_classes)
    return cells.reshape(n_classes, n_classes).astype(np.int64)


def macro_f1(cells: npt.ArrayLike) -> float:
    """Average the F1 of the classes of a confusion matrix, each class alike.

    A class that neither occurs nor is predicted is left out; one that occurs and is never found counts 0.
    The last two axes are the matrix; `macro_f1_batch` takes many at once.
    """
    return float(macro_f1_batch(np.asarray(cells)))


def exact_match(references: Sequence[str], generated: Sequence[str]) -> float:
    """Give the share of generated texts that equal their reference, runs of white space counting as one."""
    return accuracy([" ".join(t.split()) for t in references], [" ".join(t.split()) for t in generated])


def perplexity(total_loss: float, n_tokens: int) -> float:
    """Give exp(summed loss / tokens) over the whole corpus: long texts count more than short ones."""
    if n_tokens < 1:
        raise ValueError("perplexity of no tokens")
    try:
        return math.exp(total_loss / n_tokens)
    except OverflowError:
        return math.inf
