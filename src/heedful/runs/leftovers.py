"""What killed processes leave: temporary files and folders, and folders whose replacement was interrupted.

A temporary name says which process of which machine made it. What no living process owns is removed by the
next command on the folder. Of the processes of other machines nothing is known: theirs are kept for a day.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import time
from contextlib import suppress
from functools import cache
from pathlib import Path

TEMPORARY, FORMER = ".tmp", ".former"
OWNED = re.compile(r"\..*\.(?P<pid>\d+)-(?:(?P<machine>[0-9a-f]{6})-)?[0-9a-f]{8}\.tmp")
"""A temporary name; those of older versions do not name the machine."""
DAY = 86_400.0


@cache
def machine_mark() -> str:
    """Return six digits that differ between machines, and between two starts of one."""
    boot = ""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    return hashlib.blake2b(f"{platform.node()} {boot}".encode(), digest_size=3).hexdigest()


def is_abandoned(path: Path) -> bool:
    """Whether no living process owns a temporary file or folder."""
    match = OWNED.fullmatch(path.name)
    if match is None:
        return False
    if match["machine"] == machine_mark():
        import psutil

        return not psutil.pid_exists(int(match["pid"]))
    try:
        return time.time() - path.lstat().st_mtime > DAY
    except OSError:
        return False


def remove_leftover(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def former_folder(target: Path) -> Path:
    return target.parent / f".{target.name}{FORMER}"


def clear_leftovers(folder: Path, start: str = ".") -> None:
    """Remove what killed processes left in a folder, below names that begin with `start`.

    A folder whose replacement was interrupted is restored, unless a living process is replacing it. A folder
    that cannot be read or written is left as it is.
    """
    try:
        names = [entry.name for entry in os.scandir(folder) if entry.name.startswith(start)]
    except OSError:
        return
    for name in [name for name in names if name.endswith(TEMPORARY)]:
        if is_abandoned(folder / name):
            remove_leftover(folder / name)
    for name in [name for name in names if name.endswith(FORMER)]:
        target = folder / name[1 : -len(FORMER)]
        if any(
            other.startswith(f".{target.name}.") and (folder / other).exists()
            for other in names
            if other.endswith(TEMPORARY)
        ):
            continue
        with suppress(OSError):
            if not target.exists():
                (folder / name).rename(target)
        remove_leftover(folder / name)


def clear_study_leftovers(folder: Path) -> None:
    """Remove what killed processes left in a study: in its runs, their checkpoints and its leases.

    Run folders in which nothing was written yet are removed too; who begins a run makes its folder.
    """
    runs = folder / "runs"
    for place in (folder, runs, folder / "leases", folder / "jobs"):
        clear_leftovers(place)
    with suppress(OSError):
        for run in [Path(entry.path) for entry in os.scandir(runs) if entry.is_dir(follow_symlinks=False)]:
            clear_run_leftovers(run)
            with suppress(OSError):
                run.rmdir()  # only if it is empty


def clear_run_leftovers(run: Path) -> None:
    """Remove what killed processes left in a run and its checkpoints."""
    clear_leftovers(run)
    clear_leftovers(run / "checkpoints")
