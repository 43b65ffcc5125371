"""Atomic writing: a kill, a crash or a full disk never leaves half a file or folder.

A file is written next to its target, flushed to disk, and renamed. A reader sees the old or the new one.
"""

from __future__ import annotations

import json
import math
import os
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO

from heedful.errors import UserError
from heedful.runs.leftovers import TEMPORARY, clear_leftovers, former_folder, machine_mark


class WriteError(UserError):
    """A file could not be written (disk full, no permission); what was there before is intact."""


def write_error(path: Path, error: OSError) -> WriteError:
    blocked = isinstance(error, FileExistsError | NotADirectoryError)
    reason = "a part of its path is a file" if blocked else error.strerror or str(error)
    return WriteError(f"{path}: cannot be written ({reason}); what was there before is intact")


def temporary_path(path: Path) -> Path:
    """Return a temporary path in the same folder, so that a rename is atomic; its name says whose it is."""
    return path.parent / f".{path.name}.{os.getpid()}-{machine_mark()}-{secrets.token_hex(4)}{TEMPORARY}"


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write a file atomically, and create its folders."""
    target = Path(path)
    temporary = temporary_path(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise write_error(target, error) from None
    return target


def write_text(path: str | Path, content: str) -> Path:
    return write_bytes(path, content.encode())


def write_json(path: str | Path, value: Any) -> Path:
    """Write JSON that every reader accepts: records become objects, NaN and infinity become null."""
    text = json.dumps(to_json_value(value), indent=2, ensure_ascii=False, allow_nan=False)
    return write_bytes(path, (text + "\n").encode(errors="backslashreplace"))


def sync_folder(folder: Path) -> None:
    """Flush a rename to disk, where a folder can be opened (not on Windows)."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def to_json_value(value: Any) -> Any:
    """Return records, numpy numbers and arrays, paths and tuples as JSON values."""
    if isinstance(value, float):  # numpy.float64 is one too
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, str | bool | int):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        values = {field.name: getattr(value, field.name) for field in fields(value)}
        return to_json_value({name: item for name, item in values.items() if item is not None})
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item) for key, item in value.items()}
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "tolist"):
        return to_json_value(value.tolist())
    if isinstance(value, set | frozenset):
        value = sorted(value)
    if isinstance(value, list | tuple):
        return [to_json_value(item) for item in value]
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


class JsonLines:
    """A growing file with one JSON object per line. Each row is written at once and complete.

    `keep` continues an existing file after its first `keep` bytes: what a killed run wrote after its last
    checkpoint is removed. Without `keep` the file starts empty.
    """

    def __init__(self, path: str | Path, *, keep: int | None = None) -> None:
        self.path = Path(path)
        self.length = keep or 0
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            size = self.path.stat().st_size if self.path.exists() else 0
            if size < self.length:
                raise UserError(
                    f"{self.path}: has {size:,} bytes, the checkpoint was made when it had {self.length:,}; "
                    "the file was changed since"
                )
            self.file: BinaryIO = self.path.open("ab")
            self.file.truncate(self.length)
        except OSError as error:
            raise write_error(self.path, error) from None

    def append(self, row: Any) -> None:
        text = json.dumps(to_json_value(row), ensure_ascii=False, allow_nan=False, separators=(", ", ": "))
        line = text.encode(errors="backslashreplace") + b"\n"
        try:
            self.file.write(line)
            self.file.flush()
        except OSError as error:
            self._forget()
            raise write_error(self.path, error) from None
        self.length += len(line)

    def _forget(self) -> None:
        """Remove half a line after a failed write, from the buffer and from the file."""
        with suppress(OSError):
            os.ftruncate(self.file.fileno(), self.length)
        with suppress(OSError):
            self.file.close()
        self.file = self.path.open("ab")
        self.file.truncate(self.length)

    def sync(self) -> int:
        """Flush all rows to disk and return the length in bytes, which a checkpoint stores."""
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
        except OSError as error:
            raise write_error(self.path, error) from None
        return self.length

    def close(self) -> None:
        self.file.close()

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def new_folder(path: str | Path) -> Iterator[Path]:
    """Write a folder that appears under its name only when it is complete; an existing one is replaced.

    A kill between the two renames of a replacement leaves the old folder under a hidden name; `recover`
    restores it.
    """
    target = Path(path)
    temporary = temporary_path(target)
    clear_leftovers(target.parent, f".{target.name}.")
    try:
        temporary.mkdir(parents=True)
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                with file.open("r+b" if not hasattr(os, "O_DIRECTORY") else "rb") as written:
                    os.fsync(written.fileno())
        former = former_folder(target)
        if target.exists():
            shutil.rmtree(former, ignore_errors=True)
            target.rename(former)
        temporary.rename(target)
        sync_folder(target.parent)
        shutil.rmtree(former, ignore_errors=True)
    except OSError as error:
        shutil.rmtree(temporary, ignore_errors=True)
        recover(target)
        raise write_error(target, error) from None
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def recover(path: str | Path) -> None:
    """Restore a folder whose replacement was interrupted; remove the old one of a finished one."""
    target = Path(path)
    former = former_folder(target)
    if former.is_dir() and not target.exists():
        former.rename(target)
    shutil.rmtree(former, ignore_errors=True)


def remove_temporary(folder: str | Path) -> None:
    """Remove what killed writers left in a folder. No other process may be writing there."""
    for leftover in Path(folder).glob(f".*{TEMPORARY}"):
        if leftover.is_dir():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            leftover.unlink(missing_ok=True)


def umask() -> int:
    """Return the umask of the process, which can only be read by setting it."""
    current = os.umask(0)
    os.umask(current)
    return current
