"""The rows of a split that a run got wrong, from the predictions that it stored."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.runs.directory import Run, name_before_refit
from heedful.runs.schemas import Prediction

FIRST = ("test", "dev")
MOST_KINDS = 30
"""The most kinds of mistakes, such as no for yes, to choose from."""


@dataclass(frozen=True)
class Mistake:
    """A row that was answered wrongly."""

    row: int
    """Its number in the file of predictions, from 1."""
    text: str
    pair: str | None
    right: str
    predicted: str
    confidence: float
    """The probability of the wrong answer; of a number, how far off it is."""


@dataclass(frozen=True)
class Mistakes:
    """All wrong answers of a split, the most confident first; of numbers, the largest error first."""

    scored: int
    rows: tuple[Mistake, ...]
    numbers: bool

    @property
    def kinds(self) -> list[tuple[str, str, int]]:
        """The pairs of right and predicted answers with their counts, the most frequent first."""
        counts = Counter((row.right, row.predicted) for row in self.rows)
        return [(*both, count) for both, count in counts.most_common(MOST_KINDS)]


def find_predictions(folder: Path) -> dict[str, Path]:
    """Return the file of predictions of each split that has one, test first.

    A run that was fitted again on dev has none on dev; those of the run before are its.
    """
    files: dict[str, Path] = {}
    for place in (folder, name_before_refit(folder)):
        for file in sorted(place.glob("predictions_*.jsonl")):
            files.setdefault(file.stem.removeprefix("predictions_"), file)
    return dict(sorted(files.items(), key=lambda one: FIRST.index(one[0]) if one[0] in FIRST else len(FIRST)))


def read_mistakes(file: Path) -> Mistakes:
    """Return the wrong answers in a file of predictions."""
    predictions = Run(file.parent).read_predictions(file.stem.removeprefix("predictions_"))
    found, scored, numbers = [], 0, False
    for number, row in enumerate(predictions, 1):
        if row.text is None:
            raise UserError(f"{file.name} has no texts: it was written by an older version of heedful")
        numbers = numbers or row.value is not None
        judged = judge(row)
        if judged is None:
            continue
        scored += 1
        wrong, right, predicted, confidence = judged
        if wrong:
            found.append(Mistake(number, row.text, row.pair, right, predicted, confidence))
    found.sort(key=lambda one: (-one.confidence, one.row))
    return Mistakes(scored, tuple(found), numbers)


def judge(row: Prediction) -> tuple[bool, str, str, float] | None:
    """Return whether an answer is wrong, the right one, the predicted one, and its confidence.

    None if the right answer is not known. A set of labels is as confident as its most confident mistake.
    """
    if row.value is not None and row.predicted_value is not None:
        error = abs(row.value - row.predicted_value)
        return error > 0, f"{row.value:g}", f"{row.predicted_value:.4g}", error
    if row.labels is not None and row.predicted_labels is not None:
        right, predicted = set(row.labels), set(row.predicted_labels)
        sure = [row.probabilities.get(label, 1.0) for label in predicted - right]
        sure += [1 - row.probabilities.get(label, 0.0) for label in right - predicted]
        names = ["|".join(labels) or "(none)" for labels in (row.labels, row.predicted_labels)]
        return right != predicted, names[0], names[1], max(sure, default=0.0)
    if row.label is None:
        return None
    wrong = row.predicted.split() != row.label.split()
    return wrong, row.label, row.predicted, float(row.probabilities.get(row.predicted, 0.0))


def count_mistakes(file: Path, mistakes: Mistakes) -> dict[str, Any]:
    """Return the facts about a split for the page."""
    split = file.stem.removeprefix("predictions_")
    return {"split": split, "scored": mistakes.scored, "wrong": len(mistakes.rows)}
