"""Softmax attention in chunks that stay in the processor's cache, for scores that no fused kernel takes.

Torch's fused CPU kernel takes neither dropout nor a trainable bias nor other scores than q k^T; its fallback
draws a random number per weight and keeps several tensors of t x s per head. This function goes over a few
rows and heads at a time, keeps only its inputs and the seed, and computes scores, weights and dropout again
in the backward pass; if they are few, as in a part of a batch of short texts, it keeps them instead. A causal
mask cuts each chunk's keys to those that its last row sees.
Grade: same mathematics; same distribution with dropout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.attention.dropout import Keep
from heedful.attention.mask import Mask

CHUNK = 1 << 18
"""Numbers per chunk: 1 MiB of float32, a share of the level-2 cache."""
KEPT = 1 << 21
"""The most weights of a call that are kept for the backward pass: reading 8 MiB is quicker than computing."""
CAUSAL_ROWS = 64
"""Rows per chunk under a causal mask: more would make more scores that nobody sees."""


class Scores(Protocol):
    """Turns chunks of queries [b, h, t, e] and keys [b, h, s, e] into scores, and collects gradients."""

    heads_together: bool
    keeps: bool
    """Whether `add_gradient` needs nothing of the `compute` of its chunk, so that weights may be kept."""

    def __init__(self, q: Tensor, k: Tensor, w: Tensor | None, scale: float) -> None: ...

    def width(self) -> int:
        """Return how many numbers one score takes while it is computed."""

    def rows(self, t: int, causal: bool) -> int:
        """Return the most rows that a chunk should have."""

    def compute(self, chunk: Chunk) -> Tensor:
        """Return the scores [b, h, c, n] of a chunk."""

    def add_gradient(self, chunk: Chunk, grad: Tensor) -> None:
        """Add the gradients of a chunk, right after its `compute`."""

    def gradients(self) -> tuple[Tensor, Tensor, Tensor | None]:
        """Return the gradients of q, k and w."""


class Dot:
    """scale q k^T."""

    heads_together = True
    keeps = True

    def __init__(self, q: Tensor, k: Tensor, w: Tensor | None, scale: float) -> None:
        self.q, self.k, self.scale = q * scale, k, scale
        self.dq: Tensor | None = None
        self.dk: Tensor | None = None

    def width(self) -> int:
        return 2

    def rows(self, t: int, causal: bool) -> int:
        """As many as fit: a product is cheap, a chunk is not."""
        return min(t, CAUSAL_ROWS) if causal and t <= 4 * CAUSAL_ROWS else t

    def compute(self, chunk: Chunk) -> Tensor:
        return torch.matmul(self.q[chunk.queries], self.k[chunk.keys].mT)

    def add_gradient(self, chunk: Chunk, grad: Tensor) -> None:
        if self.dq is None or self.dk is None:
            self.dq, self.dk = empty_heads_adjacent(self.q), empty_heads_adjacent(self.k)
        self.dq[chunk.queries] = torch.matmul(grad, self.k[chunk.keys]).mul_(self.scale)
        chunk.add_key_gradient(self.dk, torch.matmul(grad.mT, self.q[chunk.queries]))

    def gradients(self) -> tuple[Tensor, Tensor, None]:
        if self.dq is None or self.dk is None:
            return torch.zeros_like(self.q), torch.zeros_like(self.k), None
        return self.dq, self.dk, None


def chunk_shape(scores: Scores, b: int, h: int, numbers: int) -> tuple[int, int]:
    """Return how many rows of the batch and heads make a chunk of about CHUNK; one of each has `numbers`."""
    fit = max(1, CHUNK // numbers)
    if not scores.heads_together:
        return min(b, fit), 1
    return (max(1, min(b, fit // h)), h) if fit >= h else (1, fit)


class Chunk:
    """The place of one chunk, and its part of mask and bias."""

    def __init__(
        self, b: slice, h: slice, rows: slice, n: int, added: list[Tensor], alive: Tensor | None, first: bool
    ) -> None:
        self.queries, self.keys, self.first = (b, h, rows), (b, h, slice(n)), first
        self.added = [slice_heads(x, b, h) for x in added]
        self.alive = None if alive is None else slice_heads(alive, b, h)

    def add_mask(self, scores: Tensor) -> Tensor:
        for added in self.added:
            scores += added
        return scores

    def weights(self, scores: Tensor) -> Tensor:
        scores = self.add_mask(scores)
        return torch.softmax(scores, -1, out=scores)

    def softmax_backward(self, weights: Tensor, grad: Tensor) -> Tensor:
        """Return the gradient of the scores from that of the weights, which is overwritten."""
        return grad.sub_((grad * weights).sum(-1, keepdim=True)).mul_(weights)

    def add_key_gradient(self, total: Tensor, part: Tensor) -> None:
        """Add this chunk's part of a gradient of the keys, which the first chunk begins."""
        if not self.first:
            total[self.keys].add_(part)
            return
        b, h, seen = self.keys
        total[self.keys] = part
        total[b, h, seen.stop :] = 0

    def output_gradient(self, grad: Tensor) -> Tensor:
        """Return the chunk's part of the output's gradient; rows with nothing to attend have none."""
        part = grad[self.queries]
        return part if self.alive is None else part * self.alive

    def add_bias_gradient(self, dbias: Tensor | None, dscores: Tensor) -> None:
        if dbias is not None:
            (b, h, rows), keys = self.queries, self.keys[2]
            part = slice_heads(dbias, b, h)[..., rows, keys]
            part += dscores.sum_to_size(part.shape)


def empty_heads_adjacent(like: Tensor, width: int | None = None) -> Tensor:
    """Return an empty tensor [b, h, t, d] with the heads of a position side by side, as the layers use it."""
    b, h, t, d = like.shape
    return like.new_empty(b, t, h, d if width is None else width).transpose(1, 2)


def slice_heads(x: Tensor, b: slice, h: slice) -> Tensor:
    """Return rows b and heads h of a tensor [b or 1, h or 1, ...] that may be the same for all of them."""
    return x[b if x.shape[0] > 1 else slice(None), h if x.shape[1] > 1 else slice(None)]


def chunks(scores: Scores, q: Tensor, k: Tensor, bias: Tensor | None, mask: Mask) -> Iterator[Chunk]:
    """All chunks, in an order that forward and backward share because the random numbers follow it.

    The last rows come first: they see every key that others see.
    """
    (b, h, t, _), s = q.shape, k.shape[-2]
    rows = max(1, min(scores.rows(t, mask.causal), CHUNK // (s * scores.width())))
    for i in reversed(range(0, t, rows)):
        stop = min(i + rows, t)
        n = mask.reach(stop, s)
        added = [] if bias is None else [bias[:, :, i:stop, :n]]
        alive = None
        allowed = mask.after(i).allowed(stop - i, s, q.device)
        if allowed is not None:
            allowed = allowed[..., :n]
            # Adding the smallest number is exact (it swallows any score) and far quicker than filling.
            low = torch.zeros(allowed.shape, dtype=q.dtype, device=q.device)
            low.masked_fill_(~allowed, torch.finfo(q.dtype).min)
            # What all rows of the batch share is added up once.
            together = bool(added) and len(low) == len(added[0]) == 1
            added = [added[0] + low] if together else [*added, low]
            seen = allowed.any(-1, keepdim=True)  # [b or 1, 1, c or 1, 1]
            alive = None if bool(seen.all()) else seen.to(q.dtype)
        batch, heads = chunk_shape(scores, b, h, rows * n * scores.width())
        for x in range(0, h, heads):
            for y in range(0, b, batch):
                b_, h_ = slice(y, y + batch), slice(x, x + heads)
                yield Chunk(b_, h_, slice(i, stop), n, added, alive, first=stop == t)


class ChunkedAttention(torch.autograd.Function):
    """softmax(scores(q, k) + bias) with dropout, times v."""

    @staticmethod
    def forward(
        ctx: Any,
        kind: type[Scores],
        q: Tensor,
        k: Tensor,
        v: Tensor,
        w: Tensor | None,
        bias: Tensor | None,
        mask: Mask,
        scale: float,
        p: float,
        seed: int,
    ) -> Tensor:
        ctx.kind, ctx.mask, ctx.scale, ctx.p, ctx.seed = kind, mask, scale, p, seed
        # Once here, instead of in every product of a chunk.
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        scores = kind(q, k, w, scale)
        keeping = kind.keeps and any(ctx.needs_input_grad) and q[..., 0].numel() * k.shape[-2] <= KEPT
        ctx.kept = [] if keeping else None
        out = empty_heads_adjacent(q, v.shape[-1])
        keep = Keep(p, seed)
        for chunk in chunks(scores, q, k, bias, mask):
            weights = chunk.weights(scores.compute(chunk))
            seen = weights
            if p:
                seen = keep.draw(weights).mul_(weights) if keeping else weights.mul_(keep.draw(weights))
            piece = torch.matmul(seen, v[chunk.keys])
            out[chunk.queries] = piece if chunk.alive is None else piece.mul_(chunk.alive)
            if keeping:
                ctx.kept.append((chunk, weights, seen))
        out = out.mul_(keep.scale) if p else out
        ctx.save_for_backward(q, k, v, w, bias, *([out] if keeping else []))
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        q, k, v, w, bias, *outs = ctx.saved_tensors
        scores = ctx.kind(q, k, w, ctx.scale)
        keep = Keep(ctx.p, ctx.seed)
        grad = grads[0].contiguous()
        grad = grad * keep.scale if ctx.p else grad
        dbias = torch.zeros_like(bias) if bias is not None and ctx.needs_input_grad[5] else None
        if ctx.kept is not None:
            means = (grads[0] * outs[0]).sum(-1, keepdim=True)  # [b, h, t, 1]
            dv = backward_from_weights(scores, ctx.kept, grad, means, v, dbias, dropped=ctx.p > 0)
        else:
            again = chunks(scores, q, k, bias, ctx.mask)
            dv = backward_recomputing(scores, again, grad, v, dbias, keep if ctx.p else None)
        dq, dk, dw = scores.gradients()
        return None, dq, dk, dv, dw, dbias, None, None, None, None


def backward_from_weights(
    scores: Scores,
    kept: Iterable[tuple[Chunk, Tensor, Tensor]],
    grad: Tensor,
    means: Tensor,
    v: Tensor,
    dbias: Tensor | None,
    *,
    dropped: bool,
) -> Tensor:
    """Return the gradient of v, from weights that the forward pass kept before and after dropout.

    The mean of each row's gradients of the weights is that of its outputs, `means`, so that no second sum
    over the keys is needed (Dao et al. 2022, section 3.1).
    """
    dv = empty_heads_adjacent(v)
    for chunk, weights, seen in kept:
        g = chunk.output_gradient(grad)
        chunk.add_key_gradient(dv, torch.matmul(seen.mT, g))
        dscores = torch.matmul(g, v[chunk.keys].mT)  # [b, h, c, n]
        if dropped:
            dscores.mul_(seen).addcmul_(weights, means[chunk.queries], value=-1)
        else:
            dscores.sub_(means[chunk.queries]).mul_(weights)
        chunk.add_bias_gradient(dbias, dscores)
        scores.add_gradient(chunk, dscores)
    return dv


def backward_recomputing(
    scores: Scores, again: Iterable[Chunk], grad: Tensor, v: Tensor, dbias: Tensor | None, keep: Keep | None
) -> Tensor:
    """Return the gradient of v; the weights are computed and their dropout is drawn a second time."""
    dv = torch.zeros_like(v)
    for chunk in again:
        weights = chunk.weights(scores.compute(chunk))
        g = chunk.output_gradient(grad)
        dweights = torch.matmul(g, v[chunk.keys].mT)  # [b, h, c, n]
        seen = weights
        if keep is not None:
            mask = keep.draw(weights)
            dweights *= mask
            seen = mask.mul_(weights)
        dv[chunk.keys].add_(torch.matmul(seen.mT, g))
        dscores = chunk.softmax_backward(weights, dweights)
        chunk.add_bias_gradient(dbias, dscores)
        scores.add_gradient(chunk, dscores)
    return dv
