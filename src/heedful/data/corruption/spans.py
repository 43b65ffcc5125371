"""Span corruption: one span per block (the character form of courses), and T5's spans with sentinels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from heedful.data.batches import IGNORED, pad
from heedful.data.corruption.salient import Ranges

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

SHORTEST = 4
"""Fewest tokens of a document in the single-span form."""
SHORTEST_T5 = 2
"""Fewest tokens of a document in T5's form: one to keep and one to hide."""
SMALLEST_BLOCK = 24
"""Smallest block into which 7/8 of it and the three mask tokens fit."""


def is_long_enough(lengths: Sequence[int] | Array, shortest: int = SHORTEST) -> npt.NDArray[np.bool_]:
    """Return which documents can be corrupted; skip the others, such as an empty last line."""
    return np.asarray(lengths) >= shortest


def hide_single_span(
    documents: Sequence[Array],
    *,
    block: int,
    mask_id: int,
    pad_id: int,
    generator: np.random.Generator,
    last_mask: bool = True,
    loss: Literal["all", "span"] = "all",
    salient: Sequence[Ranges] | None = None,
) -> tuple[Ints, Ints]:
    """Hide one span of each document; return inputs and targets, [b, block - 1], the same row shifted by one.

    A document is cut to a length drawn uniformly from 4 to 7/8 of the block (a shorter one stays whole), a
    span of a quarter of that on average is drawn (uniformly from 1 to one less than half, anywhere), and the
    row is `prefix MASK suffix MASK span MASK PAD ...`; without `last_mask` the third MASK is PAD. Targets
    that are padding are `IGNORED`, and with `loss="span"` so are all before the span.

    `salient` gives each document's token ranges (`convert_to_token_ranges`): the span is then one of those
    inside the cut document, or random where there is none.
    """
    if block < SMALLEST_BLOCK:
        raise ValueError(f"block is {block}; the single-span form needs at least {SMALLEST_BLOCK}")
    if loss not in ("all", "span"):
        raise ValueError(f'loss is "{loss}"; it is "all" or "span"')
    longest = block * 7 // 8
    lengths = check_lengths(documents, SHORTEST)
    rows = pad([document[:longest] for document in documents], pad_id, width=longest)  # [b, longest]
    b = len(rows)

    cut = np.minimum(generator.integers(SHORTEST, longest, size=b, endpoint=True), lengths)
    # For an odd length, half is rounded up or down at random, so that the mean is exactly a quarter.
    half = (cut + generator.integers(0, 2, size=b)) // 2
    span = generator.integers(1, half - 1, endpoint=True)
    start = generator.integers(0, cut - span, endpoint=True)
    if salient is not None:
        draws = generator.random(b)
        for row, ranges in enumerate(salient):
            inside = [(s, e) for s, e in ranges if s < e <= cut[row] and e - s < cut[row]]
            if inside:
                first, after = inside[int(draws[row] * len(inside))]
                start[row], span[row] = first, after - first

    cut, span, start = cut[:, None], span[:, None], start[:, None]
    at = np.arange(block)[None]  # [1, block]
    second = cut - span + 1
    source = np.where(at < start, at, np.where(at < second, at - 1 + span, start + at - second - 1))
    whole = np.take_along_axis(rows, np.clip(source, 0, longest - 1), axis=1)
    whole = np.where((at == start) | (at == second), mask_id, whole)
    end = cut + 2
    whole = np.where(at == end, mask_id if last_mask else pad_id, np.where(at > end, pad_id, whole))
    counted = (at < end + last_mask) & ((at > second) if loss == "span" else True)
    targets = np.where(counted, whole, IGNORED)
    return whole[:, :-1].copy(), targets[:, 1:].copy()


def hide_t5_spans(
    documents: Sequence[Array],
    *,
    sentinel_ids: Sequence[int],
    eos_id: int,
    pad_id: int,
    generator: np.random.Generator,
    density: float = 0.15,
    mean_span: float = 3.0,
    salient: Sequence[Ranges] | None = None,
) -> tuple[Ints, Ints]:
    """Hide several spans of each document, each behind its sentinel (Raffel et al. 2020, section 3.1.4).

    Inputs are the document with each span replaced by its sentinel, then EOS, padded with `pad_id`. Targets
    are every sentinel with its span, a final sentinel and EOS, padded with `IGNORED`. Documents have no
    special tokens. `density` of the tokens are hidden (rounded, at least one, never all), in spans of
    `mean_span` on average, at most one fewer than there are sentinels. T5's code always hides the end of a
    document and never its beginning; here every set of separate spans is equally likely.

    `salient` gives each document's token ranges: they are hidden in random order as far as `density` allows,
    at least one; a document without any is corrupted at random.
    """
    lengths = check_lengths(documents, SHORTEST_T5)
    rows = pad(documents, pad_id)  # [b, t]
    most = len(sentinel_ids) - 1
    if most < 1:
        raise ValueError(
            "T5's span corruption needs at least two sentinels: one for a span and the final one"
        )
    hidden = np.clip(np.round(lengths * density), 1, lengths - 1).astype(np.int64)
    most_spans = np.minimum(hidden, lengths - hidden + 1)
    spans = np.clip(np.round(hidden / mean_span), 1, most_spans).astype(np.int64)
    noise = random_noise(lengths, hidden, np.minimum(spans, most), rows.shape[1], generator)
    if salient is not None:
        for row, ranges in enumerate(salient):
            picked = pick_salient(ranges, int(lengths[row]), int(hidden[row]), most, generator)
            if picked:
                noise[row] = False
                for start, end in picked:
                    noise[row, start:end] = True
    return write_sentinels(rows, lengths, noise, np.asarray(sentinel_ids), eos_id, pad_id)


def check_lengths(documents: Sequence[Array], shortest: int) -> Ints:
    lengths = np.fromiter((len(d) for d in documents), dtype=np.int64, count=len(documents))
    short = np.flatnonzero(~is_long_enough(lengths, shortest))
    if len(short):
        n = int(lengths[short[0]])
        raise ValueError(f"document {short[0]} of the batch has {n} tokens; this corruption needs {shortest}")
    return lengths


def choose_columns(sizes: Ints, counts: Ints, generator: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Choose `counts[i]` of the first `sizes[i]` columns of row i, all choices equally likely: [b, most]."""
    column = np.arange(int(sizes.max(initial=0)), dtype=np.int64)[None]
    # The column in the low bits makes keys distinct; sorting them is several times faster than argsort.
    keys = generator.integers(0, 2**31, (len(sizes), column.shape[1])) << 32 | column
    keys[column >= sizes[:, None]] = np.iinfo(np.int64).max
    in_order = np.sort(keys, axis=1)
    last = np.take_along_axis(in_order, np.maximum(counts - 1, 0)[:, None], axis=1)
    return (keys <= last) & (counts > 0)[:, None]


def random_noise(
    lengths: Ints, hidden: Ints, spans: Ints, width: int, generator: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Draw `spans[i]` separate spans that hide `hidden[i]` of the first `lengths[i]` tokens of row i."""
    b = len(lengths)
    # The hidden tokens are cut into spans at random positions between them ...
    begins = np.ones((b, int(hidden.max(initial=0))), dtype=bool)
    if begins.shape[1] > 1:
        begins[:, 1:] = choose_columns(hidden - 1, spans - 1, generator)
    number = np.cumsum(begins, axis=1) - 1  # the span that each hidden token belongs to
    # ... and each span goes into a gap of its own between the visible tokens, so that no two touch.
    row, gap = np.nonzero(choose_columns(lengths - hidden + 1, spans, generator))
    gap_of = np.zeros((b, int(spans.max(initial=0))), dtype=np.int64)
    gap_of[np.arange(gap_of.shape[1])[None] < spans[:, None]] = gap
    gaps = np.take_along_axis(gap_of, np.minimum(number, spans[:, None] - 1), axis=1)
    at = np.arange(begins.shape[1])[None] + gaps
    row, token = np.nonzero(np.arange(begins.shape[1])[None] < hidden[:, None])
    noise = np.zeros((b, width), dtype=bool)
    noise[row, at[row, token]] = True
    return noise


def pick_salient(
    ranges: Ranges, length: int, budget: int, most: int, generator: np.random.Generator
) -> list[tuple[int, int]]:
    """Pick ranges in random order while they fit into the budget; always at least one."""
    usable = [(s, min(e, length)) for s, e in ranges if s < min(e, length) and min(e, length) - s < length]
    picked: list[tuple[int, int]] = []
    total = 0
    for at in generator.permutation(len(usable)):
        start, end = usable[at]
        if not picked or (total + end - start <= budget and len(picked) < most):
            picked.append((start, end))
            total += end - start
    return picked


def write_sentinels(
    rows: Array, lengths: Ints, noise: npt.NDArray[np.bool_], sentinels: Array, eos_id: int, pad_id: int
) -> tuple[Ints, Ints]:
    """Return inputs and targets for the tokens that `noise` hides; adjacent hidden tokens are one span."""
    b, t = rows.shape
    first = noise.copy()
    first[:, 1:] &= ~noise[:, :-1]
    start, hidden = np.flatnonzero(first), np.flatnonzero(noise)  # row by row, as in everything below
    spans = first.sum(axis=1)
    number = np.arange(len(start)) - np.repeat(np.cumsum(spans) - spans, spans)  # of a span in its row

    kept = (np.arange(t)[None] < lengths[:, None]) & (~noise | first)
    visible = rows.astype(np.int64)
    visible.reshape(-1)[start] = sentinels[number]
    sizes = kept.sum(axis=1)
    inputs = np.full((b, int(sizes.max(initial=0)) + 1), pad_id, dtype=np.int64)
    inputs[np.arange(inputs.shape[1])[None] < sizes[:, None]] = visible[kept]
    inputs[np.arange(b), sizes] = eos_id

    begins = np.searchsorted(hidden, start)  # where each span begins among the hidden tokens
    sizes = spans + noise.sum(axis=1)
    answers = np.insert(rows.reshape(-1)[hidden], begins, sentinels[number])
    targets = np.full((b, int(sizes.max(initial=0)) + 2), IGNORED, dtype=np.int64)
    targets[np.arange(targets.shape[1])[None] < sizes[:, None]] = answers
    targets[np.arange(b), sizes] = sentinels[spans]
    targets[np.arange(b), sizes + 1] = eos_id
    return inputs, targets
