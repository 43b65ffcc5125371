"""A causal mask that leaks: weights of the future set to zero after the softmax."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

import torch
from torch import Tensor

from heedful.attention.mask import Mask
from heedful.attention.mechanism import CommonOptions, Mechanism
from heedful.attention.softmax import dot_scores
from heedful.errors import UserError


class ZeroAfter(Mechanism):
    """Softmax over all keys, then zeros at the future: it stays in the denominator, and so leaks.

    With `renormalize` each row is divided by its sum, which makes it equal to masking with minus infinity.
    Padding and other documents are masked before the softmax, as they should be.
    Decoding sees no future and so cannot equal the whole: no cache.
    """

    name = "zero_after"
    paper = "unsafe by intent: what a mask must not be"
    cost = "t s d"
    causal = cross = bias = explicit_weights = prefix = segments = True
    unsafe = True

    def __init__(
        self, *, renormalize: bool = False, unsafe: bool = False, **common: Unpack[CommonOptions]
    ) -> None:
        refuse_unsafe(self.name, unsafe)
        super().__init__(**common)
        self.renormalize = renormalize

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        weights = replace(mask, causal=False).softmax(dot_scores(q, k, self.scale, bias))  # [b, h, t, s]
        past = causal_part(mask, q.shape[-2], k.shape[-2], q.device)
        if past is None:
            return weights
        weights = weights * past
        if not self.renormalize:
            return weights
        total = weights.sum(-1, keepdim=True)
        return weights / total.masked_fill(total == 0.0, float("inf"))


def causal_part(mask: Mask, t: int, s: int, device: torch.device) -> Tensor | None:
    return replace(mask, keys=None, segments=None).allowed(t, s, device)


def refuse_unsafe(name: str, unsafe: bool) -> None:
    if not unsafe:
        raise UserError(
            f"{name} attention leaks the future into the past and is there to show it; "
            "build it with unsafe=True if that is what you want"
        )
