"""The manifest of a task: the content hash and the split of each row, so that a split can be verified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from heedful.data.cache import write_lines
from heedful.data.splits import Split

HEADER = "split\thash"


def save_manifest(splits: Iterable[Split], path: Path, seed: int = 0) -> None:
    """Write one line per row, in the order of the splits and their rows."""

    def lines() -> Iterator[str]:
        yield HEADER
        for split in splits:
            yield from (f"{split.name}\t{key:016x}" for key in split.hashes(seed))

    write_lines(path, lines())
