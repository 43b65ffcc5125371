"""Questions and free answers as ids: one form for pretraining, fine-tuning, evaluation and use.

A decoder reads `question MASK answer MASK`: the form of span corruption (`hide_single_span` in
`heedful.data.corruption`) with the whole question visible, so that fine-tuning asks for what pretraining has
taught. An encoder-decoder reads the question and writes the answer.
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
    """The token that opens and closes an answer: MASK, or the end of text where there is no MASK (GPT-2)."""
    found = tokenizer.mask_id if tokenizer.mask_id is not None else tokenizer.eos_id
    if found is None:
        raise UserError("this tokenizer has no mask token and no end of text; answers need one of them")
    return found


@dataclass(frozen=True)
class EncodedTexts:
    """Texts as ids, and what was lost on the way."""

    ids: list[Ints]
    truncated: int
    """Texts that were cut."""
    unknown: int
    """Texts with a token that the vocabulary lacks."""


def answer_room(max_len: int) -> int:
    """Return the largest number of tokens of an answer."""
    return max(1, max_len // ANSWER_PART)


def question_room(max_len: int) -> int:
    """Return the largest number of tokens of a question before an answer in the same row."""
    return max(1, max_len - answer_room(max_len) - 1)


def encode_questions(
    tokenizer: Tokenizer, texts: Sequence[str], room: int | None = None, *, special: bool = False
) -> EncodedTexts:
    """Questions as ids, at most `room` of them; `special` with the frame that an encoder expects."""
    return encode_texts(tokenizer, texts, room, special)


def encode_answers(tokenizer: Tokenizer, texts: Sequence[str], room: int | None = None) -> EncodedTexts:
    """Answers as ids, spelled as they are inside a text: byte-level pieces carry the space before them."""
    before = " " if tokenizer.kind == "bpe" else ""
    return encode_texts(tokenizer, [before + normalize_spaces(text) for text in texts], room, special=False)


def encode_texts(tokenizer: Tokenizer, texts: Sequence[str], room: int | None, special: bool) -> EncodedTexts:
    """Encode texts, and count those that were cut or have unknown tokens."""
    found = tokenizer.encode_batch(list(texts), max_len=room, special=special)
    ids = [np.array(one.ids, np.int64) for one in found]
    unknown = 0
    if tokenizer.unk_id is not None:
        unknown = sum(bool((own == tokenizer.unk_id).any()) for own in ids)
    return EncodedTexts(ids, sum(one.truncated > 0 for one in found), unknown)


def answer_rows(
    questions: Sequence[Ints],
    answers: Sequence[Ints],
    *,
    separator: int,
    pad_id: int,
    loss: AnswerLoss = "answer",
    width: int | None = None,
) -> tuple[Ints, Ints]:
    """Inputs and targets [b, t] of `question MASK answer MASK PAD ...`, the same row shifted by one.

    `width` is t; by default the longest row's. Targets without loss are `IGNORED`: padding, and with
    `loss="answer"` everything before the answer.
    """
    mark = np.array([separator], np.int64)
    rows = [np.concatenate([q, mark, a, mark]) for q, a in zip(questions, answers, strict=True)]
    whole = pad(rows, pad_id, None if width is None else width + 1)  # [b, t + 1]
    begins = np.fromiter((len(q) for q in questions), np.int64, len(questions))[:, None]
    ends = np.fromiter((len(row) for row in rows), np.int64, len(rows))[:, None]
    at = np.arange(whole.shape[1])[None]
    counted = (at < ends) & ((at > begins) if loss == "answer" else True)
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
    """Continues prompts greedily (`heedful.inference.generation.generate`, in a layer beside this one)."""

    def __call__(
        self, model: Any, prompts: Sequence[Sequence[int]], *, max_tokens: int, stop_ids: Collection[int]
    ) -> Sequence[GeneratedText]:
        """Return what follows each prompt, up to a stop token or `max_tokens`."""


@dataclass(frozen=True)
class QuestionFormat:
    """How a model is asked and answers: the one place for training, evaluation and use."""

    tokenizer: Tokenizer
    max_len: int
    whole: bool
    """An encoder-decoder: the question is its input, the answer its output."""

    @property
    def stop_id(self) -> int:
        """The token that ends an answer."""
        eos = self.tokenizer.eos_id
        return eos if self.whole and eos is not None else separator(self.tokenizer)

    @property
    def pad_id(self) -> int:
        """What fills rows up."""
        return 0 if self.tokenizer.pad_id is None else self.tokenizer.pad_id

    def questions(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> EncodedTexts:
        """Encode questions; a second text comes after the first."""
        whole = list(texts) if pairs is None else [f"{a} {b}" for a, b in zip(texts, pairs, strict=True)]
        room = self.max_len if self.whole else question_room(self.max_len)
        return encode_questions(self.tokenizer, whole, room, special=self.whole)

    def answers(self, texts: Sequence[str]) -> EncodedTexts:
        """Answers as ids."""
        return encode_answers(self.tokenizer, texts, answer_room(self.max_len))

    def text(self, ids: Sequence[int]) -> str:
        """An answer as text."""
        return normalize_spaces(self.tokenizer.decode(ids))

    def ask(self, model: Any, questions: Sequence[Ints], write: GenerateFunction) -> tuple[list[str], Floats]:
        """The model's most probable answer to each question, token by token, and its probability."""
        end = [] if self.whole else [separator(self.tokenizer)]
        prompts = [[*question.tolist(), *end] for question in questions]
        room = answer_room(self.max_len)
        found = write(model, prompts, max_tokens=room, stop_ids=(self.stop_id,))
        logs = np.array([one.log_probability for one in found], np.float64)
        return [self.text(one.ids) for one in found], np.exp(logs)
