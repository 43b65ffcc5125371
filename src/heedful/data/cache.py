"""The cache folder: each entry is built once, named by a hash of its inputs, and written atomically.

An entry is a folder. It is built beside its final location and then renamed, so that a reader never sees half
of it and two processes never disturb each other. `seal.json` holds the size and hash of each of its files; an
entry that does not match its seal is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.paths import find_cache_folder
from heedful.runs.files import umask, write_json
from heedful.runs.json_files import read_json_if_intact

MEMO_FROM_BYTES = 64 * 2**20
SETTLED_NS = 3 * 10**9
ABANDONED_SECONDS = 24 * 3600
SEAL = "seal.json"

_intact: set[tuple[str, int]] = set()


PRIVATE = 0o700
"""The mode of folders for their owner alone."""


def get_cache_folder() -> Path:
    """Return the folder of everything that can be rebuilt: `$HEEDFUL_CACHE`, or else `~/.cache/heedful`.

    It has texts of the user: a new one is for its owner alone; one that was made to be shared stays so.
    """
    folder = find_cache_folder()
    with suppress(OSError):  # who writes there says what is wrong
        folder.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
    return folder


def digest(*parts: Any) -> str:
    """Return a short hash of JSON values, which names something by everything it depends on."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def hash_file(path: Path) -> str:
    """Return the hash of a file's bytes, computed in constant memory."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def file_identity(path: Path) -> list[int | str]:
    """Return what changes with any write to a file: ctime does, even when mtime is set back."""
    stat = path.stat()
    return [str(path.resolve()), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def hash_content(path: Path) -> str:
    """Return the hash of a file's bytes; a large file is read again only after it has been written.

    A stored hash is used only if the file had not been written for some seconds when it was hashed, because a
    coarse clock may give two writes the same time.
    """
    try:
        before = file_identity(path)
        if int(before[3]) < MEMO_FROM_BYTES:
            return hash_file(path)
        memo = get_cache_folder() / "hashes" / f"{digest(before[0])}.json"
        stored = read_json_if_intact(memo)
        if stored and stored.get("identity") == before:
            return str(stored["hash"])
        now = time.time_ns()
        file_hash = hash_file(path)
        if file_identity(path) != before:
            raise UserError(f"{path}: changed while it was being read; try again when it is complete")
    except OSError as error:
        raise UserError(f"{path}: {describe_os_error(error)}") from None
    if now - max(int(before[4]), int(before[5])) > SETTLED_NS:
        write_json(memo, {"identity": before, "hash": file_hash})
    return file_hash


def describe_os_error(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def write_lines(path: Path, lines: Iterable[str]) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.writelines(line + "\n" for line in lines)
            Path(name).chmod(0o666 & ~umask())  # a temporary file is private, a shared cache is not
            Path(name).replace(path)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({describe_os_error(error)})") from None


def build_once(kind: str, key: str, fill: Callable[[Path], object], parent: Path | None = None) -> Path:
    """Return the folder of a cache entry; `fill(folder)` writes its files if it is absent or damaged.

    Entries of a kind are in a folder of that name below `parent`, which is by default the cache.
    """
    folder = (parent or get_cache_folder()) / kind / key
    if is_intact(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder.parent)
        new = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".making-"))
    except OSError as error:
        raise UserError(
            f"{folder.parent}: {describe_os_error(error)}; set HEEDFUL_CACHE to a folder that can be written"
        ) from None
    try:
        fill(new)
        seal(new)
        new.chmod(0o777 & ~umask())
        move_into_place(new, folder)
    except OSError as error:
        if error.filename and not str(error.filename).startswith(str(new)):
            raise
        raise UserError(
            f"{folder.parent}: {describe_os_error(error)}; set HEEDFUL_CACHE to a folder with room"
        ) from None
    finally:
        shutil.rmtree(new, ignore_errors=True)
    return folder


def move_into_place(new: Path, folder: Path) -> None:
    """Rename a finished entry to its final name; one that another process finished first is kept."""
    for _ in range(100):
        try:
            new.rename(folder)
            return
        except OSError:
            if is_intact(folder):
                return
            damaged = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".making-"))
            try:
                folder.rename(damaged / "damaged")
            except FileNotFoundError:
                continue  # another process has just moved it away
            except OSError as error:
                raise UserError(
                    f"{folder}: is damaged or another user's, and cannot be replaced "
                    f"({describe_os_error(error)}); set HEEDFUL_CACHE to a folder of your own"
                ) from None
            finally:
                shutil.rmtree(damaged, ignore_errors=True)
    raise UserError(f"{folder}: cannot be replaced; remove it")


def seal(folder: Path) -> None:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != SEAL)
    sealed = {path.relative_to(folder).as_posix(): [path.stat().st_size, hash_file(path)] for path in files}
    write_json(folder / SEAL, sealed)


def is_intact(folder: Path) -> bool:
    """Return whether an entry is complete and undamaged; hashes are compared once per process."""
    sealed = read_json_if_intact(folder / SEAL)
    if sealed is None:
        return False
    try:
        if any((folder / name).stat().st_size != size for name, (size, _) in sealed.items()):
            return False
        mark = (str(folder), (folder / SEAL).stat().st_mtime_ns)
        if mark not in _intact:
            if any(hash_file(folder / name) != expected for name, (_, expected) in sealed.items()):
                return False
            _intact.add(mark)
    except (OSError, ValueError, TypeError):
        return False
    return True


def remove_abandoned(parent: Path) -> None:
    """Remove unfinished entries of processes that died at least a day ago."""
    for leftover in parent.glob(".making-*"):
        with suppress(OSError):
            if time.time() - leftover.stat().st_mtime > ABANDONED_SECONDS:
                shutil.rmtree(leftover, ignore_errors=True)
