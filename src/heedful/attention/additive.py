"""Additive attention."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heedful.attention.chunked import CHUNK, ChunkedAttention
from heedful.attention.dropout import draw_seed
from heedful.attention.mask import Mask
from heedful.attention.mechanism import Mechanism

PARTS = 5
"""Row chunks of a causal sequence: 5 make 60 % of the square, and each still fills the vector units."""


class Additive(Mechanism):
    """Scores w2 . tanh(W1 [q; k]) (Bahdanau et al. 2015, appendix A.1.2), with own parameters a head.

    W1 [q; k] is W1q q + W1k k, so each half is one product; their sum is broadcast in chunks and computed
    again in the backward pass, for a causal mask over the lower triangle only. Nothing of t x s is kept.
    The scale stands before w2, which begins with variance 1, so that scores begin near variance 1.
    Grade: same mathematics as the plain formula.
    """

    name = "additive"
    paper = "Bahdanau et al. 2015, Neural Machine Translation by Jointly Learning to Align, arXiv:1409.0473"
    cost = "t s d"
    causal = cross = bias = explicit_weights = prefix = segments = cache = True

    def __init__(
        self,
        *,
        n_heads: int,
        d_head: int,
        max_len: int,
        scale: float | None = None,
        dropout: float = 0.0,
        d_hidden: int | None = None,
    ) -> None:
        super().__init__(n_heads=n_heads, d_head=d_head, max_len=max_len, scale=scale, dropout=dropout)
        self.d_hidden = d_head if d_hidden is None else d_hidden
        self.w1_q = nn.Parameter(torch.empty(n_heads, d_head, self.d_hidden))
        self.w1_k = nn.Parameter(torch.empty(n_heads, d_head, self.d_hidden))
        self.w2 = nn.Parameter(torch.empty(n_heads, self.d_hidden))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        for half in (self.w1_q, self.w1_k):
            nn.init.normal_(half, std=self.d_head**-0.5)
        nn.init.normal_(self.w2)

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """softmax(scale w2 . tanh(W1q q + W1k k) + bias) over the visible keys."""
        q, k = q @ self.w1_q, k @ self.w1_k  # [b, h, t or s, e]
        rows = max(1, CHUNK // (k.numel() or 1))
        scores = torch.cat(
            [checkpoint(self.scores, part, k, use_reentrant=False) for part in torch.split(q, rows, dim=2)],
            dim=2,
        )
        return mask.softmax(scores if bias is None else scores + bias)

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        """The scores [b, h, c, s] of some projected queries."""
        hidden = torch.tanh(q[:, :, :, None] + k[:, :, None])  # [b, h, c, s, e]
        return self.scale * (hidden @ self.w2[:, None, :, None])[..., 0]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """The same as `weights(...) @ v` in chunks."""
        p = self.dropout if self.training else 0.0
        out: Tensor = ChunkedAttention.apply(  # type: ignore[no-untyped-call]
            Tanh(self.scale),
            q @ self.w1_q,
            k @ self.w1_k,
            v,
            self.w2,
            bias,
            mask,
            p,
            draw_seed() if p else 0,
        )
        return out


class Tanh:
    """scale w . tanh(q + k) for one head at a time; e comes first, so that a sum over it is one product."""

    heads_together = False

    def __init__(self, scale: float) -> None:
        self.scale = scale

    def width(self, q: Tensor) -> int:
        """The hidden units of a score."""
        return q.shape[-1]

    def rows(self, t: int, causal: bool) -> int:
        """Few enough to leave out most of the upper triangle."""
        return -(-t // PARTS) if causal else t

    def forward(self, q: Tensor, k: Tensor, w: Tensor | None) -> tuple[Tensor, Tensor]:
        """The scores [b, 1, c, n], and the hidden units [e, b, c, n]."""
        assert w is not None
        (b, _, c, e), n = q.shape, k.shape[-2]
        q = q[:, 0].permute(2, 0, 1).contiguous()[:, :, :, None]  # [e, b, c, 1]
        k = k[:, 0].permute(2, 0, 1).contiguous()[:, :, None]  # [e, b, 1, n]
        hidden = torch.add(q, k).tanh_()
        return torch.mm(w * self.scale, hidden.view(e, -1)).view(b, 1, c, n), hidden

    def backward(
        self, grad: Tensor, kept: Tensor | None, q: Tensor, k: Tensor, w: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Since tanh' = 1 - tanh^2, the sums over rows and columns of grad and of grad tanh^2."""
        assert w is not None
        assert kept is not None
        dw = torch.mm(kept.view(w.shape[-1], -1), grad.view(-1, 1)).mT * self.scale  # [1, e]
        kept.square_().mul_(grad[:, 0])  # [e, b, c, n]
        outer = w * self.scale  # [1, e]
        dq = (grad.sum(-1)[:, 0, :, None] - kept.sum(-1).permute(1, 2, 0)) * outer  # [b, c, e]
        dk = (grad.sum(-2)[:, 0, :, None] - kept.sum(-2).permute(1, 2, 0)) * outer  # [b, n, e]
        return dq[:, None], dk[:, None], dw
