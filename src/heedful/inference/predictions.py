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


@dataclass(frozen=True)
class PredictedLabels(PredictedLabel):
    """Any number of labels that a model gives to one text; `label` names them all.

    `confidence` is the probability of the least certain of them, or that no label applies more than the most
    probable one does.
    """

    labels: tuple[str, ...] = ()


@dataclass(frozen=True)
class PredictedNumber(PredictedLabel):
    """The number that a model gives to one text; it has no probability, and `label` is its text."""

    value: float = 0.0
