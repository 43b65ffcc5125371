"""Pretraining with questions mixed in: what is read is learnt in the form in which it will be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import nn

from heedful.data.random import stream
from heedful.errors import UserError
from heedful.objectives.answer import Answer
from heedful.objectives.base import Evaluation, Inputs, Ints, Losses, Objective


class Mixed(Objective):
    """A pretraining objective and questions with their answers, side by side in every step.

    Facts read before any question was seen are stored where no question finds them; with questions about some
    of the texts from the first step on, the answers about the others can be found (Allen-Zhu and Li 2023).
    `share` is the questions' share of a step's tokens, about; the loss is the mean over the predicted tokens
    of both. Which questions come is drawn for each step. Scores are the questions': exact match on dev, and
    on train's own questions where training rows are watched.
    """

    name = "mixed"
    metric = "exact_match"
    one_mean = True

    def __init__(self, main: Objective, answer: Answer, *, share: float, seed: int = 0) -> None:
        if not 0 < share < 1:
            raise UserError(f"{share:g} of a step cannot be questions; the share is above 0 and below 1")
        self.main, self.answer, self.share, self.seed = main, answer, share, seed
        self.weights = {**main.weights, **answer.weights}
        self.mean_tokens = float(answer.train_lengths().mean())

    @property
    def splits(self) -> Sequence[str]:
        """The splits with answers."""
        return self.answer.splits

    def train_lengths(self) -> Ints:
        """Those of the texts that are read."""
        return self.main.train_lengths()

    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        """The texts of a step, and its questions as one part more."""
        read = self.main.prepare(examples, step, parts)
        tokens = sum(part.tokens for part in read) * self.share / (1 - self.share)
        n = len(self.answer.rows)
        wanted = min(n, max(1, round(tokens / self.mean_tokens)))
        asked = stream(self.seed, "questions", step).choice(n, wanted, replace=False)
        return [*read, *self.answer.prepare(asked, step, 1)]

    def losses(self, model: nn.Module, inputs: Inputs) -> Losses:
        """Of a part with texts, or of one with questions."""
        found = (self.answer if self.answer.name in inputs.counts else self.main).losses(model, inputs)
        return Losses(found.sums)

    def value(self, loss: float, right: int, n: int) -> None:
        """Nothing is scored while training: most of a step is no question."""

    def evaluate(self, model: nn.Module, split: str, examples: Ints | None = None) -> Evaluation:
        """The questions of a split; for some training texts, as many training questions."""
        if examples is not None:
            examples = np.unique(np.asarray(examples) % len(self.answer.rows))
        return self.answer.evaluate(model, split, examples)

    def content(self) -> str:
        """Texts and questions."""
        return f"{self.main.content()} {self.answer.content()}"

    def facts(self) -> Mapping[str, Any]:
        """Of both."""
        return {**self.answer.facts(), **self.main.facts()}
