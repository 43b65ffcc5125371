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
from heedful.attention.mask import masked_softmax

CHUNK = 1 << 18
"""Weights a chunk: 1 MiB of float32, a share of the level-2 cache."""


def pick(x: Tensor | None, i: int, j: int) -> Tensor | None:
    """Rows i to j of a tensor that may be the same for all rows."""
    return x if x is None or x.shape[0] == 1 else x[i:j]


def chunk_weights(
    q: Tensor, k: Tensor, bias: Tensor | None, allowed: Tensor | None, scale: float
) -> Tensor:
    """The weights of a few rows of the batch."""
    scores = torch.matmul(q, k.mT).mul_(scale)  # [c, h, t, s]
    if bias is not None:
        scores += bias
    return masked_softmax(scores, allowed)


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
        ctx.save_for_backward(q, k, v, bias, allowed)
        ctx.scale, ctx.p, ctx.seed = scale, p, seed
        out = torch.empty((*q.shape[:-1], v.shape[-1]), dtype=q.dtype)
        keep = Keep(p, seed)
        for i, j in spans(q, k):
            weights = chunk_weights(q[i:j], k[i:j], pick(bias, i, j), pick(allowed, i, j), scale)
            if p:
                weights *= keep.draw(weights.shape)
                torch.mul(weights @ v[i:j], keep.scale, out=out[i:j])
            else:
                torch.matmul(weights, v[i:j], out=out[i:j])
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad = grads[0]
        q, k, v, bias, allowed = ctx.saved_tensors
        dq, dk, dv = torch.empty_like(q), torch.empty_like(k), torch.empty_like(v)
        dbias = torch.zeros_like(bias) if bias is not None and ctx.needs_input_grad[3] else None
        keep = Keep(ctx.p, ctx.seed)
        for i, j in spans(q, k):
            weights = chunk_weights(q[i:j], k[i:j], pick(bias, i, j), pick(allowed, i, j), ctx.scale)
            g = grad[i:j]
            dweights = g @ v[i:j].mT  # [c, h, t, s]
            if ctx.p:
                kept = keep.draw(weights.shape)
                g = g * keep.scale
                torch.matmul((weights * kept).mT, g, out=dv[i:j])
                dweights.mul_(kept).mul_(keep.scale)
            else:
                torch.matmul(weights.mT, g, out=dv[i:j])
            dscores = dweights.sub_((dweights * weights).sum(-1, keepdim=True)).mul_(weights)
            if dbias is not None:
                part = pick(dbias, i, j)
                assert part is not None
                part += dscores.sum_to_size(part.shape)
            torch.matmul(dscores, k[i:j], out=dq[i:j]).mul_(ctx.scale)
            torch.matmul(dscores.mT, q[i:j], out=dk[i:j]).mul_(ctx.scale)
        return dq, dk, dv, dbias, None, None, None, None


def spans(q: Tensor, k: Tensor) -> list[tuple[int, int]]:
    """Cut the batch into pieces of about CHUNK weights."""
    rows = max(1, CHUNK // max(1, q.shape[1] * q.shape[2] * k.shape[2]))
    return [(i, min(i + rows, q.shape[0])) for i in range(0, q.shape[0], rows)]
