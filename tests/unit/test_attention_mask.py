"""The mask: who sees whom, which documents there are, and how rows come apart."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heedful.attention import Mask
from heedful.attention.documents import attend_each_document
from heedful.attention.mask import masked_softmax


def by_hand(mask: Mask, b: int, t: int, s: int) -> torch.Tensor:
    """The definition, one pair at a time."""
    seen = torch.zeros(b, t, s, dtype=torch.bool)
    for row in range(b):
        for i in range(t):
            for j in range(s):
                text = j - mask.prefix
                seen[row, i, j] = text < 0 or (
                    (not mask.causal or text <= i + mask.offset)
                    and (mask.keys is None or bool(mask.keys[row, text]))
                    and (
                        mask.segments is None
                        or bool(mask.segments[row, text] == mask.segments[row, i + mask.offset])
                    )
                )
    return seen


@st.composite
def masks(draw: st.DrawFn) -> tuple[Mask, int, int]:
    """A mask of two rows, its number of queries and of text keys."""
    n = draw(st.integers(1, 7))
    offset = draw(st.integers(0, n - 1))
    keys = torch.tensor(
        draw(st.lists(st.lists(st.booleans(), min_size=n, max_size=n), min_size=2, max_size=2))
    )
    jumps = torch.tensor(
        draw(st.lists(st.lists(st.integers(0, 1), min_size=n, max_size=n), min_size=2, max_size=2))
    )
    return (
        Mask(
            causal=draw(st.booleans()),
            keys=draw(st.sampled_from([None, keys])),
            segments=draw(st.sampled_from([None, jumps.cumsum(1)])),
            prefix=draw(st.integers(0, 2)),
            offset=offset,
        ),
        n - offset,
        n,
    )


@settings(max_examples=150, deadline=None)
@given(masks())
def test_the_pattern_is_the_definition(drawn: tuple[Mask, int, int]) -> None:
    mask, t, n = drawn
    s = n + mask.prefix
    allowed = mask.allowed(t, s)
    pattern = torch.ones(2, 1, t, s, dtype=torch.bool) if allowed is None else allowed.expand(2, 1, t, s)
    assert torch.equal(pattern[:, 0], by_hand(mask, 2, t, s))


@settings(max_examples=100, deadline=None)
@given(masks())
def test_documents_taken_apart_and_put_together_give_the_whole(drawn: tuple[Mask, int, int]) -> None:
    """With attention that depends on no position, taking rows apart must change nothing at real queries."""
    mask, t, n = drawn
    generator = torch.Generator().manual_seed(n)
    q = torch.randn(2, 3, t, 4, generator=generator, dtype=torch.float64)
    k, v = torch.randn(2, 2, 3, n + mask.prefix, 4, generator=generator, dtype=torch.float64)

    def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: Mask) -> torch.Tensor:
        return mask.softmax(q @ k.mT) @ v

    out, whole = attend_each_document(attend, q, k, v, mask), attend(q, k, v, mask)
    real = torch.ones(2, n, dtype=torch.bool) if mask.keys is None else mask.keys
    asked = real[:, mask.offset : mask.offset + t]
    torch.testing.assert_close(out.transpose(1, 2)[asked], whole.transpose(1, 2)[asked])


def test_documents_begin_and_end_at_real_positions() -> None:
    keys = torch.tensor([[0, 1, 1, 0, 1, 0], [1, 1, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0]], dtype=torch.bool)
    segments = torch.tensor([[0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 2], [0, 0, 0, 0, 0, 0]])
    mask = Mask(keys=keys, segments=segments)
    assert mask.documents(3, 6) == [(0, 1, 3), (0, 4, 5), (1, 0, 4), (1, 4, 5), (1, 5, 6)]
    assert mask.positions(3, 6).tolist() == [[0, 0, 1, 0, 0, 0], [0, 1, 2, 3, 0, 0], [0] * 6]
    assert Mask().documents(2, 5) == [(0, 0, 5), (1, 0, 5)]
    assert Mask(keys=keys[1:]).documents(2, 6) == [(0, 0, 6)]


def test_a_document_in_pieces_is_refused_unless_only_padding_shares_its_number() -> None:
    keys = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]], dtype=torch.bool)
    pieces = torch.tensor([[0, 0, 1, 1, 2], [4, 4, 7, 7, 4]])
    assert Mask(keys=keys, segments=pieces).documents(2, 5) == [
        (0, 0, 2),
        (0, 2, 4),
        (0, 4, 5),
        (1, 0, 2),
        (1, 2, 4),
    ]
    with pytest.raises(ValueError, match="document 4 of row 1 is in pieces"):
        Mask(segments=pieces).documents(2, 5)
    assert Mask(segments=pieces).allowed(5, 5)[1, 0, 0].tolist() == [True, True, False, False, True]


def test_left_padding_is_noticed_and_rows_without_keys_are_not() -> None:
    assert not Mask().padded_left()
    assert not Mask(keys=torch.tensor([[True, False], [False, False]])).padded_left()
    assert Mask(keys=torch.tensor([[True, False], [False, True]])).padded_left()


def test_a_row_of_nothing_is_zero_and_leaves_the_gradient_finite() -> None:
    scores = torch.randn(1, 1, 2, 3, requires_grad=True)
    weights = masked_softmax(scores, torch.tensor([[True, False, True], [False, False, False]]))
    assert weights[0, 0, 1].abs().max() == 0
    assert weights[0, 0, 0].detach().sum().item() == 1.0
    weights.square().sum().backward()
    assert scores.grad is not None
    assert scores.grad.isfinite().all()


def test_keys_may_be_zeros_and_ones_as_tokenizers_give_them() -> None:
    keys = torch.tensor([[1, 1, 0]])
    assert Mask(keys=keys).allowed(3, 3).tolist() == [[[[True, True, False]]]]
    assert Mask(keys=keys).documents(1, 3) == [(0, 0, 2)]
