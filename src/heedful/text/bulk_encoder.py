"""Many texts at once, for the token cache: the ids of all of them as bytes, one text after another."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import tokenizers
from tokenizers import models

from heedful.options.types import LongTexts
from heedful.text.tokenizer import divide_room, divide_text, refuse_no_room, text_error
from heedful.text.word_level import WordCache, find_rule

A, B = 2**32 - 1, 2**32 - 2
"""Ids that no vocabulary has: they mark the texts when a tokenizer is asked for its frame."""


@dataclass(frozen=True)
class EncodedTexts:
    """The ids of many texts, or pairs, joined; `lengths` says where each ends."""

    ids: bytes
    types: bytes | None
    lengths: array[int]
    truncated_rows: int


@dataclass(frozen=True)
class Frame:
    """The ids before, between and after the texts, or their types, and the values of the two texts."""

    before: list[int]
    between: list[int]
    after: list[int]
    first: int
    second: int


class BulkEncoder:
    """Encodes texts, or pairs, as `Tokenizer.encode_batch` does, several times as fast on a large corpus.

    A copy made by pickle encodes the same, in another process.
    """

    def __init__(
        self,
        backend: tokenizers.Tokenizer,
        *,
        paired: bool,
        max_len: int | None,
        special: bool,
        wide: bool,
        long_texts: LongTexts = "cut",
    ) -> None:
        self.backend, self.long_texts = backend, long_texts
        options = {"paired": paired, "max_len": max_len, "special": special, "wide": wide}
        self.options: dict[str, Any] = {**options, "long_texts": long_texts}
        self.paired = paired
        self.code = "I" if wide else "H"
        self.width = array(self.code).itemsize
        self.frame, self.types = self.read_frame(special)
        self.framing = sum(map(len, (self.frame.before, self.frame.between, self.frame.after)))
        refuse_no_room(max_len, self.framing)
        self.room = None if max_len is None else max_len - self.framing
        rule = find_rule(backend)
        self.bodies = self.encode_whole if rule is None else WordCache(rule, self.encode_whole).ids

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuild, (self.backend.to_str(), self.options)

    def read_frame(self, special: bool) -> tuple[Frame, Frame]:
        """Ask the tokenizer for its frame: the ids around the texts, and their types."""

        def text(mark: int) -> tokenizers.Encoding:
            encoding = self.backend.encode("", add_special_tokens=False)
            encoding.truncate(0)
            encoding.pad(1, pad_id=mark)
            return encoding

        framed = self.backend.post_process(text(A), text(B) if self.paired else None, special)
        first = framed.ids.index(A)
        second = framed.ids.index(B) if self.paired else first

        def parts(values: list[int]) -> Frame:
            between = values[first + 1 : second]
            return Frame(values[:first], between, values[second + 1 :], values[first], values[second])

        return parts(framed.ids), parts(framed.type_ids)

    def encode(self, texts: Sequence[str], pairs: Sequence[str] | None) -> EncodedTexts:
        rows = self.bodies(texts)
        if self.paired:
            assert pairs is not None
            return self.encode_pairs(rows, self.bodies(pairs))
        truncated = 0
        if self.room is not None:
            most = self.room * self.width
            truncated = sum(len(row) > most for row in rows)
            rows = [self.shorten_row(row, self.room) if len(row) > most else row for row in rows]
        lengths = array("q", [len(row) // self.width + self.framing for row in rows])
        return EncodedTexts(self.join_ids(rows), None, lengths, truncated)

    def encode_pairs(self, firsts: list[bytes], seconds: list[bytes]) -> EncodedTexts:
        """Join pairs; they are cut as `Tokenizer.encode` says."""
        width, between, kinds = self.width, self.pack_ids(self.frame.between), self.types
        first_type, types_between, second_type = map(bytes, ([kinds.first], kinds.between, [kinds.second]))
        rows, types, truncated = [], [], 0
        for first, second in zip(firsts, seconds, strict=True):
            n_first, n_second = len(first) // width, len(second) // width
            if self.room is not None and n_first + n_second > self.room:
                n_first, n_second = divide_room(n_first, n_second, self.room)
                truncated += 1
            rows.append(self.shorten_row(first, n_first) + between + self.shorten_row(second, n_second))
            types.append(first_type * n_first + types_between + second_type * n_second)
        ends = len(self.frame.before) + len(self.frame.after)
        lengths = array("q", [len(row) // width + ends for row in rows])
        joined_types = join_rows(types, bytes(kinds.before), bytes(kinds.after))
        return EncodedTexts(self.join_ids(rows), joined_types, lengths, truncated)

    def shorten_row(self, row: bytes, keep: int) -> bytes:
        """Keep some of the ids of a text: the first ones, or the first and the last ones."""
        head, tail = divide_text(len(row) // self.width, keep, self.long_texts)
        return row[: head * self.width] + row[len(row) - tail * self.width :]

    def join_ids(self, rows: list[bytes]) -> bytes:
        return join_rows(rows, self.pack_ids(self.frame.before), self.pack_ids(self.frame.after))

    def pack_ids(self, ids: Iterable[int]) -> bytes:
        return array(self.code, ids).tobytes()

    def encode_whole(self, texts: Sequence[str]) -> list[bytes]:
        try:
            encodings = self.backend.encode_batch_fast(list(texts), add_special_tokens=False)
        except TypeError:
            raise text_error(texts) from None
        return [self.pack_ids(one.ids) for one in encodings]


def join_rows(rows: list[bytes], before: bytes, after: bytes) -> bytes:
    return before + (after + before).join(rows) + after


def rebuild(description: str, options: dict[str, Any]) -> BulkEncoder:
    backend = tokenizers.Tokenizer.from_str(description)
    if isinstance(backend.model, models.Unigram):
        # The library does not read a score back to the last bit; Python does.
        model = json.loads(description)["model"]
        pieces = [(piece, score) for piece, score in model["vocab"]]
        backend.model = models.Unigram(pieces, model["unk_id"], model["byte_fallback"])
    return BulkEncoder(backend, **options)
