"""The cache folder: entries made once, named by what they are made of, written whole or not at all.

An entry is a folder. It is built beside its final place and renamed into it, so that a reader never sees
half of one and two processes never disturb each other. `seal.json` holds the size and hash of each of its
files: an entry that does not match its seal is built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.runs.files import umask

MEMO_FROM_BYTES = 64 * 2**20
SETTLED_NS = 3 * 10**9
ABANDONED_SECONDS = 24 * 3600
SEAL = "seal.json"

_intact: set[tuple[str, int]] = set()


def get_cache_folder() -> Path:
    """Give the folder of everything that can be made again: `$HEEDFUL_CACHE`, else `~/.cache/heedful`."""
    if own := os.environ.get("HEEDFUL_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "heedful"


def digest(*parts: Any) -> str:
    """Name something by all it depends on; any JSON values."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, allow_nan=False)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def hash_file(path: Path) -> str:
    """Hash a file's bytes, in constant memory."""
    with path.open("rb", buffering=0) as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()


def file_identity(path: Path) -> list[int | str]:
    """Give what the file system says of a file. Any write changes it: ctime even when mtime is set back."""
    stat = path.stat()
    return [str(path.resolve()), stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]


def hash_content(path: Path) -> str:
    """Hash a file's bytes; a large file that has not been written since is not read again.

    The memory of a hash is used only for a file that had been left alone for seconds when it was hashed: a
    clock too coarse to tell two writes apart cannot hide the second.
    """
    try:
        before = file_identity(path)
        if int(before[3]) < MEMO_FROM_BYTES:
            return hash_file(path)
        memo = get_cache_folder() / "hashes" / f"{digest(before[0])}.json"
        known = read_json(memo)
        if known and known.get("identity") == before:
            return str(known["hash"])
        now = time.time_ns()
        found = hash_file(path)
        if file_identity(path) != before:
            raise UserError(f"{path}: was changed while it was read; try again when it is complete")
    except OSError as error:
        raise UserError(f"{path}: {describe_os_error(error)}") from None
    if now - max(int(before[4]), int(before[5])) > SETTLED_NS:
        write_json(memo, {"identity": before, "hash": found})
    return found


def describe_os_error(error: OSError) -> str:
    """Say why the file system refused, in words."""
    return (error.strerror or str(error)).lower()


def read_json(path: Path) -> dict[str, Any] | None:
    """Read a small JSON object; None when it is absent or damaged."""
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def write_json(path: Path, facts: Any) -> None:
    """Write a small JSON file atomically."""
    write_lines(path, [json.dumps(facts)])


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file atomically: whole or not at all."""
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


def build_once(kind: str, key: str, build: Callable[[Path], None]) -> Path:
    """Give the folder of a cache entry; `build(folder)` makes its files when it is absent or damaged."""
    folder = get_cache_folder() / kind / key
    if is_intact(folder):
        return folder
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        remove_abandoned(folder.parent)
        made = Path(tempfile.mkdtemp(dir=folder.parent, prefix=".making-"))
    except OSError as error:
        raise UserError(
            f"{folder.parent}: {describe_os_error(error)}; set HEEDFUL_CACHE to a folder that can be written"
        ) from None
    try:
        build(made)
        seal(made)
        made.chmod(0o777 & ~umask())
        move_into_place(made, folder)
    except OSError as error:
        if error.filename and not str(error.filename).startswith(str(made)):
            raise
        raise UserError(
            f"{folder.parent}: {describe_os_error(error)}; set HEEDFUL_CACHE to a folder with room"
        ) from None
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return folder


def move_into_place(made: Path, folder: Path) -> None:
    """Rename a finished entry into its place; one that another process finished first is kept."""
    for _ in range(100):
        try:
            made.rename(folder)
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
    """Write down the size and hash of each file of a finished entry."""
    files = sorted(path for path in folder.iterdir() if path.name != SEAL)
    write_json(folder / SEAL, {path.name: [path.stat().st_size, hash_file(path)] for path in files})


def is_intact(folder: Path) -> bool:
    """Tell whether an entry is complete and undamaged; the hashes are compared once a process."""
    sealed = read_json(folder / SEAL)
    if sealed is None:
        return False
    try:
        for name, (size, _) in sealed.items():
            if (folder / name).stat().st_size != size:
                return False
        mark = (str(folder), (folder / SEAL).stat().st_mtime_ns)
        if mark not in _intact:
            if any(hash_file(folder / name) != found for name, (_, found) in sealed.items()):
                return False
            _intact.add(mark)
    except (OSError, ValueError, TypeError):
        return False
    return True


def remove_abandoned(parent: Path) -> None:
    """Remove what processes that died a day ago or more left half-made."""
    for left in parent.glob(".making-*"):
        try:
            old = time.time() - left.stat().st_mtime > ABANDONED_SECONDS
        except OSError:
            continue
        if old:
            shutil.rmtree(left, ignore_errors=True)
