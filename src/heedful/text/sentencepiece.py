"""Read a sentencepiece model (`spiece.model`) without sentencepiece: its file is a small protobuf message.

Field numbers are those of sentencepiece_model.proto; fields that do not change ids are skipped.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from heedful.errors import UserError
from heedful.runs.json_files import read_bytes

SPACE = "▁"
MOST_PIECES, LONGEST_PIECE = 10_000_000, 10_000
UNIGRAM, BPE = 1, 2
CONTROL, USER_DEFINED = 3, 4
ALGORITHMS = {UNIGRAM: "unigram", BPE: "bpe", 3: "word", 4: "char"}


class MessageError(Exception):
    """The bytes are not a protobuf message."""


@dataclass(frozen=True)
class SentencePiece:
    pieces: list[tuple[str, float, int]]
    algorithm: int
    byte_fallback: bool
    space_last: bool
    ids: dict[str, int]
    charsmap: bytes
    dummy_prefix: bool
    single_spaces: bool
    escape: bool


def fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield a message's fields as (number, value): a varint as an int, anything else as its bytes."""
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise MessageError
        if wire == 0:
            value, at = varint(message, at)
            yield number, value
            continue
        if wire == 2:
            size, at = varint(message, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise MessageError
        if at + size > len(message):
            raise MessageError
        yield number, message[at : at + size]
        at += size


def varint(message: bytes, at: int) -> tuple[int, int]:
    """Read a variable-length integer: seven bits per byte, the lowest first."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(message):
            break
        byte = message[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise MessageError


def integer(value: int | bytes) -> int:
    """Return a varint as a signed 64-bit number, as protobuf writes negative ones."""
    if isinstance(value, bytes):
        raise MessageError
    return value - (1 << 64) if value >= 1 << 63 else value


def raw(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise MessageError
    return value


def read(path: Path) -> SentencePiece:
    try:
        model = parse(read_bytes(path))
    except (MessageError, UnicodeDecodeError, struct.error):
        raise UserError(f"{path}: is not a sentencepiece model, or was cut off") from None
    if not model.pieces:
        raise UserError(f"{path}: is not a sentencepiece model: it has no pieces")
    if model.algorithm not in (UNIGRAM, BPE):
        name = ALGORITHMS.get(model.algorithm, str(model.algorithm))
        raise UserError(f"{path}: a sentencepiece model of type {name}; unigram and bpe can be loaded")
    if "unk" not in model.ids:
        raise UserError(f"{path}: is not a sentencepiece model: none of its pieces stands for unknown ones")
    if any(not math.isfinite(score) for _, score, _ in model.pieces):
        raise UserError(f"{path}: the score of a piece is not a finite number")
    if model.space_last or not model.escape:
        option = "treat_whitespace_as_suffix" if model.space_last else "escape_whitespaces=false"
        raise UserError(f"{path}: was trained with {option}, which cannot be loaded")
    return model


def parse(message: bytes) -> SentencePiece:
    """Parse a ModelProto: pieces are field 1, the trainer's settings field 2, the normalizer's field 3."""
    pieces: list[tuple[str, float, int]] = []
    trainer: dict[int, int | bytes] = {}
    normalizer: dict[int, int | bytes] = {}
    for number, value in fields(message):
        if number == 1:
            piece = dict(fields(raw(value)))
            score = struct.unpack("<f", raw(piece[2]))[0] if 2 in piece else 0.0
            pieces.append((raw(piece.get(1, b"")).decode(), score, integer(piece.get(3, 1))))
        elif number == 2:
            trainer.update(fields(raw(value)))
        elif number == 3:
            normalizer.update(fields(raw(value)))
    defaults = {"unk": (40, 0), "bos": (41, 1), "eos": (42, 2), "pad": (43, -1)}
    ids = {role: integer(trainer.get(number, default)) for role, (number, default) in defaults.items()}
    if len(pieces) > MOST_PIECES or any(len(piece) > LONGEST_PIECE for piece, _, _ in pieces):
        raise MessageError
    return SentencePiece(
        pieces=pieces,
        algorithm=integer(trainer.get(3, UNIGRAM)),
        byte_fallback=bool(trainer.get(35, 0)),
        space_last=bool(trainer.get(24, 0)),
        ids={role: i for role, i in ids.items() if 0 <= i < len(pieces)},
        charsmap=raw(normalizer.get(2, b"")),
        dummy_prefix=bool(normalizer.get(3, 1)),
        single_spaces=bool(normalizer.get(4, 1)),
        escape=bool(normalizer.get(5, 1)),
    )


def build(model: SentencePiece, sentinels: int) -> Backend:
    """Build the equivalent tokenizer, with T5's sentinels after the pieces, the last one first."""
    existing = {piece for piece, _, _ in model.pieces}
    extra = [f"<extra_id_{i}>" for i in reversed(range(sentinels)) if f"<extra_id_{i}>" not in existing]
    scored = [(piece, score) for piece, score, _ in model.pieces] + [(token, 0.0) for token in extra]
    vocabulary = {piece: i for i, (piece, _) in enumerate(scored)}
    unk, fallback = model.ids["unk"], model.byte_fallback
    if model.algorithm == UNIGRAM:
        backend = Backend(models.Unigram(scored, unk_id=unk, byte_fallback=fallback))
    else:
        rules, token = merges(model.pieces, vocabulary), scored[unk][0]
        bpe = models.BPE(vocabulary, rules, unk_token=token, fuse_unk=True, byte_fallback=fallback)
        backend = Backend(bpe)
    steps: list[normalizers.Normalizer] = []
    if model.charsmap:
        steps.append(normalizers.Precompiled(model.charsmap))
    if model.single_spaces:
        steps += [normalizers.Replace(Regex("^ +| +$"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    scheme = "always" if model.dummy_prefix else "never"
    if model.dummy_prefix and not model.single_spaces:
        # Metaspace adds no space where there is one; sentencepiece does.
        steps.append(normalizers.Prepend(SPACE))
        scheme = "never"
    backend.normalizer = normalizers.Sequence(steps)
    split = not any(SPACE in piece[1:] for piece, _, _ in model.pieces)
    backend.pre_tokenizer = pre_tokenizers.Metaspace(SPACE, prepend_scheme=scheme, split=split)
    back: list[decoders.Decoder] = [decoders.Replace(SPACE, " ")]
    back += [decoders.ByteFallback()] if model.byte_fallback else []
    back += [decoders.Fuse()]
    back += [decoders.Strip(" ", 1, 0)] if model.dummy_prefix else []
    backend.decoder = decoders.Sequence(back)
    for piece, _, type_ in model.pieces:
        if type_ in (CONTROL, USER_DEFINED):
            backend.add_tokens([AddedToken(piece, normalized=False, special=type_ == CONTROL)])
    backend.add_special_tokens(list(reversed(extra)))
    return backend


def merges(pieces: list[tuple[str, float, int]], vocabulary: dict[str, int]) -> list[tuple[str, str]]:
    """Recover the merges of a BPE model, which sentencepiece keeps as scores: a better piece merges first."""
    ranked = []
    for piece, score, type_ in pieces:
        if type_ != 1:
            continue
        for left, right in ((piece[:i], piece[i:]) for i in range(1, len(piece))):
            if left in vocabulary and right in vocabulary:
                ranked.append((-score, vocabulary[piece], vocabulary[left], vocabulary[right], left, right))
    ranked.sort()
    return [(left, right) for *_, left, right in ranked]
