"""BigBird's pattern: a function of positions, seed and length alone, and what it costs."""

from __future__ import annotations

import pytest
import torch

from heedful.attention import Mask, blocks, make
from heedful.attention.blocks import Pattern, hash_pairs

PATTERN = Pattern(window=3, n_global=2, n_random=3, seed=0)


def test_a_causal_row_of_blocks_does_not_depend_on_the_length() -> None:
    long = PATTERN.matrix(40, causal=True)
    for n in (1, 2, 7, 23):
        assert torch.equal(PATTERN.matrix(n, causal=True), long[:n, :n])
    assert not long.triu(1).any()


@pytest.mark.parametrize("causal", [False, True])
def test_each_block_sees_its_window_the_global_blocks_and_as_many_random_ones(causal: bool) -> None:
    seen = PATTERN.matrix(40, causal)
    for i in range(2, 40):
        window = range(i - 2, i + 1) if causal else range(i - 1, min(40, i + 2))
        near = set(window) | {0, 1}
        row = set(seen[i].nonzero()[:, 0].tolist())
        assert near <= row
        others = i - 4 if causal else 40 - len(near)
        assert len(row - near) == min(3, max(0, others))
    if not causal:
        assert seen[:2].all()
    assert seen.diagonal().all()


def test_no_block_is_counted_twice() -> None:
    for causal in (False, True):
        for n in range(1, 12):
            for row in PATTERN.table(n, n, causal).tolist():
                real = [x for x in row if x >= 0]
                assert len(real) == len(set(real))
                assert max(real) < n


def test_random_blocks_follow_the_seed_and_are_spread_evenly() -> None:
    other = Pattern(3, 2, 3, seed=1)
    assert not torch.equal(PATTERN.matrix(40, False), other.matrix(40, False))
    assert torch.equal(PATTERN.matrix(40, False), Pattern(3, 2, 3, seed=0).matrix(40, False))
    import numpy as np

    luck = hash_pairs(3, np.arange(300)[:, None], np.arange(300)[None])
    assert luck.shape == (300, 300)
    assert abs(luck.mean() - 0.5) < 5 * (1 / 12 / 90_000) ** 0.5
    assert abs(np.corrcoef(luck[:-1].ravel(), luck[1:].ravel())[0, 1]) < 0.02
    assert abs(np.corrcoef(luck[:, :-1].ravel(), luck[:, 1:].ravel())[0, 1]) < 0.02


def test_the_reach_is_that_of_the_pattern() -> None:
    mechanism = make("bigbird", n_heads=1, d_head=4, max_len=64, block=4, n_global=1, n_random=1)
    weights = mechanism.weights(torch.randn(1, 1, 37, 4), torch.randn(1, 1, 37, 4), Mask(causal=True))
    for t in range(37):
        assert mechanism.reaches(t, 37).tolist() == (weights[0, 0, t] > 0).nonzero()[:, 0].tolist()


def test_the_number_of_products_is_linear_in_length(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = 0
    original = blocks.BlockChunk.weights

    def counted(self: blocks.BlockChunk, *args: object) -> torch.Tensor:
        nonlocal scores
        weights = original(self, *args)  # type: ignore[arg-type]
        scores += weights.numel()
        return weights

    monkeypatch.setattr(blocks.BlockChunk, "weights", counted)
    mechanism = make("bigbird", n_heads=1, d_head=4, max_len=4096, block=16)
    counts = []
    for t in (1024, 2048, 4096):
        scores = 0
        mechanism(*torch.randn(3, 1, 1, t, 4), Mask(causal=True))
        counts.append(scores)
    assert counts == [t * 8 * 16 for t in (1024, 2048, 4096)]


def test_rows_of_different_length_have_their_own_random_blocks() -> None:
    """A pattern drawn for the longest row of a batch would make a row's output depend on its neighbors."""
    mechanism = make("bigbird", n_heads=1, d_head=4, max_len=64, block=2, window=1, n_global=1, n_random=1)
    lengths = torch.tensor([[33], [64], [20]])
    mask = Mask(keys=torch.arange(64) < lengths)
    tables = mechanism.tables(mask, 3, 64)
    for row, length in enumerate((33, 64, 20)):
        own = -(-length // 2)
        matrix = mechanism.pattern.table(own, own, False)
        assert torch.equal(tables[row, :own, : matrix.shape[1]], matrix)
        assert tables[row].max() < own


def test_a_table_that_inference_made_serves_training() -> None:
    mechanism = make("bigbird", n_heads=1, d_head=4, max_len=512, block=2, window=3, n_random=2, seed=97)
    q, k, v = torch.randn(3, 1, 1, 512, 4)
    with torch.inference_mode():
        mechanism(q, k, v, Mask(causal=True))
    v.requires_grad_()
    mechanism(q, k, v, Mask(causal=True)).sum().backward()
    assert v.grad is not None
