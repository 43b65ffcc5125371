"""Pretraining with questions mixed into the text."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from heedful.data.batches import Batches
from heedful.objectives.answer import AnswerObjective
from heedful.objectives.base import Evaluation, Inputs, Ints, Losses, Objective


class Mixed(Objective):
    """A pretraining objective with some questions and their answers in every step.

    A model that reads facts before it sees any question may store them where no question finds them. With
    questions about some of the texts from the first step on, it also finds the answers about other texts
    (Allen-Zhu and Li 2023, "Physics of Language Models: Part 3.1"). The loss is the mean over the predicted
    tokens of both. Only the text is scored.
    """

    name = "mixed"
    one_mean = True

    def __init__(self, text: Objective, answer: AnswerObjective, *, batch_size: int, seed: int = 0) -> None:
        """`batch_size` is the number of questions per step."""
        self.text, self.answer = text, answer
        self.metric, self.outputs = text.metric, text.outputs  # type: ignore[misc]
        self.part_tokens = text.part_tokens
        self.weights = {**text.weights, **answer.weights}
        self.batches = Batches(answer.train_lengths(), batch_size=batch_size, seed=seed, order="shuffled")
        self.per_epoch = len(self.batches.plan(0))

    @property
    def scored_objective(self) -> Objective:
        return self.text

    @property
    def splits(self) -> Sequence[str]:
        return self.text.splits

    def train_lengths(self) -> Ints:
        return self.text.train_lengths()

    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        epoch, number = divmod(step, self.per_epoch)
        questions = self.batches.plan(epoch)[number]
        return [*self.text.prepare(examples, step, parts), *self.answer.prepare(questions, step)]

    def losses(self, model: nn.Module, inputs: Inputs) -> Losses:
        if self.answer.name in inputs.counts:
            return Losses(self.answer.losses(model, inputs).sums)
        return self.text.losses(model, inputs)

    def evaluate(self, model: nn.Module, split: str, examples: Ints | None = None) -> Evaluation:
        return self.text.evaluate(model, split, examples)

    def value(self, loss: float, right: int, n: int) -> float | None:
        return self.text.value(loss, right, n)

    def content(self) -> str:
        return f"{self.text.content()} {self.answer.content()}"
