"""Dropout: the right mean, the right share, decided by torch's seed, off in evaluation."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from heedful.attention import MECHANISMS, Mask, make
from heedful.attention.dropout import Dropout, dropout

OPTIONS = {
    "bigbird": {"block": 2},
    "linformer": {"rank": 3},
    "performer": {"features": 16},
    "zero_after": {"unsafe": True},
    "zero_scores": {"unsafe": True},
}


@pytest.mark.parametrize("name", MECHANISMS)
def test_dropout_of_attention_keeps_the_mean_and_is_off_in_evaluation(name: str) -> None:
    def build(p: float) -> torch.nn.Module:
        torch.manual_seed(1)
        return make(name, n_heads=2, d_head=4, max_len=8, dropout=p, **OPTIONS.get(name, {})).double()

    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 5, 4, dtype=torch.float64).repeat(1, 4000, 1, 1, 1)
    mask = Mask(causal=MECHANISMS[name].causal)
    torch.manual_seed(3)
    out = build(0.25)(q, k, v, mask)
    plain = build(0.0)(q[:1], k[:1], v[:1], mask)
    spread = out.std(0, keepdim=True)
    assert spread.min() > 0
    # 40 means, each within five standard errors.
    assert ((out.mean(0, keepdim=True) - plain).abs() < 5.0 * spread / 4000**0.5).all()
    torch.testing.assert_close(build(0.25).eval()(q[:1], k[:1], v[:1], mask), plain)


@pytest.mark.parametrize("name", MECHANISMS)
def test_the_seed_decides_what_is_dropped(name: str) -> None:
    mechanism = make(name, n_heads=2, d_head=4, max_len=16, dropout=0.5, **OPTIONS.get(name, {}))
    q, k, v = torch.randn(3, 2, 2, 9, 4)
    outs = []
    for seed in (7, 7, 8):
        torch.manual_seed(seed)
        outs.append(mechanism(q, k, v, Mask()))
    assert torch.equal(outs[0], outs[1])
    assert not torch.equal(outs[0], outs[2])


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_the_share_of_zeros_and_the_scale_are_right(p: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(1_000_003, requires_grad=True)
    out = dropout(x, p)
    share = float((out == 0).double().mean())
    assert abs(share - p) < 5.0 * (p * (1 - p) / 1e6) ** 0.5
    assert out[out > 0].unique().tolist() == pytest.approx([1 / (1 - p)], rel=1e-4)
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


def test_zeros_are_independent_of_their_neighbours() -> None:
    torch.manual_seed(0)
    kept = (dropout(torch.ones(1_000_000), 0.3) > 0).double() - 0.7
    for lag in (1, 2, 3, 4, 8, 64):
        assert abs(float((kept[lag:] * kept[:-lag]).mean())) < 5.0 * 0.21 / 1000


def test_dropout_of_nothing_and_of_everything() -> None:
    x = torch.randn(100)
    assert dropout(x, 0.0) is x
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 1.0).abs().max() == 0
    assert torch.equal(Dropout(0.5).eval()(x), x)


def test_attention_dropout_has_the_distribution_of_torchs_own() -> None:
    """The same mean and the same variance of every output, over many draws."""
    q, k, v = torch.randn(3, 1, 1, 6, 4, generator=torch.Generator().manual_seed(2))
    q, k, v = (x.expand(20_000, -1, -1, -1) for x in (q, k, v))
    torch.manual_seed(0)
    ours = make("softmax", n_heads=1, d_head=4, max_len=6, dropout=0.2)(q, k, v, Mask(causal=True))
    theirs = F.scaled_dot_product_attention(q, k, v, dropout_p=0.2, is_causal=True)
    assert (ours.mean(0) - theirs.mean(0)).abs().max() < 0.03
    torch.testing.assert_close(ours.var(0), theirs.var(0), rtol=0.1, atol=1e-3)
