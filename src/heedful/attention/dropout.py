"""Dropout from 16-bit random words, drawn again in the backward pass instead of being kept.

Grade: same distribution. On a CPU torch draws one random number per element, one by one; a 64-bit word of
SFC64 gives four. Elsewhere torch's own dropout is used. The seed comes from torch's generator, so
`torch.manual_seed` decides everything.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

WORDS = 1 << 16


class Keep:
    """A stream of keep masks: the same seed gives the same masks in the same order."""

    def __init__(self, p: float, seed: int) -> None:
        self.threshold = round(p * WORDS)
        self.scale = 1.0 / (1.0 - self.threshold / WORDS)
        self.bits = np.random.SFC64(seed)

    def draw(self, x: Tensor) -> Tensor:
        """Draw the next mask, in the shape and type of x: 1 = keep, 0 = drop.

        Written as numbers, not booleans: torch multiplies by a boolean several times slower.
        """
        words = self.bits.random_raw((x.numel() + 3) // 4).view(np.int16)[: x.numel()]
        kept = torch.empty_like(x, memory_format=torch.contiguous_format, requires_grad=False)
        drawn = torch.from_numpy(words).view(x.shape).to(x.device)
        return torch.ge(drawn, self.threshold - WORDS // 2, out=kept)


def draw_seed() -> int:
    return int(torch.empty((), dtype=torch.int64).random_())


class CheapDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, p: float, seed: int) -> Tensor:
        ctx.p, ctx.seed = p, seed
        keep = Keep(p, seed)
        return keep.draw(x).mul_(x).mul_(keep.scale)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        keep = Keep(ctx.p, ctx.seed)
        return keep.draw(grads[0]).mul_(grads[0]).mul_(keep.scale), None, None


def dropout(x: Tensor, p: float, training: bool = True) -> Tensor:
    """Zero each element with probability p (to 1/65536) and scale the rest; nothing outside training."""
    if not training or p == 0.0:
        return x
    if x.device.type != "cpu" or p >= 1.0:
        return F.dropout(x, p)
    result: Tensor = CheapDropout.apply(x, p, draw_seed())  # type: ignore[no-untyped-call]
    return result


class Dropout(nn.Module):
    def __init__(self, p: float) -> None:
        super().__init__()
        self.p = p

    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"
