"""Pack documents into rows of equal length, so that almost nothing in a batch is padding.

A row records the document of each of its tokens: `Mask.segments` keeps documents from attending to each
other, and positions restart in each. Whole documents go where they leave the least room (best fit, the
longest first), because a document cut in two loses the context of its second half (Ding et al. 2024, Fewer
Truncations Improve Language Modeling); only a document longer than a row is cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

PADDING = -1
"""The piece number of padding."""


@dataclass(frozen=True)
class Packing:
    """Pieces of documents, and the row of each."""

    begins: Ints
    """[pieces], the index of a piece's first token among all ids"""
    sizes: Ints
    """[pieces]"""
    documents: Ints
    """[pieces], the document of each piece"""
    firsts: Ints
    """[rows + 1], the first piece of each row"""
    block: int
    cut: int
    """Number of documents of which a part is left out."""

    def __len__(self) -> int:
        return len(self.firsts) - 1

    @property
    def lengths(self) -> Ints:
        """[rows], the number of tokens in each row"""
        ends: Ints = np.concatenate([[0], np.cumsum(self.sizes)])
        lengths: Ints = ends[self.firsts[1:]] - ends[self.firsts[:-1]]
        return lengths

    def has_several_documents(self, rows: Ints) -> bool:
        return bool((self.firsts[rows + 1] - self.firsts[rows] > 1).any())

    def locate_tokens(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return the index of each token of some rows among all ids, and its piece: [b, longest] each.

        Padding has index 0 and piece `PADDING`.
        """
        counts = self.firsts[rows + 1] - self.firsts[rows]
        pieces = concatenate_ranges(self.firsts[rows], counts)
        sizes = self.sizes[pieces]
        tokens = concatenate_ranges(self.begins[pieces], sizes)
        lengths = np.add.reduceat(sizes, np.cumsum(counts) - counts) if len(rows) else counts
        width = int(lengths.max(initial=0))
        if (lengths == width).all():
            return tokens.reshape(len(rows), width), np.repeat(pieces, sizes).reshape(len(rows), width)
        taken = np.arange(width) < lengths[:, None]
        indices, piece_of = np.zeros(taken.shape, np.int64), np.full(taken.shape, PADDING, np.int64)
        indices[taken], piece_of[taken] = tokens, np.repeat(pieces, sizes)
        return indices, piece_of


def concatenate_ranges(starts: Ints, counts: Ints) -> Ints:
    """Return start, start + 1, ... of each range, `count` numbers long, one after the other."""
    ends = np.cumsum(counts)
    ranges: Ints = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return ranges


def pack(offsets: npt.NDArray[Any], block: int, *, shift: int = 0, together: bool = True) -> Packing:
    """Pack documents, given where each begins and ends among all ids, into rows of at most `block` tokens.

    With `shift` 1 a position holds a token and its successor, as a language model reads and predicts them: a
    document of n tokens takes n - 1 positions, and each token but the first is predicted exactly once, even
    when the document is cut. Documents without a position are left out. `together=False` gives every document
    a row of its own, cut at `block`.
    """
    if block < 1:
        raise ValueError(f"block is {block}; it must be at least 1")
    offsets = np.asarray(offsets, np.int64)
    whole = np.diff(offsets) - shift
    real = np.flatnonzero(whole > 0)
    whole, starts = whole[real], offsets[real]
    if not together:
        firsts = np.arange(len(real) + 1)
        return Packing(starts, np.minimum(whole, block), real, firsts, block, int((whole > block).sum()))
    counts = -(-whole // block)
    number = concatenate_ranges(np.zeros(len(real), np.int64), counts)
    begins = np.repeat(starts, counts) + number * block
    sizes = np.minimum(np.repeat(whole, counts) - number * block, block)
    order, firsts = best_fit(sizes, block)
    return Packing(begins[order], sizes[order], np.repeat(real, counts)[order], firsts, block, 0)


def best_fit(sizes: Ints, block: int) -> tuple[Ints, Ints]:
    """Arrange pieces in rows; return the pieces in the order of their rows, and where each row begins.

    The longest piece comes first, and each goes into the fullest row that has room for it. `some` has a bit
    for each amount of room that a row has, so that finding that row is one operation.
    """
    order = np.argsort(-sizes, kind="stable")
    rows = np.empty(len(sizes), np.int64)
    room: list[list[int]] = [[] for _ in range(block + 1)]
    some, count = 0, 0
    for piece, size in enumerate(sizes[order].tolist()):
        fitting = some >> size
        if fitting:
            left = size + (fitting & -fitting).bit_length() - 1
            row = room[left].pop()
            if not room[left]:
                some &= ~(1 << left)
            left -= size
        else:
            row, left = count, block - size
            count += 1
        rows[piece] = row
        if left:
            room[left].append(row)
            some |= 1 << left
    by_row = np.argsort(rows, kind="stable")
    return order[by_row], np.searchsorted(rows[by_row], np.arange(count + 1))
