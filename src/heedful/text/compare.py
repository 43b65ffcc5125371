"""Tokenizers on one corpus, side by side, and whether to train one's own."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from math import sqrt

import numpy as np

from heedful.errors import UserError
from heedful.paths import expand_path
from heedful.text.model_folders import TOKENIZER_FILES, find_folder
from heedful.text.tokenizer import Tokenizer
from heedful.text.training import ALL_BYTES, train

SAMPLE_BYTES = 32 * 2**20
HELD_OUT = 10  # one line in ten
HELD_OUT_BYTES = 2 * 2**20
FEWEST_LINES = 20
OWN = "trained on this text"
TOO_MANY_UNKNOWN = 0.01
WORTH_IT = 0.10
PRETRAINING_BYTES = 100 * 2**20


@dataclass(frozen=True)
class Sample:
    """Lines to train on, and other lines to measure on. A line and its copies are on one side."""

    train: list[str]
    held_out: list[str]
    bytes: int
    cut: bool
    """There was more than is looked at."""


@dataclass(frozen=True)
class TokenizerMeasurement:
    """What a tokenizer does to the held-out lines. Words are what white space separates."""

    name: str
    kind: str
    vocab_size: int
    tokens_per_word: float
    unknown: float
    """The share of tokens that are unknown."""
    whole_words: float
    """The share of words that are one token, unknown ones apart."""
    bytes_per_token: float
    vocab_used: float
    mb_per_second: float
    lowercases: bool
    line_tokens: list[int]


@dataclass(frozen=True)
class TokenizerAdvice:
    train_own: str
    """`no`, `only from nothing` or `yes`."""
    reason: str
    best: str
    saving: float
    saving_ci95: tuple[float, float]


def split_sample(texts: Iterable[str]) -> Sample:
    """Divide a corpus by a hash of each line; only the first part of a large one."""
    kept: list[str] = []
    held: list[str] = []
    size = held_size = 0
    cut = False
    for text in texts:
        line = text.strip()
        if not line:
            continue
        if size > SAMPLE_BYTES:
            cut = True
            break
        encoded = line.encode("utf-8", "replace")
        size += len(encoded)
        if hashlib.blake2b(encoded, digest_size=4).digest()[0] % HELD_OUT:
            kept.append(line)
        elif held_size < HELD_OUT_BYTES:
            held.append(line)
            held_size += len(encoded)
    if len(set(kept)) < FEWEST_LINES or len(set(held)) < 2:
        raise UserError(
            f"the corpus has {len(set(kept)) + len(set(held))} different lines; comparing needs about "
            f"{2 * FEWEST_LINES} or more, since a part is held out"
        )
    return Sample(kept, held, size, cut)


def measure(name: str, tokenizer: Tokenizer, lines: list[str]) -> TokenizerMeasurement:
    seconds = min(time_encoding(tokenizer, lines) for _ in range(2))
    line_tokens, words, whole, unknown = [], 0, 0, 0
    used: set[int] = set()
    encodings = tokenizer.backend.encode_batch(lines, add_special_tokens=False)
    for line, encoded in zip(lines, encodings, strict=True):
        ids = np.array(encoded.ids, dtype=np.int64)
        starts = np.array([match.start() for match in re.finditer(r"\S+", line)], dtype=np.int64)
        last = np.array([end - 1 for _, end in encoded.offsets], dtype=np.int64)
        is_unknown = ids == (-1 if tokenizer.unk_id is None else tokenizer.unk_id)
        owner = np.searchsorted(starts, last, side="right") - 1
        inside = np.array([at >= 0 and not line[at].isspace() for at in last], dtype=bool)
        count = np.bincount(owner[inside], minlength=len(starts))
        lost = np.bincount(owner[inside & is_unknown], minlength=len(starts))
        words += len(starts)
        whole += int(((count == 1) & (lost == 0)).sum())
        unknown += int(is_unknown.sum())
        line_tokens.append(len(ids))
        used.update(encoded.ids)
    tokens, size = sum(line_tokens), sum(len(line.encode()) for line in lines)
    return TokenizerMeasurement(
        name=name,
        kind=tokenizer.kind,
        vocab_size=tokenizer.vocab_size,
        tokens_per_word=tokens / words,
        unknown=unknown / max(tokens, 1),
        whole_words=whole / words,
        bytes_per_token=size / max(tokens, 1),
        vocab_used=len(used) / tokenizer.vocab_size,
        mb_per_second=size / 2**20 / seconds,
        lowercases=tokenizer.encode("AbC", special=False).ids == tokenizer.encode("abc", special=False).ids,
        line_tokens=line_tokens,
    )


def time_encoding(tokenizer: Tokenizer, lines: list[str]) -> float:
    start = time.perf_counter()
    tokenizer.encode_batch(lines, special=False)
    return time.perf_counter() - start


def has_model(name: str) -> bool:
    """Whether the tokenizer called `name` is a model's: then config.json is beside it."""
    path = expand_path(name)
    folder = path.parent if path.is_file() else find_folder(name, TOKENIZER_FILES)
    return (folder / "config.json").is_file()


def compare(
    tokenizers: Mapping[str, Tokenizer],
    sample: Sample,
    vocab_size: int | None = None,
    *,
    bare: Collection[str] = (),
) -> tuple[list[TokenizerMeasurement], TokenizerAdvice]:
    """Measure tokenizers on held-out lines, beside one trained on the other lines, and answer.

    The one trained is byte-level BPE of the same size as the best of the others (or of `vocab_size`), and
    lowercases if that does. `bare` names the tokenizers that no model comes with (see `has_model`).
    """
    measurements = [measure(name, tokenizer, sample.held_out) for name, tokenizer in tokenizers.items()]
    able = [one for one in measurements if one.unknown <= TOO_MANY_UNKNOWN]
    best = min(able or measurements, key=lambda one: one.tokens_per_word if able else one.unknown)
    size = max(best.vocab_size, 2 * len(ALL_BYTES)) if vocab_size is None else vocab_size
    tokenizer = train(sample.train, kind="bpe", vocab_size=size, lowercase=best.lowercases, sentinels=0)
    trained = measure(OWN, tokenizer, sample.held_out)
    return [*measurements, trained], advise(best, trained, sample, bare=best.name in bare)


def advise(
    best: TokenizerMeasurement, trained: TokenizerMeasurement, sample: Sample, *, bare: bool = False
) -> TokenizerAdvice:
    """Answer by how many tokens a tokenizer of one's own would save, with a 95 % interval over lines.

    `bare` says that the best is no model's tokenizer.
    """
    theirs, ours = np.array(best.line_tokens, float), np.array(trained.line_tokens, float)
    ratio = ours.sum() / theirs.sum()
    error = sqrt(((ours - ratio * theirs) ** 2).sum()) / theirs.sum()
    saving = 1 - ratio
    low, high = saving - 1.96 * error, saving + 1.96 * error
    numbers = (
        f"on held-out lines {best.name} needs {best.tokens_per_word:.2f} tokens per word, "
        f"one {trained.name} {trained.tokens_per_word:.2f} ({100 * saving:.1f} % saved, "
        f"95 % interval {100 * low:.1f} to {100 * high:.1f})"
    )
    if best.unknown > TOO_MANY_UNKNOWN:
        verdict = "yes"
        reason = (
            f"{100 * best.unknown:.1f} % of the tokens are unknown even to {best.name}, the best of these; "
            "train your own (byte-level BPE knows everything) or take a model with a byte-level tokenizer"
        )
    elif best.line_tokens == trained.line_tokens:
        verdict = "no"
        reason = f"{numbers}: {best.name} is a tokenizer of its own for such text already"
    elif low < WORTH_IT and bare:
        verdict = "no"
        reason = (
            f"{numbers}: {best.name} is a tokenizer of its own already, bound to no model, and another would "
            "gain too little"
        )
    elif low < WORTH_IT:
        verdict = "no"
        reason = f"{numbers}: too little to give up a pretrained model, which is bound to its tokenizer"
    else:
        verdict = "only from nothing"
        fits = (
            f"but it fits no pretrained model, as {best.name}, a tokenizer of its own already, fits none"
            if bare
            else "but a tokenizer of your own fits no pretrained model"
        )
        reason = f"{numbers}; {fits}, so it pays only if you pretrain from nothing anyway"
        if not sample.cut and sample.bytes < PRETRAINING_BYTES:
            reason += (
                f", and {sample.bytes / 2**20:.1f} MB of text is little for that: adapting a model is safer"
            )
    return TokenizerAdvice(verdict, reason, best.name, saving, (low, high))
