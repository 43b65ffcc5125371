"""How much memory there is for this process: of the machine, of its control groups, and of its own limit.

What is about to be allocated is compared with it first: an allocation that fails ends a process, or another.
"""

from __future__ import annotations

import math
import os
from contextlib import suppress
from pathlib import Path

from heedful.errors import UserError

GB = 1e9
CGROUPS, OWN_CGROUP = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def free_gb() -> float:
    """Return the free memory of this machine, or of this job's share of it."""
    import psutil

    free = min(float(psutil.virtual_memory().available) / GB, limit_gb())
    with suppress(OSError, IndexError, ValueError):
        for line in OWN_CGROUP.read_text().splitlines():
            _, controllers, inside = line.split(":", 2)
            if not controllers:
                free = min(free, share_gb(CGROUPS, inside, "memory.max", "memory.current"))
            elif "memory" in controllers.split(","):
                files = ("memory.limit_in_bytes", "memory.usage_in_bytes")
                free = min(free, share_gb(CGROUPS / "memory", inside, *files))
    return free


def share_gb(root: Path, inside: str, most: str, used: str) -> float:
    """Return the free memory of a control group and those above it, as on a cluster or in a container."""
    free = math.inf
    group = root / inside.lstrip("/")
    for folder in (group, *group.parents):
        if folder.is_relative_to(root) and (folder / most).is_file():
            limit = (folder / most).read_text().strip()
            if limit != "max":
                facts = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
                cached = int(facts.get("total_inactive_file", facts.get("inactive_file", 0)))
                held = int((folder / used).read_text()) - cached  # files in memory make room when asked
                free = min(free, max(0, int(limit) - held) / GB)
    return free


def limit_gb() -> float:
    """Return how much the process may still allocate below its own limit (`ulimit -v`)."""
    try:
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit == resource.RLIM_INFINITY:
            return math.inf
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        return max(0, limit - pages * os.sysconf("SC_PAGE_SIZE")) / GB
    except (ImportError, OSError, ValueError, IndexError):
        return math.inf


def require_memory(needed: float, what: str, remedy: str = "") -> None:
    """Refuse what needs more bytes than are free; `what` names it, and is the start of the message."""
    if needed / GB <= 1 or needed / GB <= free_gb():  # a gigabyte is not worth a look at the control groups
        return
    size = f"{needed / GB:,.1f}" if needed < 1e15 else f"{needed / GB:.0e}"
    raise UserError(f"{what} needs {size} GB of memory; {free_gb():,.1f} GB are free{remedy}")
