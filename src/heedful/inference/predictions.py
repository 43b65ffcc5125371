"""What a model says about one text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PredictedLabel:
    """The label, or the free answer, that a model gives to one text."""

    label: str
    confidence: float
    """The probability of `label`."""
    probabilities: dict[str, float]
    """The probability of every class; for a free answer, that of the answer alone."""
