"""Softmax attention with dropout or a trainable bias, in chunks that stay in the processor's cache.

Torch's fused CPU kernel takes neither, and its fallback draws a random number a weight and keeps several
tensors of t x s a head. This function goes over the heads a few at a time, keeps only q, k, v and the seed,
and computes the weights again in the backward pass.
Grade: same mathematics with a bias; same distribution with dropout.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful.attention.dropout import Keep

CHUNK = 1 << 18
"""Weights a chunk: 1 MiB of float32, a share of the level-2 cache."""


def pick(x: Tensor | None, i: int, j: int) -> Tensor | None:
    """Rows i to j of a tensor that may be the same for all rows."""
    return x if x is None or x.shape[0] == 1 else x[i:j]


def chunk_weights(q: Tensor, k: Tensor, bias: Tensor | None, additive: Tensor | None) -> Tensor:
    """The weights of a few rows of the batch; q is scaled already."""
    scores = torch.matmul(q, k.mT)  # [c, h, t, s]
    if bias is not None:
        scores += bias
    if additive is not None:
        scores += additive
    return torch.softmax(scores, -1, out=scores)


class ChunkedAttention(torch.autograd.Function):
    """softmax(scale q k^T + bias) with dropout, times v."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        bias: Tensor | None,
        allowed: Tensor | None,
        scale: float,
        p: float,
        seed: int,
    ) -> Tensor:
        additive = empty = None
        if allowed is not None:
            # Adding the smallest number is exact (it swallows any score) and several times quicker than filling.
            additive = torch.zeros(allowed.shape, dtype=q.dtype).masked_fill_(
                ~allowed, torch.finfo(q.dtype).min
            )
            empty = ~allowed.any(-1, keepdim=True)  # [b or 1, 1, t or 1, 1]
            empty = empty if bool(empty.any()) else None
        q = q * scale
        ctx.save_for_backward(q, k, v, bias, additive, empty)
        ctx.scale, ctx.p, ctx.seed = scale, p, seed
        out = torch.empty((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
        keep = Keep(p, seed)
        for i, j in spans(q, k):
            weights = chunk_weights(q[i:j], k[i:j], pick(bias, i, j), pick(additive, i, j))
            if p:
                weights *= keep.draw(weights)
            torch.matmul(weights, v[i:j], out=out[i:j])
        out *= keep.scale
        return out if empty is None else out.masked_fill_(empty, 0.0)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, bias, additive, empty = ctx.saved_tensors
        keep = Keep(ctx.p, ctx.seed)
        grad = grads[0] * keep.scale
        if empty is not None:
            grad.masked_fill_(empty, 0.0)
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        dbias = torch.zeros_like(bias) if bias is not None and ctx.needs_input_grad[3] else None
        for i, j in spans(q, k):
            weights = chunk_weights(q[i:j], k[i:j], pick(bias, i, j), pick(additive, i, j))
            dweights = grad[i:j] @ v[i:j].mT  # [c, h, t, s]
            if ctx.p:
                kept = keep.draw(weights)
                dweights *= kept
                torch.matmul(kept.mul_(weights).mT, grad[i:j], out=dv[i:j])
            else:
                torch.matmul(weights.mT, grad[i:j], out=dv[i:j])
            dscores = dweights.sub_((dweights * weights).sum(-1, keepdim=True)).mul_(weights)
            if dbias is not None:
                part = pick(dbias, i, j)
                assert part is not None
                part += dscores.sum_to_size(part.shape)
            torch.matmul(dscores, k[i:j], out=dq[i:j])
            torch.matmul(dscores.mT, q[i:j], out=dk[i:j])
        return dq.mul_(ctx.scale), dk, dv, dbias, None, None, None, None


def spans(q: Tensor, k: Tensor) -> list[tuple[int, int]]:
    """Cut the batch into pieces of about CHUNK weights."""
    rows = max(1, CHUNK // max(1, q.shape[1] * q.shape[2] * k.shape[2]))
    return [(i, min(i + rows, q.shape[0])) for i in range(0, q.shape[0], rows)]
