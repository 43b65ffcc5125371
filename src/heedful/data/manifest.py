"""The manifest of a split: each row's content hash and side, so that nobody need trust the rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from heedful.data.cache import write_lines
from heedful.data.splits import Split
from heedful.errors import UserError

HEADER = "split\thash"


def save_manifest(splits: Iterable[Split], path: Path, seed: int = 0) -> None:
    """Write one line a row, in the order of the splits and of their rows."""

    def lines() -> Iterator[str]:
        yield HEADER
        for split in splits:
            yield from (f"{split.name}\t{key:016x}" for key in split.hashes(seed))

    write_lines(path, lines())


def read_manifest(path: Path) -> dict[str, list[int]]:
    """Read the content hashes of each split."""
    found: dict[str, list[int]] = {}
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        raise UserError(f"{path}: is not a manifest that can be read") from None
    if lines[:1] != [HEADER]:
        raise UserError(f"{path} line 1: not a manifest; it begins with split<TAB>hash")
    for number, line in enumerate(lines[1:], 2):
        name, _, key = line.partition("\t")
        try:
            found.setdefault(name, []).append(int(key, 16))
        except ValueError:
            raise UserError(f"{path} line {number}: not split<TAB>hash") from None
    return found
