"""Learning-rate schedules: a factor for each step, as a pure function of the step."""

from __future__ import annotations

import math
from collections.abc import Callable

from heedful.errors import UserError, unknown

DECAY_SHARE = 0.2
"""The share of a warm-up-stable-decay run in which the rate falls to zero."""


def cosine(progress: float) -> float:
    """Fall along half a cosine to zero at the end; never rises again (Loshchilov and Hutter 2017)."""
    return 0.5 * (1.0 + math.cos(math.pi * progress))


def wsd(progress: float) -> float:
    """Stay, then fall in a straight line over the last fifth (warm-up, stable, decay; Hu et al. 2024)."""
    return min(1.0, (1.0 - progress) / DECAY_SHARE)


def decay_begins(name: str, total: int, warmup: int) -> int:
    """Return after how many steps a schedule with a stable part begins to fall; -1 if it has no such part.

    Up to there a run is the same whatever its length.
    """
    return warmup + int((1 - DECAY_SHARE) * max(0, total - warmup)) if name == "wsd" else -1


SCHEDULES: dict[str, Callable[[float], float]] = {
    "constant": lambda progress: 1.0,
    "linear": lambda progress: 1.0 - progress,
    "cosine": cosine,
    "wsd": wsd,
}


def warmup_steps(warmup: float, total: int) -> int:
    """Read a warm-up: below 1 it is a share of all steps, from 1 on a number of steps."""
    if warmup < 0:
        raise UserError(f"--warmup {warmup}: must not be negative")
    return round(warmup * total) if warmup < 1 else int(warmup)


def factor(name: str, step: int, total: int, warmup: int) -> float:
    """Return the factor of step 0, 1, ... total - 1; it is never zero in the first step."""
    if name not in SCHEDULES:
        raise unknown("schedule", name, SCHEDULES)
    if step < warmup:
        return (step + 1) / (warmup + 1)
    rest = max(1, total - warmup)
    return max(0.0, SCHEDULES[name](min(1.0, (step - warmup) / rest)))
