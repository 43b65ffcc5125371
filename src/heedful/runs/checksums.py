"""Checksums of folders, which show whether a checkpoint is complete."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import UserError, shorten
from heedful.runs.files import write_json
from heedful.runs.json_files import read_record

SEAL = "checksums.json"


def file_checksum(path: str | Path) -> str:
    """Return the BLAKE2b hash (32 bytes, in hexadecimal) of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=32)).hexdigest()


def folder_checksums(folder: str | Path, only: Collection[str] | None = None) -> dict[str, str]:
    """Return the hash of every file of a folder, or of those, by relative path, except the seal itself."""
    root = Path(folder)
    if only is not None:
        return {name: file_checksum(root / name) for name in only if (root / name).is_file()}
    paths = sorted(p for p in root.rglob("*") if p.is_file() and p != root / SEAL)
    return {p.relative_to(root).as_posix(): file_checksum(p) for p in paths}


@dataclass(frozen=True)
class Seal:
    """The file of checksums."""

    blake2b: dict[str, str]


def seal(folder: str | Path) -> None:
    """Write the checksums of a folder's files next to them."""
    write_json(Path(folder) / SEAL, {"blake2b": folder_checksums(folder)})


def find_damage(folder: str | Path, only: Collection[str] | None = None) -> str | None:
    """Return the first difference between a folder and its seal in words, or None if it is intact.

    `only` names the files that are going to be read; by default all are compared.
    """
    root = Path(folder)
    if not (root / SEAL).is_file():
        return f"{SEAL} is missing: its writing was interrupted"
    try:
        stored = read_record(Seal, root / SEAL).blake2b
        if only is not None:
            stored = {name: value for name, value in stored.items() if name in only}
        actual = folder_checksums(root, only)
    except UserError as error:
        return str(error)
    except (OSError, KeyError, TypeError):
        return f"{SEAL} or a file beside it cannot be read"
    for name in sorted(stored.keys() | actual.keys()):
        if name not in actual:
            return f"{shorten(name)} is missing"
        if stored.get(name) != actual[name]:
            if name in stored:
                return f"{shorten(name)} does not have the content that was written"
            return f"{shorten(name)} does not belong to it"
    return None
