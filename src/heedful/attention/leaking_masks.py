"""Two causal masks that leak, by zeros after the softmax and by zeros before it."""

from __future__ import annotations

from dataclasses import replace
from typing import Unpack

from torch import Tensor

from heedful.attention.mask import Mask
from heedful.attention.mechanism import CommonOptions, Mechanism
from heedful.attention.softmax import dot_scores
from heedful.errors import UserError


class LeakingMask(Mechanism):
    """Unsafe by intent: padding and other documents are masked as they should be, the future is not.

    Decoding sees no future and so cannot equal the whole: no cache.
    """

    paper = "unsafe by intent: what a mask must not be"
    cost = "t s d"
    causal = cross = bias = explicit_weights = prefix = segments = True
    unsafe = True

    def __init__(self, *, unsafe: bool = False, **common: Unpack[CommonOptions]) -> None:
        if not unsafe:
            raise UserError(
                f"{self.name} attention leaks the future into the past and is there to show it; "
                "build it with unsafe=True if that is what you want"
            )
        super().__init__(**common)

    def past(self, mask: Mask, scores: Tensor) -> Tensor | None:
        """Return the causal part of a mask [1, 1, t, s]; None if everything may be seen."""
        bare = replace(mask, keys=None, segments=None)
        return bare.allowed(scores.shape[-2], scores.shape[-1], scores.device)


class ZeroAfter(LeakingMask):
    """Softmax over all keys, then zeros at the future: it stays in the denominator, and so leaks.

    With `renormalize` each row is divided by its sum, which makes it equal to masking with minus infinity.
    """

    name = "zero_after"

    def __init__(
        self, *, renormalize: bool = False, unsafe: bool = False, **common: Unpack[CommonOptions]
    ) -> None:
        super().__init__(unsafe=unsafe, **common)
        self.renormalize = renormalize

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        weights = replace(mask, causal=False).softmax(dot_scores(q, k, self.scale, bias))  # [b, h, t, s]
        past = self.past(mask, weights)
        weights = weights if past is None else weights * past
        if past is None or not self.renormalize:
            return weights
        total = weights.sum(-1, keepdim=True)
        return weights / total.masked_fill(total == 0.0, float("inf"))


class ZeroScores(LeakingMask):
    """Scores of the future become 0, which is a weight of e^0: the future's values flow into the past."""

    name = "zero_scores"

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        scores = dot_scores(q, k, self.scale, bias)  # [b, h, t, s]
        past = self.past(mask, scores)
        scores = scores if past is None else scores.masked_fill(~past, 0.0)
        return replace(mask, causal=False).softmax(scores)
