"""What an explanation explains: how much a model prefers one label, as one number per text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError, shorten, unknown
from heedful.inference.predictor import Floats, Predictor

if TYPE_CHECKING:
    from heedful.data.named_tasks import Kind

SMALLEST = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Target:
    """A label and, where a text has one of several labels, the label that it is compared with.

    Its score is the log-odds of the label against the other one, so that the scores of a linear model are
    exactly the sum of what its features contribute. With several labels per text the score is the log-odds of
    the label; a number is its own score.
    """

    kind: Kind
    label: int = 0
    against: int | None = None

    def score(self, rows: npt.ArrayLike) -> Floats:
        """Return the scores of rows of probabilities [n, labels], or of numbers [n]."""
        table = np.asarray(rows, np.float64)
        if self.kind == "number":
            return table.ravel()
        logs = np.log(np.maximum(table, SMALLEST))
        if self.against is not None:
            return np.asarray(logs[:, self.label] - logs[:, self.against])
        return np.asarray(logs[:, self.label] - np.log(np.maximum(1 - table[:, self.label], SMALLEST)))

    def value(self, rows: npt.ArrayLike) -> Floats:
        """Return what a person reads: the probability of the label, or the number."""
        table = np.asarray(rows, np.float64)
        return table.ravel() if self.kind == "number" else np.asarray(table[:, self.label])


def choose_target(predictor: Predictor, row: Floats, label: str | None, against: str | None) -> Target:
    """Return the target for one row of probabilities: by default the label that the model predicts.

    It is compared with `against`, by default the most probable of the other labels.
    """
    if predictor.kind == "number":
        if label is not None or against is not None:
            raise UserError("this model gives a number; there is no label to explain")
        return Target("number")
    names = predictor.labels
    if label is None:
        chosen = (
            int(row.argmax()) if predictor.kind == "labels" else int(predictor.choose_labels(row[None])[0])
        )
    else:
        chosen = find_label(names, label)
    if predictor.kind == "labels":
        if against is not None:
            raise UserError("each label of this model has a probability of its own; there is none to compare")
        return Target("labels", chosen)
    others = [number for number in range(len(names)) if number != chosen]
    if not others:
        raise UserError("this model has a single label: there is nothing to explain")
    rival = max(others, key=row.__getitem__) if against is None else find_label(names, against)
    if rival == chosen:
        raise UserError(f'"{shorten(names[chosen])}" cannot be compared with itself')
    return Target(predictor.kind, chosen, rival)


def find_label(names: Sequence[str], label: str) -> int:
    if label not in names:
        raise unknown("label", label, names)
    return list(names).index(label)
