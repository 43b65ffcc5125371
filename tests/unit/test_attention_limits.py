"""Exact limits: what one mechanism becomes when it is pushed to the end of its range."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.attention import Mask, Mechanism, make, softmax
from heedful.errors import UserError


def sequence(length: int = 24, heads: int = 2, width: int = 8, seed: int = 0) -> Tensor:
    """q, k and v [3, b, h, t, d] in float64."""
    return torch.randn(
        3, 2, heads, length, width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def build(name: str, max_len: int = 24, width: int = 8, **options: object) -> Mechanism:
    return make(name, n_heads=2, d_head=width, max_len=max_len, **options).double()


PADDED = torch.arange(24) < torch.tensor([[17], [24]])
MASKS = {
    "free": Mask(),
    "causal": Mask(causal=True),
    "padded": Mask(keys=PADDED),
    "causal-padded-left": Mask(causal=True, keys=PADDED.flip(1)),
}


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize(
    "options",
    [
        {"block": 4, "window": 13, "n_global": 0, "n_random": 0},
        {"block": 5, "window": 1, "n_global": 5, "n_random": 0},
        {"block": 3, "window": 1, "n_global": 1, "n_random": 7},
        {"block": 64},
    ],
    ids=str,
)
def test_bigbird_that_sees_all_blocks_is_softmax(options: dict[str, int], mask: str) -> None:
    q, k, v = sequence()
    real = torch.ones(2, 24, dtype=torch.bool) if MASKS[mask].keys is None else MASKS[mask].keys
    ours = build("bigbird", **options)(q, k, v, MASKS[mask])
    soft = build("softmax")(q, k, v, MASKS[mask])
    torch.testing.assert_close(ours.transpose(1, 2)[real], soft.transpose(1, 2)[real])


@pytest.mark.parametrize("share", ["nothing", "heads", "all"])
def test_linformer_with_as_many_slots_as_positions_and_no_mixing_is_softmax(share: str) -> None:
    q, k, v = sequence()
    mechanism = build("linformer", rank=24, share=share)
    with torch.no_grad():
        for mix in mechanism.parameters():
            mix.copy_(torch.eye(24))
    torch.testing.assert_close(mechanism(q, k, v, Mask()), build("softmax")(q, k, v, Mask()))
    prefixed = [torch.cat([x[:, :, :3], x], 2) for x in (k, v)]
    torch.testing.assert_close(
        mechanism(q, *prefixed, Mask(prefix=3)), build("softmax")(q, *prefixed, Mask(prefix=3))
    )


def test_linformers_shared_parts_are_counted() -> None:
    def count(share: str) -> int:
        return sum(p.numel() for p in build("linformer", rank=4, share=share).parameters())

    assert (count("nothing"), count("heads"), count("all")) == (4 * 24 * 4, 2 * 24 * 4, 24 * 4)


@pytest.mark.parametrize("name", ["linformer", "synthesizer"])
def test_more_positions_than_parameters_are_refused(name: str) -> None:
    q, k, v = sequence(25)
    with pytest.raises(UserError, match=r"24 positions \(max_len\), but"):
        build(name)(q, k, v, Mask())


@pytest.mark.parametrize("mask", MASKS)
def test_softmax_as_it_cools_is_argmax(mask: str) -> None:
    """Ties apart: here no two scores are equal. At scale S the other keys keep at most n e^(-S gap)."""
    q, k, v = sequence()
    hard = build("argmax", scale=1.0)(q, k, v, MASKS[mask])
    real = torch.ones(2, 24, dtype=torch.bool) if MASKS[mask].keys is None else MASKS[mask].keys
    errors = [
        float((build("softmax", scale=s)(q, k, v, MASKS[mask]) - hard).transpose(1, 2)[real].abs().max())
        for s in (1.0, 100.0, 1e5)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 1e-9


def test_argmax_gives_a_tie_to_the_first_where_softmax_shares_it() -> None:
    q = torch.ones(1, 1, 1, 2)
    k = torch.tensor([[0.0, 1.0], [1.0, 1.0], [1.0, 1.0], [2.0, 0.0]])[None, None]
    v = torch.eye(4)[None, None, :, :2] + torch.arange(4.0)[:, None]
    sizes = {"n_heads": 1, "d_head": 2, "max_len": 4, "scale": 1e4}
    assert torch.equal(make("argmax", **sizes)(q, k, v, Mask())[0, 0, 0], v[0, 0, 1])
    torch.testing.assert_close(make("softmax", **sizes)(q, k, v, Mask())[0, 0, 0], v[0, 0, 1:].mean(0))
    hidden = Mask(keys=torch.tensor([[True, False, True, True]]))
    assert torch.equal(make("argmax", **sizes)(q, k, v, hidden)[0, 0, 0], v[0, 0, 2])


def test_argmax_of_one_three_two() -> None:
    k = torch.tensor([1.0, 3.0, 2.0])[None, None, :, None]
    weights = make("argmax", n_heads=1, d_head=1, max_len=3).weights(torch.ones(1, 1, 1, 1), k, Mask())
    assert weights.flatten().tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("mask", MASKS)
def test_zero_after_renormalized_is_minus_infinity_before(mask: str) -> None:
    q, k, v = sequence().requires_grad_()
    ours = build("zero_after", unsafe=True, renormalize=True)
    soft = build("softmax")
    got, wanted = ours(q, k, v, MASKS[mask]), soft(q, k, v, MASKS[mask])
    torch.testing.assert_close(got, wanted)
    upstream = torch.randn_like(got)
    for a, b in zip(
        torch.autograd.grad(got, (q, k, v), upstream),
        torch.autograd.grad(wanted, (q, k, v), upstream),
        strict=True,
    ):
        torch.testing.assert_close(a, b)
    torch.testing.assert_close(
        build("zero_after", unsafe=True)(q, k, v, Mask()), soft(q, k, v, Mask()), msg="no future, no leak"
    )


def test_additive_is_its_formula() -> None:
    q, k, v = sequence(9)
    mechanism = build("additive", d_hidden=5, scale=0.7)
    scores = torch.zeros(2, 2, 9, 9, dtype=torch.float64)
    for head in range(2):
        for i in range(9):
            for j in range(9):
                hidden = q[:, head, i] @ mechanism.w1_q[head] + k[:, head, j] @ mechanism.w1_k[head]
                scores[:, head, i, j] = 0.7 * (torch.tanh(hidden) @ mechanism.w2[head])
    torch.testing.assert_close(mechanism(q, k, v, Mask()), scores.softmax(-1) @ v)


def test_a_synthesizer_never_looks_at_its_keys() -> None:
    q, k, v = sequence(9)
    mechanism = build("synthesizer")
    assert torch.equal(mechanism(q, k, v, Mask()), mechanism(q, k.flip(2) + 1.0, v, Mask()))
    assert not torch.equal(mechanism(q, k, v, Mask()), mechanism(q.flip(2), k, v, Mask()))


@pytest.mark.parametrize("causal", [False, True])
def test_softmax_is_torchs_multihead_attention(causal: bool) -> None:
    torch.manual_seed(0)
    theirs = nn.MultiheadAttention(16, 4, batch_first=True, dtype=torch.float64)
    x = torch.randn(3, 11, 16, dtype=torch.float64)
    padding = torch.arange(11) >= torch.tensor([[11], [7], [4]])
    block = torch.ones(11, 11, dtype=torch.bool).triu(1) if causal else None
    wanted, weights = theirs(x, x, x, key_padding_mask=padding, attn_mask=block, average_attn_weights=False)
    projected = F.linear(x, theirs.in_proj_weight, theirs.in_proj_bias)
    q, k, v = projected.view(3, 11, 3, 4, 4).permute(2, 0, 3, 1, 4)
    mask = Mask(causal=causal, keys=~padding)
    ours = make("softmax", n_heads=4, d_head=4, max_len=11)
    out = theirs.out_proj(ours(q, k, v, mask).transpose(1, 2).flatten(2))
    torch.testing.assert_close(out, wanted)
    torch.testing.assert_close(ours.weights(q, k, mask), weights)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_softmax_in_chunks_is_torchs_kernel(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a trainable bias ours goes in chunks: values and every gradient against torch's own, by size."""
    monkeypatch.setattr(softmax, "SHORT", 0)
    for b, h, t, s in ((2, 3, 40, 40), (1, 2, 700, 700), (3, 2, 5, 90)):
        generator = torch.Generator().manual_seed(t)
        q = torch.randn(b, h, t, 8, generator=generator, dtype=dtype, requires_grad=True)
        k, v = (torch.randn(b, h, s, 8, generator=generator, dtype=dtype, requires_grad=True) for _ in "kv")
        bias = torch.randn(1, h, t, s, generator=generator, dtype=dtype, requires_grad=True)
        causal = t == s
        block = torch.ones(t, s, dtype=torch.bool).tril() if causal else torch.ones(t, s, dtype=torch.bool)
        wanted = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.masked_fill(~block, float("-inf")))
        got = make("softmax", n_heads=h, d_head=8, max_len=s)(q, k, v, Mask(causal=causal), bias)
        upstream = torch.randn(got.shape, generator=generator, dtype=dtype)
        torch.testing.assert_close(got, wanted)
        ours = torch.autograd.grad(got, (q, k, v, bias), upstream)
        theirs = torch.autograd.grad(wanted, (q, k, v, bias), upstream)
        for a, b_ in zip(ours, theirs, strict=True):
            torch.testing.assert_close(a, b_, atol=1e-5 if dtype == torch.float32 else 1e-12, rtol=1e-5)


@pytest.mark.parametrize("name", ["softmax", "additive", "bigbird", "performer", "argmax"])
def test_float32_is_near_float64_on_a_longer_sequence(name: str) -> None:
    torch.manual_seed(0)
    mechanism = make(name, n_heads=2, d_head=16, max_len=300)
    q, k, v = torch.randn(3, 2, 2, 300, 16, dtype=torch.float64)
    mask = Mask(causal=True, keys=torch.arange(300) < torch.tensor([[300], [211]]))
    single = mechanism(q.float(), k.float(), v.float(), mask)
    torch.testing.assert_close(single.double(), mechanism.double()(q, k, v, mask), atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("name", ["argmax", "additive", "linformer", "bigbird", "performer", "synthesizer"])
def test_under_autocast_sums_are_made_in_32_bits(name: str) -> None:
    """q, k and v come in 16 bits, parameters in 32: the output is that of 32 bits, rounded once."""
    torch.manual_seed(0)
    mechanism = make(name, n_heads=2, d_head=8, max_len=40)
    mask = Mask(causal=mechanism.causal)
    q, k, v = (torch.randn(2, 2, 40, 8).bfloat16().requires_grad_() for _ in range(3))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = mechanism(q, k, v, mask)
    assert out.dtype == torch.bfloat16
    assert torch.equal(out, mechanism(q.float(), k.float(), v.float(), mask).bfloat16())
    out.float().square().sum().backward()
    assert q.grad is not None
    assert q.grad.isfinite().all()
