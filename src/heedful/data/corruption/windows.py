"""Windows: a document's title and a few tokens around one of its salient spans, which is to be predicted.

Whole lines let a model guess a fact from the rest of its line. A window hides that rest, so that the fact has
to be recalled from the title, and it is short, so that each fact is seen many times in the same computing
time (on which recall depends, as Allen-Zhu and Li 2023, "Physics of Language Models: Part 3.1", found). The
rules use spelling alone: the hidden span and the size of the window are random.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from heedful.data import cache
from heedful.data.batches import IGNORED
from heedful.data.corruption.salient import Ranges, convert_to_token_ranges, find_salient_ranges
from heedful.progress import track

if TYPE_CHECKING:
    from heedful.data.corpus import Corpus
    from heedful.text import Tokenizer

Ints = npt.NDArray[np.int64]
Ids = npt.NDArray[np.integer[Any]]
Kinds = Literal["all", "names"]

FORMAT = 1
TOGETHER = 4096
RANDOM_SPAN = 3
"""Length of the longest span hidden in a document without salient spans."""
# A single letter before a period is an initial, which does not end a title.
TITLE_END = re.compile(r"\w{2,}\.?(?=\. )")


def find_title_end(text: str) -> int:
    """Return where the title ends: at the first period inside the text; 0 if there is none."""
    match = TITLE_END.search(text)
    return match.end() if match else max(0, text.find(". "))


@dataclass(frozen=True)
class SalientSpans:
    """The salient spans of many documents, as token ranges in flat arrays.

    Ranges inside the title, and those that only repeat its words, are left out.
    """

    titles: Ints
    """[n], the number of tokens of the title, with its period."""
    firsts: Ints
    """[n + 1], where the ranges of each document begin."""
    ranges: Ints
    """[m, 2], begin and end."""

    def document_ranges(self, document: int) -> Ranges:
        ranges = self.ranges[self.firsts[document] : self.firsts[document + 1]]
        return [(int(start), int(end)) for start, end in ranges]

    def limit_to(self, n: int) -> SalientSpans:
        """Return the same without ranges that end after the first n tokens of their document."""
        kept = self.ranges[:, 1] <= n
        before = np.concatenate([[0], np.cumsum(kept)])
        return SalientSpans(self.titles, before[self.firsts], self.ranges[kept])

    @classmethod
    def find(cls, texts: Iterable[str], tokenizer: Tokenizer, kinds: Kinds = "all") -> SalientSpans:
        """Find all salient spans, or names only, in texts that are encoded without special tokens."""
        titles: list[int] = []
        counts: list[int] = []
        ranges: Ranges = []
        for many in batch_texts(texts):
            encodings = tokenizer.backend.encode_batch(many, add_special_tokens=False)
            for text, encoded in zip(many, encodings, strict=True):
                end = find_title_end(text)
                title_words = set(re.findall(r"\w+", text[:end]))
                new = [
                    (start, stop)
                    for start, stop in find_salient_ranges(text)
                    if start > end and set(re.findall(r"\w+", text[start:stop])) - title_words
                ]
                if kinds == "names":
                    new = [(start, stop) for start, stop in new if not re.search(r"\d", text[start:stop])]
                offsets = np.array(encoded.offsets, np.int64).reshape(-1, 2)
                titles.append(int((offsets[:, 0] <= end).sum()) if end else 0)
                spans = [(a, b) for a, b in convert_to_token_ranges(offsets, new) if a >= titles[-1]]
                counts.append(len(spans))
                ranges += spans
        firsts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(np.array(titles, np.int64), firsts, np.array(ranges, np.int64).reshape(-1, 2))


def batch_texts(texts: Iterable[str]) -> Iterator[list[str]]:
    stream = iter(texts)
    while many := list(islice(stream, TOGETHER)):
        yield many


def find_salient(corpus: Corpus, tokenizer: Tokenizer, kinds: Kinds = "all") -> SalientSpans:
    """Find the salient spans of a corpus, cached by its content; "names" skips dates and numbers."""
    key = cache.digest("salient", FORMAT, corpus.fingerprint, tokenizer.fingerprint, kinds)

    def fill(folder: Path) -> None:
        label = f"finding salient spans in {Path(corpus.name).name}"
        spans = SalientSpans.find(track(corpus, label), tokenizer, kinds)
        for name in ("titles", "firsts", "ranges"):
            (folder / f"{name}.bin").write_bytes(getattr(spans, name).tobytes())
        (folder / "facts.json").write_text(json.dumps({"documents": len(spans.titles)}), "utf-8")

    folder = cache.build_once("salient", key, fill)
    files = (folder / f"{name}.bin" for name in ("titles", "firsts", "ranges"))
    titles, firsts, ranges = (np.fromfile(file, np.int64) for file in files)
    return SalientSpans(titles, firsts, ranges.reshape(-1, 2))


@dataclass(frozen=True)
class WindowBatch:
    """Rows of tokens and the targets at each position, padded on the right."""

    ids: Ints
    """[b, t]"""
    targets: Ints
    """[b, t], the next token, or `IGNORED`."""
    lengths: Ints
    """[b], the number of tokens that are not padding."""


def hide_in_windows(
    ids: Ids,
    offsets: Ints,
    documents: Ints,
    salient: SalientSpans,
    *,
    block: int,
    mask_id: int,
    pad_id: int,
    generator: np.random.Generator,
    left: int = 5,
    right: int = 3,
) -> WindowBatch:
    """Hide one salient span of each document: `title left MASK right MASK span MASK`, loss on the span.

    Document i is `ids[offsets[i] : offsets[i + 1]]`, cut to `block` tokens, as `salient` must be
    (`SalientSpans.limit_to`). Up to `left` tokens before the span and up to `right` after it stay, each
    number equally likely. A row never has more than `block` tokens: a title is cut to half of that, a span to
    a quarter, and the window to what they leave. Where nothing is salient the span is one to three tokens
    anywhere after the title.
    """
    b, base = len(documents), offsets[documents]
    n = np.minimum(offsets[documents + 1] - base, block)
    title = np.minimum(salient.titles[documents], np.minimum(block // 2, n - 1))
    start, end = choose_spans(documents, salient, n, title, generator)
    end = np.minimum(end, start + block // 4)
    span = end - start
    room = block - title - span - 3
    before = np.minimum.reduce([generator.integers(0, left, b, endpoint=True), start - title, room])
    after = np.minimum.reduce([generator.integers(0, right, b, endpoint=True), n - end, room - before])
    first = (title + before)[:, None]
    second = first + 1 + after[:, None]
    third = second + 1 + span[:, None]
    at = np.arange(int(third.max(initial=0)) + 1)[None]  # [1, t + 1]
    title, before, start, end, base = (x[:, None] for x in (title, before, start, end, base))
    window = np.where(at < first, start - before + at - title, end + at - first - 1)
    source = np.where(at < title, at, np.where(at < second, window, start + at - second - 1))
    real = (at < third) & (at != first) & (at != second)
    whole = np.where(real, np.asarray(ids)[np.where(real, base + source, 0)], mask_id).astype(np.int64)
    targets = np.where((at > second) & (at <= third), whole, IGNORED)
    whole[at >= third] = pad_id  # the last MASK is predicted, never read
    return WindowBatch(whole[:, :-1].copy(), targets[:, 1:].copy(), third[:, 0])


def choose_spans(
    documents: Ints, salient: SalientSpans, n: Ints, title: Ints, generator: np.random.Generator
) -> tuple[Ints, Ints]:
    """Draw one range of each document; without any, one to three of the n tokens after the title."""
    firsts = salient.firsts[documents]
    counts = salient.firsts[documents + 1] - firsts
    which, where, size = generator.random((3, len(documents)))
    start = title + (where * (n - title)).astype(np.int64)
    end = np.minimum(start + 1 + (size * RANDOM_SPAN).astype(np.int64), n)
    some = np.flatnonzero(counts)
    drawn = salient.ranges[firsts[some] + (which[some] * counts[some]).astype(np.int64)]
    start[some], end[some] = drawn.T
    return start, end
