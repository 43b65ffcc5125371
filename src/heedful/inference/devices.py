"""The device that a model computes on, and the context for a precision."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

from heedful.errors import UserError, shorten


def find_device(name: str) -> torch.device:
    """Return the device called `name`; `auto` is CUDA or Metal where available, else the CPU."""
    if name == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise UserError(f'--device "{shorten(name)}": is one of auto, cpu, cuda, cuda:1, mps') from None
    if device.type not in ("cpu", "cuda", "mps") or (device.type != "cuda" and device.index):
        raise UserError(f'--device "{shorten(name)}": is one of auto, cpu, cuda, cuda:1, mps')
    instead = "--device cpu works everywhere"
    if device.type == "cuda" and not torch.cuda.is_available():
        raise UserError(f"--device cuda: this machine or this torch has no CUDA; {instead}")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(f"--device {name}: this machine has {torch.cuda.device_count()} GPUs, from cuda:0 on")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise UserError(f"--device mps: this machine has no Metal; {instead}")
    return device


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return the context that a model computes in with a precision, such as bfloat16."""
    if precision == "float32":
        return nullcontext()
    return torch.autocast(device.type, dtype=torch.bfloat16)
