"""Packing: nothing is lost, nothing is doubled, little is wasted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.data.packing import PADDING, Packing, pack

LENGTHS = st.lists(st.integers(0, 40), min_size=1, max_size=30)


def offsets(lengths: list[int]) -> np.ndarray:
    return np.cumsum([0, *lengths])


def read(packing: Packing) -> list[list[int]]:
    """The places of every row, padding left out."""
    places, pieces = packing.locate_tokens(np.arange(len(packing)))
    return [own[piece != PADDING].tolist() for own, piece in zip(places, pieces, strict=True)]


@given(LENGTHS, st.integers(1, 12), st.integers(0, 1))
@settings(deadline=None)
def test_each_token_is_predicted_exactly_once(lengths: list[int], block: int, shift: int) -> None:
    packing = pack(offsets(lengths), block, shift=shift)
    found = sorted(place + shift for row in read(packing) for place in row)
    starts = set(offsets(lengths)[:-1][np.array(lengths) > 0].tolist()) if shift else set()
    assert found == [place for place in range(sum(lengths)) if place not in starts]


@given(LENGTHS, st.integers(1, 12))
@settings(deadline=None)
def test_only_a_document_longer_than_a_row_is_divided(lengths: list[int], block: int) -> None:
    packing = pack(offsets(lengths), block)
    pieces = np.bincount(packing.documents, minlength=len(lengths))
    assert pieces.tolist() == [-(-n // block) for n in lengths]
    assert packing.lengths.max(initial=0) <= block
    assert packing.cut == 0


@given(LENGTHS, st.integers(2, 12))
@settings(deadline=None)
def test_at_most_one_row_is_half_empty(lengths: list[int], block: int) -> None:
    packing = pack(offsets(lengths), block)
    assert (2 * packing.lengths <= block).sum() <= 1


def test_a_row_names_the_piece_of_each_place() -> None:
    packing = pack(offsets([3, 2, 4]), 5)
    places, pieces = packing.locate_tokens(np.arange(len(packing)))
    documents = np.where(pieces == PADDING, PADDING, packing.documents[pieces])
    rows = sorted(zip(places.tolist(), documents.tolist(), strict=True))
    assert rows == [([0, 1, 2, 3, 4], [0, 0, 0, 1, 1]), ([5, 6, 7, 8, 0], [2, 2, 2, 2, PADDING])]
    assert packing.has_several_documents(np.arange(2))
    alone = int(np.flatnonzero(packing.lengths == 4)[0])
    assert not packing.has_several_documents(np.array([alone]))


def test_alone_every_document_has_a_row_and_is_cut() -> None:
    packing = pack(offsets([3, 0, 9, 1]), 4, together=False)
    assert read(packing) == [[0, 1, 2], [3, 4, 5, 6], [12]]
    assert packing.documents.tolist() == [0, 2, 3]
    assert packing.cut == 1


def test_no_rows_are_no_places() -> None:
    packing = pack(offsets([3]), 4)
    places, pieces = packing.locate_tokens(np.empty(0, np.int64))
    assert places.shape == pieces.shape == (0, 0)
    assert len(pack(offsets([1, 1]), 4, shift=1)) == 0
    with pytest.raises(ValueError, match="block is 0"):
        pack(offsets([3]), 0)
