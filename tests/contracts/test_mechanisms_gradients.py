"""Gradients, weights, options and refusals: the second half of the contract of every mechanism."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heedful.attention import MECHANISMS, Mask
from heedful.attention import find_capable as able_names
from heedful.attention.mechanism import CAPABILITIES
from heedful.contracts.attention_cases import (
    CASES,
    Case,
    able,
    cases,
    close,
    gradient,
    inputs,
    lengths_mask,
    masks,
    real_rows,
    segments_of,
)
from heedful.contracts.mechanisms import check_gradients

pytestmark = pytest.mark.usefixtures("cut")

# --- gradients and weights ---


def differentiable(case: Case) -> bool:
    """A straight-through gradient is not the function's: it has its own test."""
    return not case.options.get("straight_through")


@pytest.mark.parametrize("case", cases(differentiable), ids=str)
def test_gradients_agree_with_finite_differences(case: Case) -> None:
    for name in masks(case):
        check_gradients(case, name)


@pytest.mark.parametrize("case", cases(differentiable), ids=str)
def test_every_single_gradient_agrees_with_finite_differences(case: Case) -> None:
    mechanism = case.build()
    q, k, v = (x[:1, :, :4].detach().requires_grad_() for x in inputs(4))
    mask = Mask(causal=case.kind.causal)
    assert torch.autograd.gradcheck(lambda q, k, v: mechanism(q, k, v, mask), (q, k, v))


@pytest.mark.parametrize("case", able("bias"), ids=str)
def test_a_bias_is_added_to_the_scores_and_trained(case: Case) -> None:
    if not differentiable(case):
        return
    mechanism = case.build()
    for rows in (1, 2):
        q, k, v = inputs(5, grad=True)
        bias = torch.randn(rows, 2, 5, 5, dtype=torch.float64, requires_grad=True)
        mask = Mask(causal=True, keys=lengths_mask([3, 5], 5))
        out = mechanism(q, k, v, mask, bias)
        assert not torch.allclose(out, mechanism(q, k, v, mask))
        close(out, mechanism(q, k, v, mask, bias.detach()))
        shifted = mechanism(q, k, v, mask, torch.full_like(bias, 3.0))
        if case.name == "zero_scores":
            assert not torch.allclose(shifted, mechanism(q, k, v, mask))
        else:
            close(shifted, mechanism(q, k, v, mask))
        assert torch.autograd.gradcheck(
            lambda q, k, v, bias, mask=mask: mechanism(q, k, v, mask, bias), (q, k, v, bias), fast_mode=True
        )


@pytest.mark.parametrize("case", able("bias"), ids=str)
def test_a_row_with_nothing_to_attend_leaves_the_bias_finite(case: Case) -> None:
    q, k, v = inputs(6, grad=True)
    bias = torch.randn(1, 2, 6, 6, dtype=torch.float64, requires_grad=True)
    out = case.build()(q, k, v, Mask(causal=True, keys=lengths_mask([0, 4], 6, "left")), bias)
    assert out[0].abs().max() == 0
    (out.square() + out).sum().backward()
    for x in (q, k, v, bias):
        assert gradient(x).isfinite().all()


@pytest.mark.parametrize("case", cases(lambda c: c.kind.exact_zero_gradient), ids=str)
def test_the_gradient_of_q_and_k_is_exactly_zero_or_that_of_softmax(case: Case) -> None:
    q, k, v = inputs(13, grad=True)
    mask = Mask(causal=True, keys=lengths_mask([9, 13], 13, "left"))
    upstream = torch.randn(q.shape, dtype=q.dtype)
    got = torch.autograd.grad(case.build()(q, k, v, mask), (q, k, v), upstream)
    if case.options.get("straight_through"):
        soft = torch.autograd.grad(Case("softmax").build()(q, k, v, mask), (q, k), upstream)
        close(got[0], soft[0])
        close(got[1], soft[1])
    else:
        assert got[0].abs().max() == 0
        assert got[1].abs().max() == 0
    assert got[2].abs().max() > 0


@pytest.mark.parametrize("case", cases(lambda c: not c.kind.exact_zero_gradient), ids=str)
def test_the_gradient_of_q_is_not_zero(case: Case) -> None:
    q, k, v = inputs(13, grad=True)
    case.build()(q, k, v, Mask()).square().sum().backward()
    assert gradient(q).abs().amax((0, 1, 3)).min() > 0


@pytest.mark.parametrize("case", able("explicit_weights"), ids=str)
def test_weights_sum_to_one_and_give_the_output(case: Case) -> None:
    mechanism = case.build()
    for name, mask in masks(case).items():
        q, k, v = inputs(13, 13 + mask.prefix)
        real = torch.ones(2, 13, dtype=torch.bool) if mask.keys is None else mask.keys
        weights = mechanism.weights(q, k, mask)
        close(real_rows(weights @ v, real), real_rows(mechanism(q, k, v, mask), real))
        total = real_rows(weights.sum(-1, keepdim=True), real)
        if case.name == "zero_after" and mask.causal and not case.options.get("renormalize"):
            assert total.min() < 0.9, name
        else:
            close(total, torch.ones_like(total))


@pytest.mark.parametrize("case", able("explicit_weights"), ids=str)
def test_weights_and_output_have_the_same_gradient(case: Case) -> None:
    mechanism = case.build()
    for mask in masks(case).values():
        q, k, v = inputs(13, 13 + mask.prefix, grad=True)
        real = torch.ones(2, 13, dtype=torch.bool) if mask.keys is None else mask.keys
        upstream = torch.randn(q.shape, dtype=q.dtype) * real[:, None, :, None]
        wanted = (q, k, v, *mechanism.parameters())
        whole = torch.autograd.grad(mechanism(q, k, v, mask), wanted, upstream, allow_unused=True)
        dense = torch.autograd.grad(mechanism.weights(q, k, mask) @ v, wanted, upstream, allow_unused=True)
        for a, b in zip(whole, dense, strict=True):
            close(torch.zeros(()) if a is None else a, torch.zeros(()) if b is None else b)


@pytest.mark.parametrize("case", cases(lambda c: not c.kind.explicit_weights), ids=str)
def test_a_mechanism_without_weights_says_so(case: Case) -> None:
    q, k, _ = inputs()
    with pytest.raises(ValueError, match="never makes its attention weights"):
        case.build().weights(q, k, Mask())


# --- scale, dropout, state, refusals ---


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_scale_is_honoured(case: Case) -> None:
    """A scale of four times as much is a query and a key of twice as much, where scores are their product."""
    q, k, v = inputs(13)
    mechanism, sharper = case.build(scale=0.25), case.build(scale=1.0)
    assert case.build().scale == 0.5
    causal = Mask(causal=case.kind.causal)
    if case.name in ("additive", "synthesizer"):
        with torch.no_grad():
            mechanism.w2.mul_(4.0)
        close(mechanism(q, k, v, causal), sharper(q, k, v, causal))
    else:
        close(mechanism(2.0 * q, 2.0 * k, v, causal), sharper(q, k, v, causal))
    if not case.kind.selects_one:
        assert not torch.allclose(case.build(scale=0.25)(q, k, v, causal), sharper(q, k, v, causal))


@pytest.mark.parametrize("case", cases(differentiable), ids=str)
def test_dropout_is_the_same_in_the_backward_pass(case: Case) -> None:
    mechanism = case.build(dropout=0.3)
    for mask in masks(case).values():
        q, k, v = inputs(13, 13 + mask.prefix, grad=True)

        def seeded(q: Tensor, k: Tensor, v: Tensor, mask: Mask = mask) -> Tensor:
            torch.manual_seed(11)
            return mechanism(q, k, v, mask)  # type: ignore[no-any-return]

        assert torch.autograd.gradcheck(seeded, (q, k, v), fast_mode=True)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_saved_state_gives_the_same_function(case: Case) -> None:
    q, k, v = inputs()
    first = case.build()
    torch.manual_seed(99)
    second = type(first)(n_heads=2, d_head=4, max_len=48, **case.options).double()
    second.load_state_dict(first.state_dict())
    mask = Mask(causal=case.kind.causal)
    assert torch.equal(first(q, k, v, mask), second(q, k, v, mask))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_what_a_mechanism_lacks_is_refused_and_what_it_claims_works(case: Case) -> None:
    q, k, v = inputs(5)
    asked = {
        "causal": Mask(causal=True),
        "segments": Mask(segments=segments_of([2, 3], 2)),
        "prefix": Mask(prefix=1),
        "cache": Mask(offset=2),
    }
    for capability, mask in asked.items():
        rows = 3 if capability == "cache" else 4 if capability == "prefix" else 5
        if getattr(case.kind, capability):
            assert case.build()(q[:, :, :rows], k, v, mask).shape == (2, 2, rows, 4)
        else:
            with pytest.raises(ValueError, match=f"{case.name} attention has no {capability}"):
                case.build()(q[:, :, :rows], k, v, mask)
    bias = torch.zeros(1, 2, 5, 5, dtype=torch.float64)
    if case.kind.bias:
        close(case.build()(q, k, v, Mask(), bias), case.build()(q, k, v, Mask()))
    else:
        with pytest.raises(ValueError, match="has no bias"):
            case.build()(q, k, v, Mask(), bias)
    if case.kind.cross:
        assert case.build()(q, *inputs(9)[1:], Mask()).shape == q.shape
        assert case.build()(*inputs(9)[:1], k, v, Mask()).shape == (2, 2, 9, 4)
    else:
        with pytest.raises(ValueError, match="9 queries from position 0 on, but only 5 keys"):
            case.build()(*inputs(9)[:1], k, v, Mask())


@pytest.mark.parametrize("case", CASES, ids=str)
def test_masks_of_the_wrong_length_are_refused(case: Case) -> None:
    q, k, v = inputs(5)
    with pytest.raises(ValueError, match=r"mask\.keys is for 4 keys, but there are 5"):
        case.build()(q, k, v, Mask(keys=torch.ones(2, 4, dtype=torch.bool)))
    if case.kind.segments:
        with pytest.raises(ValueError, match=r"mask\.segments is for 4 positions, but there are 5"):
            case.build()(q, k, v, Mask(segments=torch.zeros(2, 4)))


@pytest.mark.parametrize("name", MECHANISMS)
def test_every_mechanism_tells_its_paper_cost_and_capabilities(name: str) -> None:
    kind = MECHANISMS[name]
    assert kind.name == name
    assert kind.__name__.lower() == name.replace("_", "")
    module = "leaking_masks" if name in ("zero_after", "zero_scores") else name
    assert kind.__module__ == f"heedful.attention.{module}"
    assert kind.paper
    assert kind.cost
    assert kind.__doc__
    assert all(isinstance(getattr(kind, c), bool) for c in CAPABILITIES)


def test_no_unsafe_mechanism_is_ever_recommended() -> None:
    assert able_names("causal") == ["softmax", "argmax", "additive", "bigbird", "performer", "synthesizer"]
    assert "linformer" in able_names("cross")


@pytest.mark.parametrize("shared", ["q=k", "q=k=v"])
@pytest.mark.parametrize("case", cases(differentiable), ids=str)
def test_shared_projections_get_the_sum_of_gradients(case: Case, shared: str) -> None:
    """One tensor as q and k (or as all three), as shared projections give."""
    mechanism = case.build()
    mask = Mask(causal=case.kind.causal)
    x, _, v = inputs(7, grad=True)
    one = mechanism(x, x, x if shared == "q=k=v" else v, mask)
    (got,) = torch.autograd.grad(one.square().sum(), x)
    parts = [x.detach().clone().requires_grad_() for _ in range(3)]
    apart = mechanism(parts[0], parts[1], parts[2] if shared == "q=k=v" else v, mask)
    wanted = torch.autograd.grad(apart.square().sum(), parts, allow_unused=True)
    close(got, sum((g for g in wanted if g is not None), torch.zeros_like(x)))
