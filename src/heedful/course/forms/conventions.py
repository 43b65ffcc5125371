"""What students pass as a mask, and how to find out which is meant."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

Convention = Callable[[Tensor], Tensor]
CONVENTIONS: dict[str, Convention] = {
    "bool, True = attend": lambda allowed: allowed,
    "1 = attend": lambda allowed: allowed.long(),
    "1.0 = attend": lambda allowed: allowed.double(),
    "bool, True = masked": lambda allowed: ~allowed,
    "1 = masked": lambda allowed: (~allowed).long(),
    "1.0 = masked": lambda allowed: (~allowed).double(),
    "added, -inf = masked": lambda allowed: torch.zeros(allowed.shape).masked_fill(~allowed, -math.inf),
    "added, -1e9 = masked": lambda allowed: torch.zeros(allowed.shape).masked_fill(~allowed, -1e9),
}
"""What students pass as a mask. Calibration finds out which is meant."""


def choose(candidates: list[Any], score: Callable[[Any], float], default: Any) -> Any:
    """Return the first candidate with the smallest score; one that raises is out."""
    best, least = default, math.inf
    for candidate in candidates:
        try:
            points = score(candidate)
        except Exception:  # a wrong guess may fail anywhere in the student's code
            continue
        if points < least - 1e-6:
            best, least = candidate, points
    return best
