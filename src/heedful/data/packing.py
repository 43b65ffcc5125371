"""Documents side by side in rows of equal length, so that almost nothing of a batch is padding.

A row says to which document each of its places belongs: `Mask.segments` keeps them from seeing each other,
and positions begin anew in each. Whole documents are placed where they leave the least room (best fit, the
longest first), because a document cut in two loses the context of its second half (Ding et al. 2024, Fewer
Truncations Improve Language Modeling); only one that is longer than a row is cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

PADDING = -1
"""The document that padding belongs to."""


@dataclass(frozen=True)
class Packing:
    """Pieces of documents, and which of them stand in which row."""

    begins: Ints
    """[pieces], the place of a piece's first token among all ids"""
    sizes: Ints
    """[pieces]"""
    documents: Ints
    """[pieces], the document that a piece is of"""
    firsts: Ints
    """[rows + 1], the first piece of each row"""
    block: int
    cut: int
    """Documents of which a part is left out."""

    def __len__(self) -> int:
        return len(self.firsts) - 1

    @property
    def lengths(self) -> Ints:
        """The places that are taken in each row."""
        ends: Ints = np.concatenate([[0], np.cumsum(self.sizes)])
        found: Ints = ends[self.firsts[1:]] - ends[self.firsts[:-1]]
        return found

    def has_several_documents(self, rows: Ints) -> bool:
        """Whether some of these rows hold several pieces."""
        return bool((self.firsts[rows + 1] - self.firsts[rows] > 1).any())

    def locate_tokens(self, rows: Ints) -> tuple[Ints, Ints]:
        """Where each token of some rows stands among all ids, and its piece: [b, longest] each.

        Padding has place 0 and piece `PADDING`.
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
        where, own = np.zeros(taken.shape, np.int64), np.full(taken.shape, PADDING, np.int64)
        where[taken], own[taken] = tokens, np.repeat(pieces, sizes)
        return where, own


def concatenate_ranges(starts: Ints, counts: Ints) -> Ints:
    """start, start + 1, ... of each run, `count` numbers long, one after the other."""
    ends = np.cumsum(counts)
    found: Ints = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
    return found


def pack(offsets: npt.NDArray[Any], block: int, *, shift: int = 0, together: bool = True) -> Packing:
    """Place documents, given where each begins and ends among all ids, into rows of at most `block` places.

    With `shift` 1 a place stands for a token and its successor, as a language model reads and predicts them:
    a document of n tokens takes n - 1 places, and each token but the first is predicted exactly once, also
    when the document is cut. Documents without a place are left out. `together=False` gives every document
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
    """Arrange pieces in rows: the pieces in the order of their rows, and where each row begins among them.

    The longest first, each into the fullest row that has room. A bit for each amount of room that some row
    has makes finding it one operation.
    """
    order = np.argsort(-sizes, kind="stable")
    rows = np.empty(len(sizes), np.int64)
    room: list[list[int]] = [[] for _ in range(block + 1)]
    some, count = 0, 0
    for place, size in enumerate(sizes[order].tolist()):
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
        rows[place] = row
        if left:
            room[left].append(row)
            some |= 1 << left
    by_row = np.argsort(rows, kind="stable")
    return order[by_row], np.searchsorted(rows[by_row], np.arange(count + 1))
