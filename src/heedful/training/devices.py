"""Where a step is computed: the device, its threads and random generators, and the size of its gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from heedful.errors import UserError


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Compute with so many threads, and then with as many as before."""
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


def find_device(name: str) -> torch.device:
    """The device called `name`; `auto` takes what there is."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f'--device "{name}": is one of auto, cpu, cuda, cuda:1, mps') from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(
            "--device cuda: this machine or this torch has no CUDA; --device cpu works everywhere"
        )
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UserError("--device mps: this machine has no Metal; --device cpu works everywhere")
    return device
