"""The machine that a run computes on: device, precision, threads and memory settings."""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import torch

from heedful.inference.devices import find_device
from heedful.options.training import LoopOptions
from heedful.training.precision import choose_precision
from heedful.training.ranks import current_ranks

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt: how much freed memory is kept, and the size from which blocks are mapped."""


@dataclass(frozen=True)
class Machine:
    device: torch.device
    precision: str
    threads: int


def resolve_machine(options: LoopOptions) -> Machine:
    """Choose device, precision and threads, set the threads, and print a notice if a measurement decided."""
    threads = options.threads or current_ranks().threads
    torch.set_num_threads(threads)
    device = current_ranks().device(find_device(options.device))
    precision, notice = choose_precision(options.precision, device)
    if notice is not None:
        print_once(notice)
    return Machine(device, precision, threads)


@cache
def print_once(notice: str) -> None:
    """Print a notice that is true for all runs of this process, the first time only."""
    print(f"heedful: {notice}", file=sys.stderr)


def keep_freed_memory() -> None:
    """Let the C library keep freed memory, so that a step does not have to map its pages again.

    This helps where all steps have similar shapes; where shapes differ a lot, the kept memory never fits and
    only grows. Without glibc nothing changes.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, 2**25)
        library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
