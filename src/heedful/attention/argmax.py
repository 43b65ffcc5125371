"""Hard attention: all weight on the best key."""

from __future__ import annotations

from typing import Any, Unpack

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.attention.chunked import Dot, chunks
from heedful.attention.dropout import dropout
from heedful.attention.mask import Mask
from heedful.attention.mechanism import CommonOptions, Mechanism
from heedful.attention.softmax import dot_scores


class Argmax(Mechanism):
    """The value of the key with the highest score, ties to the first: softmax at temperature 0.

    The choice does not change when q and k move a little, so their gradient is exactly zero (a tensor of
    zeros, not None). With `straight_through` (Bengio et al. 2013) q, k and the bias get softmax's instead.
    Dropout drops the one weight that a row has.
    """

    name = "argmax"
    paper = (
        "Bengio et al. 2013, Estimating or Propagating Gradients Through Stochastic Neurons, arXiv:1308.3432"
    )
    cost = "t s d"
    causal = cross = bias = explicit_weights = prefix = segments = cache = True
    exact_zero_gradient = selects_one = True

    def __init__(self, *, straight_through: bool = False, **common: Unpack[CommonOptions]) -> None:
        super().__init__(**common)
        self.straight_through = straight_through

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        with torch.no_grad():
            best = choose(Dot(q, k, None, self.scale), bias, mask)[..., None]  # [b, h, t, 1]
            hard = q.new_zeros(*best.shape[:-1], k.shape[-2])
            hard.scatter_(-1, best.clamp_min(0), (best >= 0).to(q.dtype))  # [b, h, t, s]
        if not torch.is_grad_enabled():
            return hard
        soft = mask.softmax(dot_scores(q, k, self.scale, bias))
        return hard + (soft - soft.detach() if self.straight_through else 0.0 * soft)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        out: Tensor = Select.apply(  # type: ignore[no-untyped-call]
            q, k, v, bias, mask, self.scale, self.straight_through
        )
        if self.training and self.dropout:
            out = out * dropout(out.new_ones(*out.shape[:-1], 1), self.dropout)
        return out


def choose(scores: Dot, bias: Tensor | None, mask: Mask) -> Tensor:
    """Return the best key [b, h, t] of every query, the first one at a tie; -1 where nothing may be seen."""
    best = torch.empty(scores.q.shape[:-1], dtype=torch.long, device=scores.q.device)
    for chunk in chunks(scores, scores.q, scores.k, bias, mask):
        piece = best[chunk.queries]
        torch.argmax(chunk.add_mask(scores.compute(chunk)), -1, out=piece)
        if chunk.alive is not None:
            piece.masked_fill_(chunk.alive[..., 0] == 0, -1)
    return best


class Select(torch.autograd.Function):
    """v at the chosen keys; backward gives v its share, and q and k zeros or softmax's gradient."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        bias: Tensor | None,
        mask: Mask,
        scale: float,
        straight_through: bool,
    ) -> Tensor:
        best = choose(Dot(q, k, None, scale), bias, mask)[..., None]  # [b, h, t, 1]
        ctx.save_for_backward(q, k, v, bias, best)
        ctx.mask, ctx.scale, ctx.straight_through = mask, scale, straight_through
        at = best.clamp_min(0).expand(*best.shape[:-1], v.shape[-1])
        return v.gather(2, at).masked_fill_(best < 0, 0.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        q, k, v, bias, best = ctx.saved_tensors
        grad = grads[0].masked_fill(best < 0, 0.0)
        dv = torch.zeros_like(v).scatter_add_(2, best.clamp_min(0).expand_as(grad), grad)
        dbias = torch.zeros_like(bias) if bias is not None and ctx.needs_input_grad[3] else None
        scores = Dot(q, k, None, ctx.scale)
        for chunk in chunks(scores, q, k, bias, ctx.mask) if ctx.straight_through else ():
            weights = chunk.weights(scores.compute(chunk))
            dweights = torch.matmul(grad[chunk.queries], v[chunk.keys].mT)
            dscores = chunk.softmax_backward(weights, dweights)
            chunk.add_bias_gradient(dbias, dscores)
            scores.add_gradient(chunk, dscores)
        dq, dk, _ = scores.gradients()
        return dq, dk, dv, dbias, None, None, None
