"""Attention in chunks: weights that are kept and weights that are made again give the same gradients."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heedful.attention import Mask, chunked
from heedful.attention.chunked import ChunkedAttention, Dot
from heedful.attention.softmax import dot_scores

B, H, T, D = 3, 2, 9, 4
KEYS = torch.ones(B, T, dtype=torch.bool)
KEYS[0, 6:] = False
KEYS[1] = False  # nothing to attend
MASKS = {
    "none": Mask(),
    "causal": Mask(causal=True),
    "padded": Mask(causal=True, keys=KEYS),
    "packed": Mask(causal=True, segments=torch.tensor([[0, 0, 0, 1, 1, 2, 2, 2, 2]]).expand(B, -1)),
    "prefix": Mask(causal=True, prefix=2),
    "behind": Mask(causal=True, offset=3),
}


def passes(mask: Mask, p: float, biased: bool) -> list[Tensor]:
    """Output and gradients of one call."""
    torch.manual_seed(0)
    t, s = (4, T) if mask.offset else (T, T + mask.prefix)
    q, k, v = (torch.randn(B, n, H, D, dtype=torch.float64).transpose(1, 2) for n in (t, s, s))
    bias = torch.randn(1, H, t, s, dtype=torch.float64) if biased else None
    given = [x.requires_grad_() for x in (q, k, v, bias) if x is not None]
    out: Tensor = ChunkedAttention.apply(Dot, q, k, v, None, bias, mask, 0.4, p, 5)  # type: ignore[no-untyped-call]
    if p == 0:
        plain = mask.softmax(dot_scores(q, k, 0.4, bias)) @ v
        assert (out - plain).abs().max() < 1e-12
    weights = torch.randn(out.shape, dtype=torch.float64)
    return [out.detach(), *torch.autograd.grad((out * weights).sum(), given)]


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.3])
@pytest.mark.parametrize("mask", MASKS)
def test_kept_weights_have_the_gradients_of_weights_made_again(
    mask: str, p: float, biased: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunked, "CAUSAL_ROWS", 4)
    kept = passes(MASKS[mask], p, biased)
    monkeypatch.setattr(chunked, "KEPT", 0)
    again = passes(MASKS[mask], p, biased)
    assert len(kept) == len(again)
    for ours, theirs in zip(kept, again, strict=True):
        assert (ours - theirs).abs().max() < 1e-12


@pytest.mark.parametrize("size", [40, 1])
def test_the_size_of_chunks_changes_nothing(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for mask in MASKS.values():
        whole = passes(mask, 0.0, biased=True)
        with monkeypatch.context() as patch:
            patch.setattr(chunked, "CHUNK", size)
            parts = passes(mask, 0.0, biased=True)
        for ours, theirs in zip(whole, parts, strict=True):
            assert (ours - theirs).abs().max() < 1e-12
