"""Threads, random generators and gradient clipping of one training step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Use at most this many threads inside, and the former number afterwards."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if number is None else min(number, before))
    try:
        yield
    finally:
        torch.set_num_threads(before)


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed the CPU's generator and the device's; `torch.manual_seed` takes a millisecond, for all devices."""
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.manual_seed(seed)
    elif device.type == "mps":
        torch.mps.manual_seed(seed)


def clip(gradients: list[Tensor], limit: float) -> None:
    """Scale gradients down to a total norm of `limit`, as torch does, but leave small ones untouched."""
    if not gradients:
        return
    norms = torch.stack(torch._foreach_norm(gradients))
    factor = limit / (torch.linalg.vector_norm(norms) + 1e-6)
    if factor.device.type == "cpu" and factor >= 1:
        return
    torch._foreach_mul_(gradients, factor.clamp(max=1.0))
