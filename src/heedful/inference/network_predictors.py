"""Networks that label text: a classification head, label words, or free answers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from heedful.data.batches import collate
from heedful.data.named_tasks import Kind
from heedful.errors import UserError, shorten
from heedful.inference.predictions import PredictedLabel
from heedful.inference.predictor import Floats, Predictor
from heedful.models import Classifier, LanguageModel
from heedful.objectives.base import iterate_by_length
from heedful.statistics.links import activate
from heedful.text import Tokenizer

if TYPE_CHECKING:
    from heedful.linear.model import TfidfModel
    from heedful.objectives import LabelWords
    from heedful.objectives.questions import QuestionFormat

KINDS: dict[str, Kind] = {"multi_label_classification": "labels", "regression": "number"}
"""The kinds of answers, by what transformers calls them."""


class NetworkPredictor(Predictor):
    model: Classifier | LanguageModel
    tokenizer: Tokenizer
    max_len: int


class LogitPredictor(NetworkPredictor):
    """A predictor whose model gives a logit per class."""

    @abstractmethod
    def logits(self, tensors: dict[str, Tensor]) -> Tensor:
        """Return the logits of one padded batch."""

    def chunk_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None) -> Floats:
        """Run the texts in batches of similar length, and return their rows in the given order."""
        device = next(self.model.parameters()).device
        second = None if pairs is None else list(pairs)
        limits: dict[str, Any] = {"max_len": self.max_len, "long_texts": self.long_texts}
        encoded = self.tokenizer.encode_batch(list(texts), second, **limits)
        for text, one in zip(texts, encoded, strict=True):
            if not one.ids:
                raise UserError(f'the text "{shorten(text)}" has no tokens: there is nothing to label')
        rows = np.full((len(texts), *self.row_shape), np.nan)
        typed = self.model.config.n_types > 1
        with torch.inference_mode():
            for batch in iterate_by_length(np.array([len(e.ids) for e in encoded])):
                part = collate(
                    [np.array(encoded[i].ids) for i in batch],
                    pad_id=self.tokenizer.pad_id or 0,
                    types=[np.array(encoded[i].types) for i in batch] if typed else None,
                )
                tensors = {name: tensor.to(device) for name, tensor in part.tensors().items()}
                self.model.eval()
                rows[batch] = activate(self.logits(tensors).cpu().double().numpy(), self.kind)
        return rows


class ClassifierPredictor(LogitPredictor):
    model: Classifier

    def __init__(self, model: Classifier, tokenizer: Tokenizer, max_len: int, labels: Sequence[str]) -> None:
        self.kind = KINDS.get(model.problem_type or "", "ordered" if model.form == "ordinal" else "classify")
        super().__init__(model, tokenizer, max_len, () if self.kind == "number" else labels)
        self.thresholds = model.thresholds

    def chunk_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None) -> Floats:
        rows = super().chunk_probabilities(texts, pairs)
        words: TfidfModel | None = self.model.words
        return rows if words is None else words.add_logits(rows, texts, pairs)

    def logits(self, tensors: dict[str, Tensor]) -> Tensor:
        logits: Tensor = self.model(tensors["ids"], tensors["mask"], tensors.get("types"))
        return logits


class LabelWordPredictor(LogitPredictor):
    """A text-to-text model, which scores the word that it was trained to write for each label."""

    def __init__(
        self, model: LanguageModel, tokenizer: Tokenizer, max_len: int, labels: Sequence[str], words: Any
    ) -> None:
        super().__init__(model, tokenizer, max_len, labels)
        from heedful.objectives.text2text import LabelWords

        self.words: LabelWords = LabelWords(self.labels, tokenizer, words)

    def logits(self, tensors: dict[str, Tensor]) -> Tensor:
        return self.words.scores(self.model, tensors["ids"], tensors["mask"])


class AnswerPredictor(NetworkPredictor):
    """A model that answers questions in free text. It has no classes."""

    def __init__(self, model: LanguageModel, tokenizer: Tokenizer, max_len: int) -> None:
        from heedful.objectives.questions import QuestionFormat

        super().__init__(model, tokenizer, max_len, ())
        self.form: QuestionFormat = QuestionFormat(tokenizer, max_len, model.config.kind == "encoder_decoder")

    def predict_chunk(self, texts: Sequence[str], pairs: Sequence[str] | None) -> Iterator[PredictedLabel]:
        from heedful.inference.generation import generate

        questions = self.form.questions(texts, pairs).ids
        for text, confidence in zip(*self.form.ask(self.model, questions, generate), strict=True):
            yield PredictedLabel(text, float(confidence), {text: float(confidence)})

    def chunk_probabilities(self, texts: Sequence[str], pairs: Sequence[str] | None) -> Floats:
        raise UserError("free answers have no classes; predict gives each answer with its probability")
