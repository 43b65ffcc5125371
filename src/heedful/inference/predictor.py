"""Everything that labels text, behind one interface: `Predictor`.

`predict` gives the most probable label of each text, `predict_proba` the probabilities of all `classes`. How
a model arrives at them is one subclass per kind: those of networks are in `network_predictors`; a linear
model of words and an average of models are here, which need no torch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from heedful.errors import UserError
from heedful.inference.abstention import AnswerRule, make_rule
from heedful.inference.decisions import Decision
from heedful.inference.inputs import Texts, is_table, read_texts
from heedful.inference.predictions import PredictedLabel, PredictedLabels, PredictedNumber
from heedful.options.types import LongTexts
from heedful.statistics.thresholds import apply_thresholds

if TYPE_CHECKING:
    from heedful.data.named_tasks import Kind
    from heedful.linear.model import TfidfModel
    from heedful.objectives import LabelWords
    from heedful.objectives.questions import QuestionFormat
    from heedful.text import Tokenizer

Floats = npt.NDArray[np.float64]
CHUNK = 1024
"""Texts that are encoded and sorted by length together, so that memory does not grow with their number."""


class Predictor(ABC):
    """A model that labels texts, or pairs of texts.

    Attributes
    ----------
    model, tokenizer
        The trained model and its tokenizer; a linear model has no tokenizer.
    max_len
        Number of tokens after which a text is cut; None if texts are read as a whole.
    labels
        Names of the classes in the order of the model's outputs; empty for free answers.

    """

    words: LabelWords | None = None
    """What a text-to-text model writes for each label."""
    kind: Kind = "classify"
    """The kind of answers: classify, ordered, labels (any number of labels per text) or number."""
    thresholds: Sequence[float] | None = None
    """With several labels per text, the probability from which each is predicted; None for 0.5."""
    form: QuestionFormat | None = None
    """How a model that answers in free text is asked."""
    long_texts: LongTexts = "cut"
    """What is read of texts that are longer than `max_len` tokens."""
    config: Mapping[str, Any] | None = None
    """The options of the run, whose columns are looked for in a table of texts."""
    decision: Decision | None = None
    """From which probability the second of two labels is predicted; None for the more probable label."""
    run: Path | None = None
    """The folder of the run, whose predictions on dev say how far its confidence can be trusted."""

    def __init__(
        self, model: Any, tokenizer: Tokenizer | None, max_len: int | None, labels: Sequence[str]
    ) -> None:
        self.model, self.tokenizer, self.max_len, self.labels = model, tokenizer, max_len, list(labels)

    @property
    def classes(self) -> list[str]:
        """Names of the columns of `predict_proba`."""
        return self.labels

    def predict(
        self,
        texts: Any,
        pairs: Any = None,
        *,
        min_confidence: float | None = None,
        max_risk: float | None = None,
        calibrate: bool = False,
        rule: AnswerRule | None = None,
    ) -> list[PredictedLabel]:
        """Return the most probable label of each text, or the answer to each question.

        `texts` is a list, an array or a series of texts, pairs of them, or a table with the columns of the
        run's own data; `pairs` are the second texts, if `texts` has only the first ones. The other arguments
        are those of `answer_rule`, or the rule that it returned.
        """
        if self.kind in ("labels", "number"):
            if rule is None and (min_confidence is not None or max_risk is not None or calibrate):
                raise UserError('"not sure" and calibration are for one label per text')
            rule = AnswerRule()
        if rule is None:
            rule = self.answer_rule(min_confidence=min_confidence, max_risk=max_risk, calibrate=calibrate)
        chunks = self.text_chunks(texts, pairs)
        return [rule.apply(one) for chunk in chunks for one in self.predict_chunk(*chunk)]

    def answer_rule(
        self, *, min_confidence: float | None = None, max_risk: float | None = None, calibrate: bool = False
    ) -> AnswerRule:
        """Return when this model answers "not sure"; its `sentences` say what that means on dev.

        Parameters
        ----------
        min_confidence
            The smallest confidence of an answer.
        max_risk
            The largest share of wrong answers. The threshold is chosen on dev, so that with 95 % confidence
            the share is not larger on texts like those of dev.
        calibrate
            Calibrate the probabilities on dev by a temperature.

        """
        wanted: dict[str, Any] = {"min_confidence": min_confidence, "max_risk": max_risk}
        if self.kind in ("labels", "number"):
            if calibrate or any(value is not None for value in wanted.values()):
                options = "--min-confidence, --max-risk and --calibrate"
                raise UserError(f"{options} are for models that give one label per text")
            return AnswerRule()
        return make_rule(self.run, self.labels, **wanted, calibrate=calibrate)

    def predict_proba(self, texts: Any, pairs: Any = None) -> Floats:
        """Return the probability of each class for each text, as an array of shape (texts, classes).

        Of several labels per text each has a probability of its own. Numbers are an array of shape (texts,).
        """
        rows = [self.chunk_probabilities(*chunk) for chunk in self.text_chunks(texts, pairs)]
        return np.concatenate(rows) if rows else np.empty((0, *self.row_shape))

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The shape of what is computed for one text."""
        return () if self.kind == "number" else (len(self.labels),)

    def text_chunks(self, texts: Any, pairs: Any) -> Iterator[Texts]:
        """Yield the texts, with their second texts, in chunks of `CHUNK`."""
        columns = None
        if self.config is not None and is_table(texts):
            from heedful.inference.columns import trained_columns, wanted_columns

            wanted, path = wanted_columns(self.config)
            columns = trained_columns(path, wanted)
        first, second = read_texts(texts, pairs, columns)
        for start in range(0, len(first), CHUNK):
            end = start + CHUNK
            yield first[start:end], None if second is None else second[start:end]

    def predict_chunk(self, texts: Sequence[str], pairs: Sequence[str] | None) -> Iterator[PredictedLabel]:
        rows = self.chunk_probabilities(texts, pairs)
        if self.kind == "number":
            yield from (PredictedNumber(f"{v:.6g}", 1.0, {}, v) for v in rows.ravel().tolist())
            return
        if self.kind == "labels":
            yield from map(self.choose_set, rows.tolist())
            return
        for row, best in zip(rows, self.choose_labels(rows).tolist(), strict=True):
            probabilities = dict(zip(self.labels, row.tolist(), strict=True))
            yield PredictedLabel(self.labels[best], float(row[best]), probabilities)

    def choose_answers(self, rows: Floats) -> npt.NDArray[Any]:
        """Return what is predicted for rows of `predict_proba`.

        That is the number of a label, 0 or 1 for each of several labels per text, or a number itself.
        """
        if self.kind == "number":
            return rows
        return apply_thresholds(rows, self.thresholds) if self.kind == "labels" else self.choose_labels(rows)

    def choose_set(self, row: Sequence[float]) -> PredictedLabels:
        """Return the labels whose probabilities reach their thresholds."""
        chosen = apply_thresholds(np.asarray(row)[None], self.thresholds)[0]
        names = tuple(name for name, one in zip(self.labels, chosen, strict=True) if one)
        confidence = min(p for p, one in zip(row, chosen, strict=True) if one) if names else 1 - max(row)
        probabilities = dict(zip(self.labels, row, strict=True))
        return PredictedLabels("|".join(names), confidence, probabilities, names)

    def choose_labels(self, probabilities: Floats) -> npt.NDArray[np.int64]:
        """Return the number of the label that is predicted for each row of probabilities."""
        return probabilities.argmax(1) if self.decision is None else self.decision.predict(probabilities)

    @abstractmethod
    def chunk_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None) -> Floats:
        """Return the probabilities of the classes, or the numbers, for at most `CHUNK` texts."""


class LinearPredictor(Predictor):
    """A linear model of the words of a text."""

    model: TfidfModel

    def __init__(self, model: TfidfModel) -> None:
        super().__init__(model, None, None, model.labels)
        self.kind, self.thresholds = model.kind, model.thresholds

    def chunk_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None) -> Floats:
        return self.model.probabilities(texts, pairs)


class EnsemblePredictor(Predictor):
    """The weighted mean of the probabilities, or of the numbers, of several models of the same labels."""

    model: list[Predictor]

    def __init__(
        self,
        members: Sequence[Predictor],
        weights: Sequence[float],
        thresholds: Sequence[float] | None = None,
    ) -> None:
        labels = members[0].labels
        if any(member.labels != labels for member in members):
            raise ValueError("the members of an average have the same labels, in the same order")
        super().__init__(list(members), None, None, labels)
        self.weights, self.thresholds, self.kind = list(weights), thresholds, members[0].kind

    def chunk_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None) -> Floats:
        parts = [
            weight * member.chunk_probabilities(texts, pairs)
            for member, weight in zip(self.model, self.weights, strict=True)
        ]
        return np.asarray(sum(parts) / sum(self.weights), np.float64)
