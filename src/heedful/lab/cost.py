"""Time and memory of one mechanism at several lengths, in a child process with a time limit.

    measure(CostQuery("performer", (256, 512), causal=True, options={"features": 256}), seconds=30)

The child is this module: `python -m heedful.lab.cost QUERY`. It prints one line of JSON per length, so that
what was measured before the limit is kept.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from heedful.runs.environment import forget_peak_memory

if TYPE_CHECKING:
    from torch import Tensor

HEADS, WIDTH = 8, 64
OPTIONS: dict[str, dict[str, Any]] = {
    "linformer": {"rank": 256},
    "performer": {"features": 256, "seed": 0},
    "bigbird": {"block": 64, "window": 3, "n_global": 2, "n_random": 3},
}
"""256 features, rank 256, 8 blocks of 64."""
REPEATS, ENOUGH = 3, 0.5
"""Passes per length, if all of them together take no longer than about this many seconds."""
M_MMAP_THRESHOLD, SMALL, LARGE = -3, 1 << 18, 1 << 25
"""glibc's name for it; the size for measuring memory, and the largest that glibc comes to by itself."""
STATUS = Path("/proc/self/status")


@dataclass(frozen=True)
class CostQuery:
    """What a child process measures: forward and backward, one text."""

    name: str
    lengths: tuple[int, ...]
    causal: bool
    options: dict[str, Any] = field(default_factory=dict)
    explicit: bool = False
    """Through the weights, all made at once, whatever the mechanism would rather do."""
    heads: int = HEADS
    width: int = WIDTH


@dataclass(frozen=True)
class LengthCost:
    """The cost of one length. Memory is the rise of the process's peak; None where it is not known."""

    length: int
    forward_ms: float
    backward_ms: float
    mb: float | None
    finite: bool


@dataclass(frozen=True)
class CostCurve:
    """The lengths that were measured, and why not more of them."""

    measured: tuple[LengthCost, ...]
    limit: str = ""
    failed: bool = False
    """Whether the child ended by itself, with an error."""


def measure(job: CostQuery, seconds: float) -> CostCurve:
    """Run a child; its time limit is for all lengths together."""
    command = [sys.executable, "-m", "heedful.lab.cost", json.dumps(asdict(job))]
    limit = ""
    try:  # subprocess.run kills the child when the limit is met, or when this process is interrupted
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        out, err, status = done.stdout, done.stderr, done.returncode
    except subprocess.TimeoutExpired as expired:
        out, err, status = (expired.stdout or b"").decode(), "", 0
        limit = f"time limit of {seconds:g} s"
    lengths = tuple(LengthCost(**json.loads(line)) for line in out.splitlines() if line.endswith("}"))
    if limit or not status:
        return CostCurve(lengths, limit)
    return CostCurve(lengths, (err.strip().splitlines() or [f"ended with {status}"])[-1], failed=True)


def read_memory_mb(what: str) -> float | None:
    """Return VmRSS, the memory in use, or VmHWM, its peak (getrusage would include the parent's peak)."""
    if not STATUS.exists():
        return None
    lines = STATUS.read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1024


def return_freed_memory(size: int) -> None:
    """Let glibc return freed pieces of this size at once: what it keeps would count in the peak."""
    adjust = getattr(ctypes.CDLL(None), "mallopt", None) if STATUS.exists() else None
    if adjust is not None:
        adjust(M_MMAP_THRESHOLD, size)


def read_available_mb() -> float:
    return float(psutil.virtual_memory().available) / 2**20


def make_pass(job: CostQuery) -> Callable[[int], tuple[float, float, bool]]:
    """Return a function that runs one length: the times of both passes, and whether all is finite."""
    import torch

    from heedful.attention import Mask, make

    mechanism = make(job.name, n_heads=job.heads, d_head=job.width, max_len=max(job.lengths), **job.options)
    mask = Mask(causal=job.causal)

    def run(length: int) -> tuple[float, float, bool]:
        q, k, v = (torch.randn(1, job.heads, length, job.width, requires_grad=True) for _ in range(3))
        start = time.perf_counter()
        out: Tensor = mechanism.weights(q, k, mask) @ v if job.explicit else mechanism(q, k, v, mask)
        middle = time.perf_counter()
        out.sum().backward()  # type: ignore[no-untyped-call]
        end = time.perf_counter()
        finite = all(bool(x.isfinite().all()) for x in (out, v.grad) if x is not None)
        return 1000 * (middle - start), 1000 * (end - middle), finite

    return run


def measure_lengths(job: CostQuery) -> None:
    """Print the cost of each length, as the child process."""
    import torch

    torch.manual_seed(0)
    run = make_pass(job)
    run(min(32, *job.lengths))
    before = read_memory_mb("VmRSS")
    for length in job.lengths:
        return_freed_memory(SMALL)
        forget_peak_memory()  # a system that refuses keeps the old one, which lengths exceed in turn
        taken = [run(length)]
        peak = read_memory_mb("VmHWM")
        return_freed_memory(LARGE)
        while len(taken) < REPEATS and sum(f + b for f, b, _ in taken) < 1000 * ENOUGH:
            taken.append(run(length))
        forward, backward, finite = zip(*taken, strict=True)
        memory = None if before is None or peak is None else peak - before
        cost = LengthCost(length, min(forward), min(backward), memory, all(finite))
        print(json.dumps(asdict(cost)), flush=True)


if __name__ == "__main__":
    measure_lengths(CostQuery(**json.loads(sys.argv[1])))
