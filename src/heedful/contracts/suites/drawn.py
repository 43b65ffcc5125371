"""Inputs that the suites draw."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from heedful.contracts.asking import Inputs


def draw(
    batch: int, t: int, s: int, width: int, seed: int = 0, dtype: torch.dtype = torch.float32
) -> dict[str, Tensor]:
    """Return q [b, t, d], k [b, s, d] and v [b, s, d] of moderate size."""
    generator = torch.Generator().manual_seed(seed)
    return {
        name: torch.randn(batch, n, width, generator=generator, dtype=dtype)
        for name, n in (("q", t), ("k", s), ("v", s))
    }


def causal_mask(n: int, batch: int = 1) -> Tensor:
    return torch.ones(n, n, dtype=torch.bool).tril().expand(batch, n, n).clone()


def shapes(inputs: Inputs) -> dict[str, Any]:
    return {
        f"shape of {name}": list(value.shape) for name, value in inputs.items() if isinstance(value, Tensor)
    }
