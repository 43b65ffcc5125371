"""Probabilities of labels where these are expected to have other shares than in training.

By Bayes' rule, p(label | text) is proportional to p(text | label) times the share of the label. If the texts
of a label stay the same and only the shares change, each probability is multiplied by expected / trained, and
the row is divided by its sum (Saerens, Latinne and Decaestecker 2002). On logits that adds
log(expected) - log(trained), which is the logit adjustment of Menon et al. (2021) where the expected shares
are equal.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError, shorten
from heedful.statistics.links import softmax

Floats = npt.NDArray[np.float64]
NO_ROWS = 0.5
"""What a label without rows counts as, so that it is not impossible."""
SUM_ERROR = 0.01
"""How far written shares may be from a sum of 1: three times 0.33 is meant to be all."""


def find_shares(counts: npt.ArrayLike) -> Floats:
    """Return the shares of labels that occur this often."""
    counted = np.maximum(np.asarray(counts, np.float64), NO_ROWS)
    return np.asarray(counted / counted.sum())


def read_shares(text: str, labels: Sequence[str], train_counts: npt.ArrayLike) -> Floats:
    """Return the shares that `--expect-shares` names: equal, train, or a number per label."""
    if text == "equal":
        return np.full(len(labels), 1 / len(labels))
    if text == "train":
        return find_shares(train_counts)
    order = shorten(", ".join(labels), 80)
    try:
        shares = np.array([float(part) for part in text.split(",")])
    except ValueError:
        raise UserError(
            f"--expect-shares {shorten(text)}: is equal, train, or numbers such as 0.2,0.8 for {order}"
        ) from None
    if len(shares) != len(labels):
        raise UserError(
            f"--expect-shares {text}: has {len(shares)} shares; there are {len(labels)} labels: {order}"
        )
    if not (shares > 0).all() or abs(shares.sum() - 1) > SUM_ERROR:
        raise UserError(f"--expect-shares {text}: shares are above 0 and add up to 1")
    return np.asarray(shares / shares.sum())


def log_correction(trained: Floats, expected: Floats) -> Floats:
    """Return what is added to the logits of a model that was trained on other shares of the labels."""
    return np.asarray(np.log(expected) - np.log(trained))


def correct_probabilities(probabilities: Floats, correction: Floats) -> Floats:
    """Return probabilities `[n, labels]` after the correction is added to their logarithms."""
    logarithms = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
    return softmax(logarithms + correction)
