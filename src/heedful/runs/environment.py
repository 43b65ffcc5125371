"""The environment of a run: versions, processor, threads. Nothing secret; no package is imported."""

from __future__ import annotations

import ctypes
import gc
import importlib.metadata
import os
import platform
import sys
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

from heedful.runs.schemas import Environment

PACKAGES = (
    "heedful", "torch", "numpy", "scipy", "tokenizers", "safetensors", "transformers", "huggingface-hub",
    "pyarrow", "vl-convert-python",
)  # fmt: skip


def environment(
    *, threads: int | None = None, device: str | None = None, precision: str | None = None
) -> Environment:
    import psutil

    return Environment(
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        python=platform.python_version(),
        platform=platform.platform(),
        machine=platform.machine(),
        cpu=cpu_name(),
        cores=usable_cores(),
        threads=threads,
        memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
        host=platform.node(),
        packages=versions(),
        device=device,
        precision=precision,
    )


def versions() -> dict[str, str]:
    """Return the installed versions of the packages that affect numbers."""
    installed = {}
    for name in PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


def usable_cores() -> int:
    """Return the number of cores this process may use; on a cluster fewer than the machine has.

    Not every Slurm binds a job to the cores it was allotted.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    allotted = os.environ.get("SLURM_CPUS_PER_TASK") or os.environ.get("SLURM_CPUS_ON_NODE", "")
    if "SLURM_JOB_ID" in os.environ and allotted.isdigit():
        cores = max(1, min(cores, int(allotted)))
    return cores


def cpu_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.lower().startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def forget_peak_memory() -> None:
    """Restart the measurement of peak memory where possible, for a process that makes several runs.

    What earlier runs have freed goes back to the system first, or it would count for the next one too.
    """
    gc.collect()
    with suppress(OSError, AttributeError, TypeError):  # where the C library is not glibc, or not loaded so
        ctypes.CDLL(None).malloc_trim(0)
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


def peak_memory_gb() -> float:
    """Return the peak memory of this process.

    Read from /proc where there is one: a child's `ru_maxrss` begins with its parent's, which may be larger.
    """
    try:
        status = Path("/proc/self/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) * 1024 / 1e9
    except (OSError, IndexError, ValueError):
        pass
    try:
        import resource
    except ImportError:  # Windows
        import psutil

        memory = psutil.Process().memory_info()
        return float(getattr(memory, "peak_wset", memory.rss)) / 1e9
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e9
