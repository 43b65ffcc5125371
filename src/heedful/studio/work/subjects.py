"""The models that the page Try it asks: each with the texts it takes and what its probabilities are worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.errors import UserError, shorten
from heedful.inference.abstention import AnswerRule
from heedful.inference.files import Labeler
from heedful.inference.predictions import PredictedLabel, PredictedLabels, PredictedNumber
from heedful.runs.directory import BEST, CONFIG, Run, name_before_refit

if TYPE_CHECKING:
    from heedful.studio.model_store import ModelStore

MOST_CHARACTERS = 100_000
"""The length of the longest text that a page may send."""
NOT_LABELED = "Probabilities are calibrated where a text has one label."


@dataclass(frozen=True)
class Subject:
    """A model that answers, as it was asked for by name."""

    name: str
    labeler: Labeler
    """Its rule calibrates the probabilities, where that is possible."""
    calibrated: bool
    notes: tuple[str, ...]
    """What its probabilities or its numbers are worth, in sentences."""

    @property
    def free(self) -> bool:
        """Whether it answers in free text."""
        predictor = self.labeler.predictor
        return not predictor.labels and predictor.kind != "number"

    def answer(self, text: str, pair: str | None) -> dict[str, Any]:
        """Return the answer to a text as values for JSON."""
        return write_answer(self.labeler.label_text(text, pair), self)


def open_subject(models: ModelStore, name: str) -> Subject:
    """Return a model with its rule, which is read again when its files have changed."""
    return models.get("subject", name, lambda folder: make_subject(models, name, folder))


def make_subject(models: ModelStore, name: str, folder: Path) -> Subject:
    before = name_before_refit(folder)
    notes: list[str] = []
    if before != folder and (before / BEST).is_dir():  # as heedful predict --calibrate does
        folder, name = before, models.folder.name(before)
        notes.append(f"The chosen model was fitted again on dev too; the answers are those of {before.name}, "
                     "the same model before that.")  # fmt: skip
    predictor = models.predictor(name)
    rule, calibrated = AnswerRule(), False
    if predictor.kind == "number":
        notes += describe_errors(folder)
    elif predictor.kind == "labels":
        notes.append(f"Each label has a probability of its own, as the model gives it. {NOT_LABELED}")
    elif not predictor.labels:
        notes.append("The model answers in free text; its confidence is the probability of the whole answer.")
    else:
        try:
            rule = predictor.answer_rule(calibrate=True)
            calibrated = True
            notes += rule.sentences
        except UserError as error:
            reason = str(error).removeprefix("--calibrate: ").replace(f"{folder}", name)
            notes.append(f"Not calibrated: {reason}.")
    return Subject(name, Labeler(models.find(name), predictor, rule), calibrated, tuple(notes))


def describe_errors(folder: Path) -> list[str]:
    """Say how far a model's numbers were from the right ones on dev."""
    if not (folder / "predictions_dev.jsonl").is_file():
        return ["The run has no predictions on dev, which would say how far off its numbers are."]
    rows = Run(folder).read_predictions("dev")
    errors = [abs(row.value - row.predicted_value) for row in rows
              if row.value is not None and row.predicted_value is not None]  # fmt: skip
    if not errors:
        return ["The run has no predictions on dev, which would say how far off its numbers are."]
    half, most = np.quantile(errors, [0.5, 0.9])
    return [f"On {len(errors):,} rows of dev, half of the numbers are within {half:.3g} of the right one, "
            f"and 9 of 10 within {most:.3g}."]  # fmt: skip


def write_answer(answer: PredictedLabel, subject: Subject) -> dict[str, Any]:
    predictor = subject.labeler.predictor
    facts: dict[str, Any] = {
        "model": subject.name,
        "kind": predictor.kind,
        "free": subject.free,
        "calibrated": subject.calibrated,
        "notes": list(subject.notes),
    }
    if isinstance(answer, PredictedNumber):
        return {**facts, "value": answer.value, "shown": answer.label}
    chosen = set(answer.labels) if isinstance(answer, PredictedLabels) else {answer.label}
    thresholds = predictor.thresholds or [0.5] * len(predictor.labels)
    limits = dict(zip(predictor.labels, thresholds, strict=True)) if predictor.kind == "labels" else {}
    bars = [
        {"label": label, "probability": p, "chosen": label in chosen, "threshold": limits.get(label)}
        for label, p in answer.probabilities.items()
    ]
    shown = list(answer.labels) if isinstance(answer, PredictedLabels) else [answer.label]
    return {**facts, "answer": shown, "confidence": answer.confidence, "bars": bars}


def read_item(params: Mapping[str, Any]) -> tuple[str, str | None]:
    """Return the text, or the pair, that a page sent."""
    text, pair = read_text(params, "text"), read_text(params, "pair")
    if text is None:
        raise UserError("the text is missing")
    return text, pair


def read_text(params: Mapping[str, Any], key: str) -> str | None:
    value = params.get(key)
    if value is None:
        return None
    if not isinstance(value, str):
        raise UserError(f'"{key}" must be a text')
    if len(value) > MOST_CHARACTERS:
        raise UserError(f"the text has {len(value):,} characters; at most {MOST_CHARACTERS:,} are read here")
    return value


def read_name(params: Mapping[str, Any], key: str = "model") -> str:
    value = params.get(key)
    if not isinstance(value, str) or not value:
        raise UserError(f'"{key}" must be the name of a model; choose one')
    return value


def read_number(params: Mapping[str, Any], key: str, default: int, least: int, most: int) -> int:
    """Return a whole number that a page sent, in JSON or in the query of its address."""
    value = params.get(key, default)
    try:
        number = int(value)
    except (TypeError, ValueError):
        raise UserError(f'"{key}" must be a whole number, not {shorten(str(value), 20)}') from None
    if not least <= number <= most:
        raise UserError(f'"{key}" is {number:,}; it must be from {least:,} to {most:,}')
    return number


def is_run(folder: Path) -> bool:
    return (folder / CONFIG).is_file()
