"""States of frozen models, computed once and kept in the cache: an array on disk, memory-mapped when read.

An entry is named by everything that its numbers depend on, sealed like all entries of the cache, and removed
when newer ones need its room: all entries together take at most `HEEDFUL_FEATURES_GB` gigabytes.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data import cache
from heedful.errors import UserError
from heedful.logs import warn
from heedful.runs.files import write_json
from heedful.runs.json_files import read_json_if_intact

KIND = "features"
LIMIT = "HEEDFUL_FEATURES_GB"
DEFAULT_LIMIT_GB = 10.0
SPARE_BYTES = 2**30
"""Room that the cache leaves on the disk for everything else."""
TRIES = 3
Array = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Features:
    """An array of states [n, width], and the seconds that it took to compute, now or when it was."""

    states: Array
    seconds: float


def load_or_compute(
    key: str, shape: tuple[int, int], dtype: str, fill: Callable[[Array], None], *, in_memory: bool = False
) -> Features:
    """Return the features with this key; `fill` writes them into an array if the cache does not have them.

    Features that the cache has no room for are refused, or with `in_memory` computed each time.
    """

    def write(folder: Path) -> None:
        began = time.monotonic()
        fill(create_array(folder / "states.bin", shape, dtype))
        facts = {"shape": shape, "dtype": dtype, "seconds": time.monotonic() - began}
        write_json(folder / "facts.json", facts)

    entry = cache.get_cache_folder() / KIND / key
    try:
        for _ in range(TRIES):  # another process may make room before the entry is opened
            if not cache.is_intact(entry):
                make_room(entry.parent, shape[0] * shape[1] * np.dtype(dtype).itemsize)
            if (features := read_entry(cache.build_once(KIND, key, write))) is not None:
                return features
        raise UserError(f"{entry}: is removed by others as soon as it is written; {LIMIT} allows more room")
    except UserError as error:
        if not in_memory:
            raise
        warn(f"the features are not cached ({error})")
    began, states = time.monotonic(), np.zeros(shape, dtype)
    fill(states)
    return Features(states, time.monotonic() - began)


def read_entry(folder: Path) -> Features | None:
    """Map an entry, and note that it was used; None if it was removed."""
    facts = read_json_if_intact(folder / "facts.json")
    if facts is None:
        return None
    shape, dtype = tuple(facts["shape"]), facts["dtype"]
    try:
        states = (
            np.memmap(folder / "states.bin", dtype, "r", shape=shape)
            if all(shape)
            else np.zeros(shape, dtype)
        )
        os.utime(folder)
    except FileNotFoundError:
        return None
    except PermissionError:
        pass  # the entry is another user's
    return Features(np.asarray(states), facts["seconds"])


def create_array(path: Path, shape: tuple[int, int], dtype: str) -> Array:
    """Return a new array on disk. Its room is reserved: writing to a mapped file on a full disk is fatal."""
    size = shape[0] * shape[1] * np.dtype(dtype).itemsize
    with path.open("wb") as file:
        if size and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size)
        else:
            file.truncate(size)
    return np.memmap(path, dtype, "r+", shape=shape) if size else np.zeros(shape, dtype)


def make_room(parent: Path, size: int) -> None:
    """Remove the entries that were not used for longest, until a new one of `size` bytes fits."""
    limit = read_limit()
    if size > limit:
        raise UserError(
            f"the features take {size / 1e9:.1f} GB, and the cache of features has {limit / 1e9:.1f} GB; "
            f"{LIMIT}={size / 1e9 + 1:.0f} allows more"
        )
    folders = [path for path in parent.glob("*") if not path.name.startswith(".")] if parent.is_dir() else []
    entries = sorted(folders, key=last_use)
    sizes = {folder: folder_size(folder) for folder in entries}
    while sizes and (sum(sizes.values()) + size > limit or free_bytes(parent) < size + SPARE_BYTES):
        oldest = next(iter(sizes))
        shutil.rmtree(oldest, ignore_errors=True)
        del sizes[oldest]
    if (free := free_bytes(parent)) < size + SPARE_BYTES:
        raise UserError(
            f"the features take {size / 1e9:.1f} GB, and {cache.get_cache_folder()} has {free / 1e9:.1f} GB "
            f"left, of which 1 stays free; set HEEDFUL_CACHE to a folder with room"
        )


def read_limit() -> float:
    text = os.environ.get(LIMIT, "")
    try:
        gigabytes = float(text) if text else DEFAULT_LIMIT_GB
    except ValueError:
        gigabytes = -1.0
    if not gigabytes >= 0:
        raise UserError(f'{LIMIT}="{text}": is not a number of gigabytes')
    return gigabytes * 1e9


def last_use(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:
        return 0.0


def folder_size(folder: Path) -> int:
    total = 0
    for path in folder.glob("*"):
        with suppress(OSError):
            total += path.stat().st_size
    return total


def free_bytes(folder: Path) -> int:
    """Return the free space where a folder is, or will be."""
    existing = next(path for path in (folder, *folder.parents) if path.exists())
    return shutil.disk_usage(existing).free
