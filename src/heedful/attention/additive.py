"""Additive attention."""

from __future__ import annotations

import math
from typing import Unpack

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heedful.attention.chunked import CHUNK, Chunk, ChunkedAttention
from heedful.attention.dropout import draw_seed
from heedful.attention.mask import Mask
from heedful.attention.mechanism import CommonOptions, Mechanism
from heedful.options.types import Positive

PARTS = 5
"""Row chunks of a causal sequence: 5 make 60 % of the square, and each still fills the vector units."""


class Additive(Mechanism):
    """Scores w2 . tanh(W1 [q; k]) (Bahdanau et al. 2015, appendix A.1.2), with separate parameters per head.

    W1 [q; k] is W1q q + W1k k, so each half is one product; their sum is broadcast in chunks and computed
    again in the backward pass, for a causal mask over the lower triangle only. Nothing of t x s is kept.
    The scale is applied before w2, which begins with variance 1, so that scores begin near variance 1.
    Grade: same mathematics as the plain formula.
    """

    name = "additive"
    paper = "Bahdanau et al. 2015, Neural Machine Translation by Jointly Learning to Align, arXiv:1409.0473"
    cost = "t s d"
    causal = cross = bias = explicit_weights = prefix = segments = cache = True

    def __init__(self, *, d_hidden: Positive | None = None, **common: Unpack[CommonOptions]) -> None:
        super().__init__(**common)
        self.d_hidden = self.d_head if d_hidden is None else d_hidden
        self.w1_q = nn.Parameter(torch.empty(self.n_heads, self.d_head, self.d_hidden))
        self.w1_k = nn.Parameter(torch.empty(self.n_heads, self.d_head, self.d_hidden))
        self.w2 = nn.Parameter(torch.empty(self.n_heads, self.d_hidden))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for half in (self.w1_q, self.w1_k):
            nn.init.normal_(half, std=self.d_head**-0.5)
        nn.init.normal_(self.w2)

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        q, k = project(q, self.w1_q), project(k, self.w1_k)
        rows = max(1, CHUNK // (k.numel() or 1))
        parts = [
            checkpoint(self.scores, part, k, use_reentrant=False) for part in torch.split(q, rows, dim=2)
        ]
        scores = torch.cat(parts, dim=2)
        return mask.softmax(scores if bias is None else scores + bias)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        hidden = torch.tanh(q[:, :, :, None] + k[:, :, None])  # [b, h, c, s, e]
        return self.scale * (hidden @ self.w2[:, None, :, None])[..., 0]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        p = self.dropout if self.training else 0.0
        seed = draw_seed() if p else 0
        q, k = project(q, self.w1_q), project(k, self.w1_k)
        out: Tensor = ChunkedAttention.apply(  # type: ignore[no-untyped-call]
            Tanh, q, k, v, self.w2, bias, mask, self.scale, p, seed
        )
        return out


def project(x: Tensor, w: Tensor) -> Tensor:
    """Multiply x [b, h, n, d] by w [h, d, e]; in memory e comes before b, as `Tanh` wants it."""
    (b, h, n, d), e = x.shape, w.shape[-1]
    whole = w.mT @ x.permute(1, 3, 0, 2).reshape(h, d, b * n)  # [h, e, b n]
    return whole.view(h, e, b, n).permute(2, 0, 3, 1)


class Tanh:
    """scale w . tanh(q + k), head by head; hidden units e come first, so summing over them is a product."""

    heads_together = False
    keeps = False

    def __init__(self, q: Tensor, k: Tensor, w: Tensor | None, scale: float) -> None:
        assert w is not None
        self.q, self.k = (x.permute(1, 3, 0, 2).contiguous() for x in (q, k))  # [h, e, b, t or s]
        self.w, self.scale = w * scale, scale  # [h, e]
        self.dq, self.dk, self.dw = (torch.zeros_like(x) for x in (self.q, self.k, self.w))
        self.room = q.new_empty(CHUNK)
        self.hidden = self.room

    def width(self) -> int:
        return self.q.shape[1]

    def rows(self, t: int, causal: bool) -> int:
        return -(-t // PARTS) if causal else t

    def pieces(self, chunk: Chunk, q: Tensor, k: Tensor) -> tuple[int, Tensor, Tensor]:
        """Return the head of a chunk, and its parts of two tensors in the shape of q and k."""
        (b, h, rows), keys = chunk.queries, chunk.keys[2]
        return h.start, q[h.start, :, b, rows], k[h.start, :, b, keys]  # [e, b, c], [e, b, n]

    def compute(self, chunk: Chunk) -> Tensor:
        """The scores [b, 1, c, n]; the hidden units [e, b, c, n] stay for `add_gradient`."""
        h, q, k = self.pieces(chunk, self.q, self.k)
        size = (*q.shape, k.shape[-1])
        numbers = math.prod(size)
        if numbers > self.room.numel():
            self.room = q.new_empty(numbers)
        # The same memory for all chunks: fresh memory costs more than the tanh.
        self.hidden = self.room[:numbers].view(size)
        torch.add(q[..., None], k[:, :, None], out=self.hidden).tanh_()
        return torch.mm(self.w[h : h + 1], self.hidden.view(size[0], -1)).view(size[1], 1, *size[2:])

    def add_gradient(self, chunk: Chunk, grad: Tensor) -> None:
        """Since tanh' = 1 - tanh^2, from the sums over rows and columns of grad and of grad tanh^2."""
        h, dq, dk = self.pieces(chunk, self.dq, self.dk)
        hidden, grad = self.hidden, grad[:, 0]
        self.dw[h].add_(torch.mv(hidden.view(hidden.shape[0], -1), grad.view(-1)))
        hidden.square_().mul_(grad)
        dq.copy_(grad.sum(-1) - hidden.sum(-1))
        dk.add_(grad.sum(-2) - hidden.sum(-2))

    def gradients(self) -> tuple[Tensor, Tensor, Tensor]:
        w = self.w[:, :, None, None]
        dq, dk = ((x * w).permute(2, 0, 3, 1) for x in (self.dq, self.dk))  # [b, h, t or s, e]
        return dq, dk, self.dw * self.scale
