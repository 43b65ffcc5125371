"""A causal mask that leaks outright: scores of the future set to zero before the softmax."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from torch import Tensor

from heedful.attention.mask import Mask
from heedful.attention.mechanism import CommonOptions, Mechanism
from heedful.attention.softmax import dot_scores
from heedful.attention.zero_after import causal_part, refuse_unsafe


class ZeroScores(Mechanism):
    """Scores of the future become 0, which is a weight of e^0: the future's values flow into the past.

    Padding and other documents are masked before the softmax, as they should be.
    Decoding sees no future and so cannot equal the whole: no cache.
    """

    name = "zero_scores"
    paper = "unsafe by intent: what a mask must not be"
    cost = "t s d"
    causal = cross = bias = explicit_weights = prefix = segments = True
    unsafe = True

    def __init__(self, *, unsafe: bool = False, **common: Unpack[CommonOptions]) -> None:
        refuse_unsafe(self.name, unsafe)
        super().__init__(**common)

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        scores = dot_scores(q, k, self.scale, bias)  # [b, h, t, s]
        past = causal_part(mask, q.shape[-2], k.shape[-2], q.device)
        if past is not None:
            scores = scores.masked_fill(~past, 0.0)
        return replace(mask, causal=False).softmax(scores)
