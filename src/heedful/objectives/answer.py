"""Answering questions: a decoder or an encoder-decoder learns to write the answer to a question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from heedful.data import Task
from heedful.data.batches import IGNORED, pad
from heedful.data.random import stream
from heedful.errors import UserError
from heedful.objectives.base import (
    Evaluation,
    Floats,
    Inputs,
    Ints,
    Losses,
    Objective,
    evaluation_mode,
    iterate_by_length,
)
from heedful.objectives.questions import (
    AnswerLoss,
    EncodedTexts,
    GenerateFunction,
    QuestionFormat,
    answer_rows,
    normalize_spaces,
    separator,
)
from heedful.objectives.setup import TaskSetup
from heedful.objectives.vocabulary import score_tokens
from heedful.options.training import AdaptOptions


@dataclass(frozen=True)
class AnswerEvaluation(Evaluation):
    answers: tuple[str, ...] = ()
    confidence: Floats = field(default_factory=lambda: np.empty(0), repr=False)
    """The probability of each answer, its end included."""
    right: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, bool), repr=False)
    references: tuple[str, ...] = ()
    """The true answers."""

    def arrays(self, kind: str) -> tuple[npt.NDArray[Any], npt.NDArray[Any]] | None:
        """Return the true answers and the model's."""
        if kind != "predictions":
            return None
        return np.array(self.references, object), np.array(self.answers, object)


class AnswerObjective(Objective):
    """Cross-entropy of the answer after its question, summed over tokens; scored by exact match.

    An answer is right if greedy decoding writes its text, apart from runs of white space. If every token of
    the true answer is the most probable one, decoding would write it; so the model answers only the other
    questions (same mathematics). For the rows of train that are scored during training nothing is decoded:
    there, the same text in other tokens is wrong.
    """

    name = "answer"
    metric = "exact_match"
    outputs = ("predictions",)
    problem = "text"
    commands = ("adapt",)
    heads = {"decoder": "causal", "encoder_decoder": "text2text"}  # noqa: RUF012
    own_options = ("answer_loss",)

    def __init__(
        self,
        task: Task,
        form: QuestionFormat,
        write: GenerateFunction,
        *,
        loss: AnswerLoss = "answer",
        train_rows: int | None = None,
        label_smoothing: float = 0.0,
        seed: int = 0,
    ) -> None:
        if task.splits["train"].answers is None:
            raise UserError(f"{task.name} has no answers to learn from")
        self.task, self.form, self.write, self.loss = task, form, write, loss
        self.label_smoothing = label_smoothing
        self.weights = {self.name: 1.0}
        self.texts: dict[str, list[str]] = {}
        self.answers: dict[str, EncodedTexts] = {}
        self.questions = {
            name: form.questions(list(split.texts), None if split.pairs is None else list(split.pairs))
            for name, split in task.splits.items()
        }
        for name, split in task.splits.items():
            if split.answers is not None:
                self.texts[name] = [normalize_spaces(text) for text in split.answers]
                self.answers[name] = form.answers(self.texts[name])
        n = len(self.texts["train"])
        if train_rows is not None and not 0 < train_rows <= n:
            raise UserError(f"--train-rows {train_rows}: the training data has {n} rows")
        self.rows = np.sort(stream(seed, "train rows").permutation(n)[:train_rows])

    @classmethod
    def check_options(cls, options: AdaptOptions) -> None:
        if options.class_weights not in ("auto", "none"):
            classes = f"--class-weights {options.class_weights}"
            raise UserError(f"{classes}: answers are free text and have no classes")
        if options.balanced:
            raise UserError("--balanced: answers are free text and have no classes")
        super().check_options(options)

    @classmethod
    def build(cls, setup: TaskSetup) -> Objective:
        o = setup.options
        whole = setup.model.config.kind == "encoder_decoder"
        return cls(
            setup.task,
            QuestionFormat(setup.tokenizer, setup.max_len, whole),
            setup.generate,
            loss=o.answer_loss,
            train_rows=o.train_rows,
            label_smoothing=o.label_smoothing,
            seed=o.seed,
        )

    @property
    def splits(self) -> Sequence[str]:
        return list(self.answers)

    def lengths(self, split: str, rows: Ints) -> Ints:
        """Return the number of tokens of some questions with their answers."""
        q, a = self.questions[split].ids, self.answers[split].ids
        return np.array([len(q[row]) + len(a[row]) + 1 for row in rows], np.int64)

    def train_lengths(self) -> Ints:
        return self.lengths("train", self.rows)

    def prepare(self, examples: Ints, step: int, parts: int = 1) -> list[Inputs]:
        rows = self.rows[examples]
        return [self.inputs("train", part, self.loss) for part in np.array_split(rows, parts) if len(part)]

    def inputs(self, split: str, rows: Ints, loss: AnswerLoss = "answer") -> Inputs:
        questions = [self.questions[split].ids[row] for row in rows]
        answers = [self.answers[split].ids[row] for row in rows]
        if self.form.whole:
            ids = pad(questions, self.form.pad_id)
            real = np.arange(ids.shape[1])[None] < np.array([len(q) for q in questions])[:, None]
            targets = pad([np.append(a, self.form.stop_id) for a in answers], IGNORED)
            tensors = {"mask": torch.from_numpy(real)}
        else:
            mark, pad_id = separator(self.form.tokenizer), self.form.pad_id
            ids, targets = answer_rows(questions, answers, separator=mark, pad_id=pad_id, loss=loss)
            tensors = {"begins": torch.tensor([len(q) for q in questions])}
        tensors |= {"ids": torch.from_numpy(ids), "targets": torch.from_numpy(targets)}
        count = int((targets != IGNORED).sum())
        tokens = sum(map(len, questions)) + sum(map(len, answers)) + len(rows)
        return Inputs(tensors, {self.name: count}, len(rows), tokens)

    def token_losses(
        self, model: Any, inputs: Inputs, smoothing: float = 0.0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the loss of each target [n], whether it is the most probable [n], and their mask."""
        t, body = inputs.tensors, model.body
        counted = t["targets"] != IGNORED  # [b, t]
        if self.form.whole:
            states = body(t["ids"], t["mask"], decoder_input_ids=body.shift(t["targets"]))
        else:
            states = body(t["ids"])  # padding is on the right, where no earlier token sees it
        losses, right = score_tokens(model.head, states[counted], t["targets"][counted], smoothing)
        return losses, right, counted

    def losses(self, model: nn.Module, inputs: Inputs) -> Losses:
        """Return the loss; all targets of a row count as right if its whole answer is right."""
        losses, right, counted = self.token_losses(model, inputs, self.label_smoothing)
        wrong = torch.zeros_like(counted).masked_scatter(counted, ~right)
        if "begins" in inputs.tensors:
            positions = torch.arange(counted.shape[1], device=counted.device)
            wrong &= positions >= inputs.tensors["begins"][:, None]
        return Losses({self.name: losses.sum()}, (counted & ~wrong.any(1, keepdim=True)).sum())

    def evaluate(self, model: nn.Module, split: str, examples: Ints | None = None) -> Evaluation:
        """Return exact match and the loss of the true answers; for a whole split, also the answers."""
        rows = np.arange(len(self.texts[split])) if examples is None else examples
        if examples is not None and split == "train":
            rows = self.rows[examples]  # numbered among the rows that are trained on
        sums, counts, right = self.score_references(model, split, rows)
        references = [self.texts[split][row] for row in rows]
        if examples is not None:
            answers = [text if good else "" for text, good in zip(references, right, strict=True)]
            confidence = np.empty(0)
        else:
            answers = [self.form.text(ids.tolist()) for ids in self.answers[split].ids]
            confidence = np.exp(-sums)
            asked = np.flatnonzero(~right)
            if len(asked):
                texts, confidence[asked] = self.ask(model, split, asked)
                for row, text in zip(asked, texts, strict=True):
                    answers[row] = text
            right = np.array([a == b for a, b in zip(answers, references, strict=True)], bool)
        return AnswerEvaluation(
            self.metric,
            float(right.mean()) if len(rows) else float("nan"),
            float(sums.sum() / counts.sum()) if len(rows) else float("nan"),
            len(rows),
            answers=tuple(answers),
            confidence=confidence,
            right=right,
            references=tuple(references),
        )

    def score_references(
        self, model: nn.Module, split: str, rows: Ints
    ) -> tuple[Floats, Ints, npt.NDArray[np.bool_]]:
        """Return the summed loss of each true answer, its number of tokens, and if it would be written."""
        sums, counts = np.zeros(len(rows)), np.zeros(len(rows), np.int64)
        right = np.zeros(len(rows), bool)
        with evaluation_mode(model) as device:
            for batch in iterate_by_length(self.lengths(split, rows), device, f"scoring {split}"):
                inputs = self.inputs(split, rows[batch]).to(device)
                losses, best, counted = self.token_losses(model, inputs)
                zeros = torch.zeros(counted.shape, dtype=torch.float64)  # not every device has these
                sums[batch] = zeros.masked_scatter(counted.cpu(), losses.cpu().double()).sum(1).numpy()
                counts[batch] = counted.sum(1).cpu().numpy()
                missed = torch.zeros_like(counted).masked_scatter(counted, ~best)
                right[batch] = (~missed.any(1)).cpu().numpy()
        return sums, counts, right

    def ask(self, model: nn.Module, split: str, rows: Ints | None = None) -> tuple[list[str], Floats]:
        """Return the model's answers to a split's questions, or to some of them, and their probabilities."""
        questions = self.questions[split].ids
        chosen = questions if rows is None else [questions[row] for row in rows]
        return self.form.ask(model, chosen, self.write)

    def content(self) -> str:
        digest = blake2b(digest_size=16)
        for encoded in (*self.questions.values(), *self.answers.values()):
            for ids in encoded.ids:
                digest.update(len(ids).to_bytes(8, "little") + ids.tobytes())
        return digest.hexdigest()
