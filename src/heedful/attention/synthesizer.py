"""Attention that never looks at a key."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor, nn

from heedful.attention.mask import Mask
from heedful.attention.mechanism import CommonOptions, Mechanism
from heedful.errors import UserError
from heedful.options.types import Positive


class Synthesizer(Mechanism):
    """Dense Synthesizer (Tay et al. 2021, section 3.1): scores of all positions from q alone.

    Two layers map each query to max_len scores, one per key position, counted from the start of the document.
    Prefix keys have no position and keys of another sequence are never looked at, so neither is offered.
    The scale is applied before the second layer, which begins with variance 1.
    """

    name = "synthesizer"
    paper = "Tay et al. 2021, Synthesizer: Rethinking Self-Attention, arXiv:2005.00743"
    cost = "t s d"
    causal = bias = explicit_weights = segments = cache = True

    def __init__(self, *, d_hidden: Positive | None = None, **common: Unpack[CommonOptions]) -> None:
        super().__init__(**common)
        self.d_hidden = self.d_head if d_hidden is None else d_hidden
        self.w1 = nn.Parameter(torch.empty(self.n_heads, self.d_head, self.d_hidden))
        self.b1 = nn.Parameter(torch.empty(self.n_heads, 1, self.d_hidden))
        self.w2 = nn.Parameter(torch.empty(self.n_heads, self.d_hidden, self.max_len))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.w1, std=self.d_head**-0.5)
        nn.init.zeros_(self.b1)
        nn.init.normal_(self.w2)

    def check(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None) -> None:
        super().check(q, k, mask, bias)
        if k.shape[-2] > self.max_len:
            raise UserError(
                f"synthesizer attention has {self.max_len} positions (max_len), but {k.shape[-2]} keys came"
            )

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """softmax(scale W2 relu(W1 q + b1) + bias) over the visible positions."""
        hidden = torch.relu(q @ self.w1 + self.b1)  # [b, h, t, e]
        b, s = k.shape[0], k.shape[-2]
        if mask.segments is None and not mask.padded_left():
            scores = hidden @ self.w2[:, :, :s]  # [b, h, t, s]
        else:
            at = mask.positions(b, s).to(k.device)  # [b, s]
            scores = hidden @ self.w2[:, :, at].permute(2, 0, 1, 3)
        scores = self.scale * scores
        return mask.softmax(scores if bias is None else scores + bias)
