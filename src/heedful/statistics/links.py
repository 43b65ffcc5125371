"""From scores to probabilities with numpy alone: importing scipy takes longer than labeling a text."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Scores = npt.NDArray[np.floating[Any]]


def softmax(logits: Scores) -> npt.NDArray[np.float64]:
    """Return the softmax of each row of scores `[n, labels]`."""
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True), np.float64)


def sigmoid(logits: Scores) -> npt.NDArray[np.float64]:
    """Return 1 / (1 + exp(-x)), without a power that overflows."""
    powers = np.exp(-np.abs(logits))
    return np.asarray(np.where(logits >= 0, 1.0, powers) / (1 + powers), np.float64)


def activate(logits: Scores, kind: str) -> npt.NDArray[np.float64]:
    """Return the probabilities of scores `[n, labels]` for a kind of answers, or numbers `[n]`."""
    if kind == "number":
        return np.asarray(logits[:, 0], np.float64)
    return sigmoid(logits) if kind == "labels" else softmax(logits)
