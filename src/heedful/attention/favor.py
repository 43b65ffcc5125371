"""Attention as two products with random features, in chunks: phi(q) (phi(k)^T v), never t x s.

Keys are of two sorts: the leading ones that every query sees (all of them without a causal mask; prefix and
cache with one), and the others, where query i sees up to key i. Their sums over positions are carried from
chunk to chunk, each scaled by e^-c where c is the largest exponent *so far*: a maximum over all keys would
leak the future by rounding. Only sums at chunk borders are kept; backward computes the features again.
Grade: same mathematics as the quadratic form with the same features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from heedful.attention.features import FeatureMap

CHUNK = 1 << 18
"""Features per chunk: 1 MiB of float32, a share of the level-2 cache."""
LENGTH = 96
"""Positions per causal chunk: more square the extra work, fewer make small products and many sums to keep."""
NEVER = -1e30
"""A logarithm of zero that can be subtracted from itself."""


@dataclass
class State:
    """Sum of phi(k) [v, 1] over some keys [x, m, d + 1], divided by e^c [x]."""

    sums: Tensor
    c: Tensor


@dataclass
class Keys:
    """A chunk of keys: features divided by e^c, where c [x, n] is the largest exponent up to each key."""

    phi: Tensor  # [x, n, m]
    c: Tensor  # [x, n]
    v: Tensor  # [x, n, d + 1]


def chunk_sizes(x: int, m: int) -> tuple[int, int]:
    """Return the number of heads per chunk, and of positions where every query sees every key."""
    group = max(1, min(x, CHUNK // (LENGTH * m)))
    return group, max(LENGTH, CHUNK // (group * m))


def query_features(features: FeatureMap, q: Tensor) -> Tensor:
    """Return the features of some queries, divided by each row's largest, which cancels."""
    u = features.project(q)
    return features.lift(u, q, features.top(u, q))


def decay(c: Tensor) -> Tensor:
    """e^(c_j - c_i) for j <= i, else 0 [x, n, n]: what key j's scale is worth at query i."""
    return torch.exp((c[:, None, :] - c[:, :, None]).clamp_max_(0.0)).tril_()


def split_positions(n: int, length: int) -> list[slice]:
    return [slice(i, min(i + length, n)) for i in range(0, n, length)]


class Heads:
    """Some heads of one call: everything that forward and backward both walk through."""

    def __init__(
        self, features: FeatureMap, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None, lead: int, free: int
    ) -> None:
        self.features, self.q, self.k, self.v, self.real, self.lead = features, q, k, v, real, lead
        self.causal = lead < k.shape[1]
        self.queries = split_positions(q.shape[1], LENGTH if self.causal else free)
        self.leading = split_positions(lead, free)

    def keys(self, at: slice, before: Tensor, running: bool) -> Keys:
        """Return some keys, zero for padding, scaled by the maximum up to each key or of all of them.

        `before` [x] is the maximum of all earlier keys.
        """
        k, real = self.k[:, at], None if self.real is None else self.real[:, at]
        u = self.features.project(k)
        top = self.features.top(u, k)
        if real is not None:
            top = top.masked_fill(~real, NEVER)
        c = top.cummax(-1).values if running else top.amax(-1, keepdim=True).expand_as(top)
        c = torch.maximum(c, before[:, None])
        phi = self.features.lift(u, k, c)
        if real is not None:
            phi.masked_fill_(~real[..., None], 0.0)
        return Keys(phi, c, F.pad(self.v[:, at], (0, 1), value=1.0))

    def after_lead(self, at: slice) -> slice:
        return slice(self.lead + at.start, self.lead + at.stop)

    def start(self) -> State:
        x, m, width = self.q.shape[0], self.features.m, self.v.shape[-1] + 1
        state = State(self.q.new_zeros(x, m, width), self.q.new_full((x,), NEVER))
        for at in self.leading:
            keys = self.keys(at, state.c, running=False)
            c = keys.c[:, -1]
            sums = torch.baddbmm(state.sums * torch.exp(state.c - c)[:, None, None], keys.phi.mT, keys.v)
            state = State(sums, c)
        return state

    def fill_outputs(self, out: Tensor, norm: Tensor, least: float) -> list[State]:
        """Fill in output and normalizer; return the sums before each chunk of queries."""
        state = self.start()
        states = []
        for at in self.queries:
            states.append(state)
            phi = query_features(self.features, self.q[:, at])
            both = torch.bmm(phi, state.sums)  # [x, c, d + 1]
            if self.causal:
                keys = self.keys(self.after_lead(at), state.c, running=True)
                both *= torch.exp(state.c[:, None] - keys.c)[..., None]
                both.baddbmm_(torch.bmm(phi, keys.phi.mT).mul_(decay(keys.c)), keys.v)
                c = keys.c[:, -1]
                fresh = torch.bmm(keys.phi.mT, keys.v * torch.exp(keys.c - c[:, None])[..., None])
                state = State(fresh.add_(state.sums * torch.exp(state.c - c)[:, None, None]), c)
            # Dividing by infinity gives zeros now and no gradient later.
            divisor = both[..., -1:].masked_fill(both[..., -1:].abs() <= least, float("inf"))
            norm[:, at] = divisor
            torch.div(both[..., :-1], divisor, out=out[:, at])
        return states

    def fill_gradients(self, states: list[State], both: Tensor, dq: Tensor, dk: Tensor, dv: Tensor) -> None:
        """From the gradient of [numerator, normalizer] to those of q, k and v.

        Scales are constants here: the output does not depend on them.
        """
        later = torch.zeros_like(states[0].sums)
        for at, state in zip(reversed(self.queries), reversed(states), strict=True):
            phi, g = query_features(self.features, self.q[:, at]), both[:, at]
            if self.causal:
                there = self.after_lead(at)
                keys = self.keys(there, state.c, running=True)
                c, fall = keys.c[:, -1], decay(keys.c)
                part = torch.bmm(g, keys.v.mT).mul_(fall)  # [x, c, c]
                g_state = g * torch.exp(state.c[:, None] - keys.c)[..., None]
                dphi = torch.bmm(g_state, state.sums.mT).baddbmm_(part, keys.phi)
                rise = torch.exp(keys.c - c[:, None])[..., None]
                dphi_k = torch.bmm(keys.v * rise, later.mT).baddbmm_(part.mT, phi)
                dv_k = torch.bmm(keys.phi, later).mul_(rise)
                dv_k.baddbmm_(torch.bmm(phi, keys.phi.mT).mul_(fall).mT, g)
                dk[:, there] = self.features.input_gradient(dphi_k, keys.phi, self.k[:, there])
                dv[:, there] = dv_k[..., :-1]
                later *= torch.exp(state.c - c)[:, None, None]
            else:
                dphi, g_state = torch.bmm(g, state.sums.mT), g
            later.baddbmm_(phi.mT, g_state)
            dq[:, at] = self.features.input_gradient(dphi, phi, self.q[:, at])
        for at in self.leading:
            keys = self.keys(at, states[0].c, running=False)
            dk[:, at] = self.features.input_gradient(torch.bmm(keys.v, later.mT), keys.phi, self.k[:, at])
            dv[:, at] = torch.bmm(keys.phi, later)[..., :-1]


class Favor(torch.autograd.Function):
    """Random-feature attention of q [x, t, d] over k and v [x, s, d], whose first `lead` keys everyone sees.

    `real` [x, s] is False at padding. A row whose normalizer is not larger than `least` gives zeros.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        real: Tensor | None,
        features: FeatureMap,
        lead: int,
        least: float,
    ) -> Tensor:
        ctx.features, ctx.lead = features, lead
        ctx.group, ctx.free = chunk_sizes(q.shape[0], features.m)
        out = torch.empty(*q.shape[:2], v.shape[-1], dtype=q.dtype, device=q.device)
        norm = torch.empty(*q.shape[:2], 1, dtype=q.dtype, device=q.device)
        ctx.states = []
        for at in split_positions(q.shape[0], ctx.group):
            heads = Heads(features, q[at], k[at], v[at], None if real is None else real[at], lead, ctx.free)
            ctx.states.append(heads.fill_outputs(out[at], norm[at], least))
        ctx.save_for_backward(q, k, v, real, out, norm)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        q, k, v, real, out, norm = ctx.saved_tensors
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        for at, states in zip(split_positions(q.shape[0], ctx.group), ctx.states, strict=True):
            some = None if real is None else real[at]
            heads = Heads(ctx.features, q[at], k[at], v[at], some, ctx.lead, ctx.free)
            share = grads[0][at] / norm[at]
            both = torch.cat([share, -(share * out[at]).sum(-1, keepdim=True)], -1)  # [x, t, d + 1]
            heads.fill_gradients(states, both, dq[at], dk[at], dv[at])
        return dq, dk, dv, None, None, None, None
