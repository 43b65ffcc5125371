"""Questions and free answers as ids, in the same form for pretraining, fine-tuning, evaluation and use.

A decoder reads `question MASK answer MASK`: the form of span corruption (`hide_single_span` in
`heedful.data.corruption`) with the whole question visible, so that fine-tuning asks in the form of
pretraining. An encoder-decoder reads the question and writes the answer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from heedful.data.batches import IGNORED, pad
from heedful.errors import UserError
from heedful.objectives.base import Floats, Ints
from heedful.text import Tokenizer

AnswerLoss = Literal["answer", "all"]
"""Where there is loss: on the answer and the token that closes it, or on the question too."""
ANSWER_PART = 4
"""The answer gets the length divided by this number."""


def separator(tokenizer: Tokenizer) -> int:
    """Return the token before and after an answer: MASK, or the end of text if there is no MASK (GPT-2)."""
    token_id = tokenizer.mask_id if tokenizer.mask_id is not None else tokenizer.eos_id
    if token_id is None:
        raise UserError("this tokenizer has no mask token and no end of text; answers need one of them")
    return token_id


@dataclass(frozen=True)
class EncodedTexts:
    ids: list[Ints]
    truncated: int
    """The number of texts that were cut."""
    unknown: int
    """The number of texts with a token that the vocabulary lacks."""


def answer_room(max_len: int) -> int:
    """Return the largest number of tokens of an answer."""
    return max(1, max_len // ANSWER_PART)


def question_room(max_len: int) -> int:
    """Return the largest number of tokens of a question before an answer in the same row."""
    return max(1, max_len - answer_room(max_len) - 1)


def encode_questions(
    tokenizer: Tokenizer, texts: Sequence[str], room: int | None = None, *, special: bool = False
) -> EncodedTexts:
    """Encode texts as at most `room` ids each; `special` adds the special tokens that an encoder expects."""
    encodings = tokenizer.encode_batch(list(texts), max_len=room, special=special)
    ids = [np.array(encoding.ids, np.int64) for encoding in encodings]
    unknown = 0
    if tokenizer.unk_id is not None:
        unknown = sum(bool((text_ids == tokenizer.unk_id).any()) for text_ids in ids)
    return EncodedTexts(ids, sum(encoding.truncated > 0 for encoding in encodings), unknown)


def encode_answers(tokenizer: Tokenizer, texts: Sequence[str], room: int | None = None) -> EncodedTexts:
    """Encode answers as inside a text: byte-level pieces include the space before them."""
    before = " " if tokenizer.kind == "bpe" else ""
    return encode_questions(tokenizer, [before + normalize_spaces(text) for text in texts], room)


def answer_rows(
    questions: Sequence[Ints],
    answers: Sequence[Ints],
    *,
    separator: int,
    pad_id: int,
    loss: AnswerLoss = "answer",
    width: int | None = None,
) -> tuple[Ints, Ints]:
    """Return inputs and targets [b, t] of `question MASK answer MASK PAD ...`, the same row shifted by one.

    `width` is t, by default the length of the longest row. Targets without loss are `IGNORED`: padding, and
    with `loss="answer"` everything before the answer.
    """
    mark = np.array([separator], np.int64)
    rows = [np.concatenate([q, mark, a, mark]) for q, a in zip(questions, answers, strict=True)]
    whole = pad(rows, pad_id, None if width is None else width + 1)  # [b, t + 1]
    begins = np.fromiter((len(q) for q in questions), np.int64, len(questions))[:, None]
    ends = np.fromiter((len(row) for row in rows), np.int64, len(rows))[:, None]
    position = np.arange(whole.shape[1])[None]
    counted = (position < ends) & ((position > begins) if loss == "answer" else True)
    targets = np.where(counted, whole, IGNORED)
    return whole[:, :-1].copy(), targets[:, 1:].copy()


def normalize_spaces(text: str) -> str:
    """Return the text with runs of white space as one space, which is what an exact match compares."""
    return " ".join(text.split())


class GeneratedText(Protocol):
    """What a model wrote after one prompt."""

    @property
    def ids(self) -> list[int]:
        """The tokens, without the one that ended them."""

    @property
    def log_probability(self) -> float:
        """The summed log-probability, including that of the token that ended the text."""


class GenerateFunction(Protocol):
    """Continues prompts greedily (`heedful.inference.generation.generate`, in a higher layer)."""

    def __call__(
        self, model: Any, prompts: Sequence[Sequence[int]], *, max_tokens: int, stop_ids: Collection[int]
    ) -> Sequence[GeneratedText]:
        """Return what follows each prompt, up to a stop token or `max_tokens`."""


@dataclass(frozen=True)
class QuestionFormat:
    """How a question is put to a model and its answer is read, in training, evaluation and use."""

    tokenizer: Tokenizer
    max_len: int
    whole: bool
    """Whether the model is an encoder-decoder: the question is its input, the answer its output."""

    @property
    def stop_id(self) -> int:
        """The token that ends an answer."""
        eos = self.tokenizer.eos_id
        return eos if self.whole and eos is not None else separator(self.tokenizer)

    @property
    def pad_id(self) -> int:
        return 0 if self.tokenizer.pad_id is None else self.tokenizer.pad_id

    def questions(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> EncodedTexts:
        """Encode questions; a second text comes after the first."""
        whole = list(texts) if pairs is None else [f"{a} {b}" for a, b in zip(texts, pairs, strict=True)]
        room = self.max_len if self.whole else question_room(self.max_len)
        return encode_questions(self.tokenizer, whole, room, special=self.whole)

    def answers(self, texts: Sequence[str]) -> EncodedTexts:
        return encode_answers(self.tokenizer, texts, answer_room(self.max_len))

    def text(self, ids: Sequence[int]) -> str:
        return normalize_spaces(self.tokenizer.decode(ids))

    def ask(self, model: Any, questions: Sequence[Ints], write: GenerateFunction) -> tuple[list[str], Floats]:
        """Return the model's greedy answer to each question, and its probability."""
        end = [] if self.whole else [separator(self.tokenizer)]
        prompts = [[*question.tolist(), *end] for question in questions]
        answers = write(model, prompts, max_tokens=answer_room(self.max_len), stop_ids=(self.stop_id,))
        log_probabilities = np.array([answer.log_probability for answer in answers], np.float64)
        return [self.text(answer.ids) for answer in answers], np.exp(log_probabilities)
