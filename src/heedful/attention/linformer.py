"""Attention over a fixed number of mixtures of keys."""

from __future__ import annotations

from typing import Literal, Unpack

import torch
from torch import Tensor, nn

from heedful.attention.mask import Mask
from heedful.attention.mechanism import CommonOptions, Mechanism
from heedful.attention.softmax import attend_with_softmax
from heedful.errors import UserError
from heedful.options.types import Positive

Sharing = Literal["nothing", "heads", "all"]


class Linformer(Mechanism):
    """Keys and values projected along the sequence to `rank` slots (Wang et al. 2020, section 4).

    `k_mix` and `v_mix` (E and F there) have one row per position. A sequence of n uses the first n rows,
    and padding is zeroed before the product, so a row of a batch gives what it would give alone. They
    begin with variance 1 / max_len: at full length a slot has the variance of a key. Prefix keys have no
    position: they are beside the slots, unchanged.
    Every slot mixes the whole sequence, so a causal model would see its future: refused.

    `share`: `heads` (default) one pair for all heads; `all` one matrix for keys and values of all heads;
    `nothing` a pair per head.
    """

    name = "linformer"
    paper = "Wang et al. 2020, Linformer: Self-Attention with Linear Complexity, arXiv:2006.04768"
    cost = "(t + s) r d"
    cross = prefix = segments = True

    def __init__(
        self, *, rank: Positive = 64, share: Sharing = "heads", **common: Unpack[CommonOptions]
    ) -> None:
        super().__init__(**common)
        self.rank, self.share = rank, share
        size = (self.n_heads if share == "nothing" else 1, self.max_len, rank)
        self.k_mix = nn.Parameter(torch.empty(size))
        self.v_mix = self.k_mix if share == "all" else nn.Parameter(torch.empty(size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.normal_(self.k_mix, std=self.max_len**-0.5)
        if self.share != "all":
            nn.init.normal_(self.v_mix, std=self.max_len**-0.5)

    def check(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None) -> None:
        super().check(q, k, mask, bias)
        n = k.shape[-2] - mask.prefix
        if n > self.max_len:
            raise UserError(
                f"linformer attention projects {self.max_len} positions (max_len), but there are {n} keys"
            )

    def splits_documents(self, mask: Mask) -> bool:
        """Documents are projected each on its own; rows are those from the first real position on."""
        return mask.segments is not None or mask.padded_left()

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        p = self.dropout if self.training else 0.0
        k_slots, v_slots = self.slots(k, self.k_mix, mask), self.slots(v, self.v_mix, mask)
        return attend_with_softmax(q, k_slots, v_slots, Mask(), None, self.scale, p)

    def slots(self, x: Tensor, mix: Tensor, mask: Mask) -> Tensor:
        """Return the prefix, then `rank` mixtures of the real positions: [b, h, prefix + rank, d]."""
        text = x[:, :, mask.prefix :]
        if mask.keys is not None:
            text = text.masked_fill(~mask.keys.bool()[:, None, :, None], 0.0)
        mixed = mix[:, : text.shape[-2]].mT @ text  # [b, h, rank, d]
        return torch.cat([x[:, :, : mask.prefix], mixed], 2) if mask.prefix else mixed
