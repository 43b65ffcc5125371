"""The machine that a run computes on: device, precision, threads and memory settings."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import torch

from heedful.inference.devices import find_device
from heedful.logs import notice
from heedful.options.training import LoopOptions
from heedful.process_state import is_guest
from heedful.training.precision import begin_measurement, choose_precision
from heedful.training.ranks import current_ranks

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Parameters of glibc's mallopt: how much freed memory is kept, and the size from which blocks are mapped."""


@dataclass(frozen=True)
class Machine:
    device: torch.device
    precision: str
    threads: int


def begin_to_resolve(options: LoopOptions) -> None:
    """Start what `resolve_machine` has to measure, beside the reading of data and model."""
    if current_ranks().alone:
        begin_measurement(options.precision, find_device(options.device))


def resolve_machine(options: LoopOptions) -> Machine:
    """Choose device, precision and threads, set the threads, and print a notice if a measurement decided."""
    threads = options.threads or current_ranks().threads
    torch.set_num_threads(threads)
    device = current_ranks().device(find_device(options.device))
    precision, measured = choose_precision(options.precision, device)
    if measured is not None:
        notice_once(measured)
    return Machine(device, precision, threads)


@cache
def notice_once(text: str) -> None:
    """Log a notice that is true for all runs of this process, the first time only."""
    notice(text)


def keep_freed_memory() -> None:
    """Let the C library keep freed memory, so that a step does not have to map its pages again.

    This helps where all steps have similar shapes; where shapes differ a lot, the kept memory never fits and
    only grows. Without glibc nothing changes, nor in a process that another program owns.
    """
    if is_guest():  # what was set before cannot be read, so it could not be put back
        return
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(M_MMAP_THRESHOLD, 2**25)
        library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)
