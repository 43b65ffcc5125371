"""Performer: unbiased, more exact with more features, and steady where exponents are large."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from heedful.attention import Mask, make
from heedful.attention.features import FeatureMap, draw_directions

KINDS = ("positive", "hyperbolic", "trigonometric")


def vectors(n: int, d: int, size: float, seed: int) -> Tensor:
    return size * torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def phi(features: FeatureMap, x: Tensor) -> Tensor:
    """Features with nothing taken out."""
    return features.lift(features.project(x), x, torch.zeros(x.shape[:-1], dtype=x.dtype))


@pytest.mark.parametrize("orthogonal", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_kernel_is_estimated_without_bias(kind: str, orthogonal: bool) -> None:
    q, k = vectors(4, 8, 0.4, 1), vectors(5, 8, 0.4, 2)
    draws, m = 3000, 16
    generator = torch.Generator().manual_seed(0)
    each = []
    for _ in range(draws):
        features = FeatureMap(
            draw_directions(m if kind == "positive" else m // 2, 8, orthogonal, generator), kind
        )
        each.append(phi(features, q) @ phi(features, k).mT / features.w.shape[0])
    values = torch.stack(each) / (2 if kind == "hyperbolic" else 1)
    error = (values.mean(0) - (q @ k.mT).exp()).abs()
    assert (error < 5.0 * values.std(0) / math.sqrt(draws)).all()


@pytest.mark.parametrize("causal", [False, True])
def test_the_error_falls_as_one_over_the_root_of_the_features(causal: bool) -> None:
    q, k, v = torch.randn(3, 1, 4, 64, 16, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    q, k = 0.3 * q, 0.3 * k
    soft = make("softmax", n_heads=4, d_head=16, max_len=64)(q, k, v, Mask(causal=causal))
    sizes = (32, 128, 512, 2048)
    errors = []
    for m in sizes:
        runs = []
        for seed in range(12):
            mechanism = make("performer", n_heads=4, d_head=16, max_len=64, features=m, seed=seed).double()
            runs.append(float((mechanism(q, k, v, Mask(causal=causal)) - soft).square().mean()))
        errors.append(math.sqrt(sum(runs) / len(runs)))
    x, y = [math.log(m) for m in sizes], [math.log(e) for e in errors]
    mean = sum(x) / 4
    slope = sum((a - mean) * b for a, b in zip(x, y, strict=True)) / sum((a - mean) ** 2 for a in x)
    assert -0.58 < slope < -0.42


def variance(kind: str, orthogonal: bool, size: float) -> float:
    """Of the estimate of exp(q.k), over draws."""
    q, k = vectors(6, 8, size, 3), vectors(6, 8, size, 4)
    generator = torch.Generator().manual_seed(0)
    each = []
    for _ in range(800):
        features = FeatureMap(draw_directions(8 if kind == "positive" else 4, 8, orthogonal, generator), kind)
        each.append(
            phi(features, q) @ phi(features, k).mT / features.m * (2 if kind == "trigonometric" else 1)
        )
    return float((torch.stack(each) / (q @ k.mT).exp()).var(0).mean())


def test_orthogonal_directions_have_less_variance_than_independent_ones() -> None:
    for kind in ("positive", "trigonometric"):
        assert variance(kind, True, 0.4) < 0.9 * variance(kind, False, 0.4)


def test_trigonometric_features_are_worse_where_weights_are_small() -> None:
    q = vectors(1, 8, 1.0, 5)
    generator = torch.Generator().manual_seed(0)
    errors = {}
    for kind in ("positive", "trigonometric"):
        each = []
        for _ in range(500):
            features = FeatureMap(draw_directions(64 if kind == "positive" else 32, 8, True, generator), kind)
            each.append(float(phi(features, q) @ phi(features, -q).mT) / features.w.shape[0])
        truth = math.exp(-float(q @ q.mT))
        errors[kind] = math.sqrt(sum((x - truth) ** 2 for x in each) / 500) / truth
    assert errors["trigonometric"] > 10 * errors["positive"]


def test_only_trigonometric_features_give_negative_weights() -> None:
    q, k = 2.0 * torch.randn(2, 1, 2, 40, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    for kind in KINDS:
        mechanism = make(
            "performer", n_heads=2, d_head=8, max_len=40, features=16, kind=kind, seed=0
        ).double()
        assert bool((mechanism.weights(q, k, Mask()) < 0).any()) == (kind == "trigonometric")


@pytest.mark.parametrize("kind", ["positive", "hyperbolic"])
@pytest.mark.parametrize("causal", [False, True])
def test_large_exponents_neither_overflow_nor_divide_by_zero(causal: bool, kind: str) -> None:
    """Keys that grow along the sequence move the scale all the time; float32 must follow float64."""
    torch.manual_seed(0)
    mechanism = make("performer", n_heads=2, d_head=8, max_len=300, features=64, kind=kind, scale=1.0)
    q, k, v = torch.randn(3, 1, 2, 300, 8)
    k = k * torch.linspace(0.1, 3.0, 300)[:, None]
    q, k, v = (x.requires_grad_() for x in (q, k, v))
    out = mechanism(q, k, v, Mask(causal=causal))
    exact = mechanism.double()(q.double(), k.double(), v.double(), Mask(causal=causal))
    torch.testing.assert_close(out.double(), exact, atol=1e-4, rtol=1e-3)
    for grad in torch.autograd.grad(out.sum(), (q, k, v)):
        assert grad.isfinite().all()


def test_a_normaliser_that_vanishes_gives_zeros_and_finite_gradients() -> None:
    """In float32 a query and keys far apart have no common feature left; that must not become NaN."""
    torch.manual_seed(0)
    mechanism = make("performer", n_heads=1, d_head=8, max_len=8, features=16, scale=1.0)
    q = torch.full((1, 1, 4, 8), 30.0, requires_grad=True)
    k = torch.full((1, 1, 4, 8), -30.0, requires_grad=True)
    v = torch.randn(1, 1, 4, 8, requires_grad=True)
    for causal in (False, True):
        out = mechanism(q, k, v, Mask(causal=causal))
        assert out.isfinite().all()
        for grad in torch.autograd.grad(out.square().sum(), (q, k, v)):
            assert grad.isfinite().all()


def test_features_can_be_drawn_again_and_are_fixed_by_the_seed() -> None:
    def build(seed: int | None) -> torch.nn.Module:
        return make("performer", n_heads=1, d_head=8, max_len=8, features=20, seed=seed)

    assert torch.equal(build(3).directions, build(3).directions)
    assert not torch.equal(build(3).directions, build(4).directions)
    torch.manual_seed(0)
    first = build(None)
    torch.manual_seed(0)
    assert torch.equal(first.directions, build(None).directions)
    before = first.directions.clone()
    first.redraw()
    assert not torch.equal(first.directions, before)
    first.redraw(3)
    assert torch.equal(first.directions, build(3).directions)


def test_orthogonal_directions_are_orthogonal_within_a_group_and_as_long_as_gaussians() -> None:
    generator = torch.Generator().manual_seed(0)
    w = draw_directions(20, 8, True, generator)
    for group in (w[:8], w[8:16], w[16:]):
        products = group @ group.mT
        assert (products - products.diagonal().diag()).abs().max() < 1e-10
    lengths = draw_directions(8000, 8, True, generator).square().sum(-1)
    assert abs(float(lengths.mean()) - 8.0) < 5 * 4.0 / math.sqrt(8000)
    assert abs(float(lengths.var()) - 16.0) < 2.0
    means = draw_directions(40_000, 8, True, generator).mean(0)
    assert means.abs().max() < 5 / math.sqrt(40_000)
