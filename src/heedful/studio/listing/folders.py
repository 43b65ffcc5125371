"""The folders below the studio's in which runs are, listed again only when they have changed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heedful.studio.offers import DEEPEST, SKIPPED

SETTLED_NS = 3 * 10**9
"""A folder that was changed so recently is listed again: its time of change may be too coarse to tell."""


@dataclass(frozen=True)
class Listing:
    """The names in a folder."""

    changed: int
    """Its time of change when it was listed, in nanoseconds."""
    settled: bool
    folders: tuple[str, ...]
    files: frozenset[str]


class FolderTree:
    """Lists folders below a root. Links are not followed."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.listings: dict[Path, Listing] = {}

    def walk(self) -> Iterator[tuple[Path, Listing, bool]]:
        """Yield each folder with its names, and whether they may have changed since the last walk."""
        pending, seen = [(self.root, 0)], set[Path]()
        while pending:
            path, depth = pending.pop()
            listed = self.list_folder(path)
            if listed is None:
                continue
            listing, is_new = listed
            seen.add(path)
            yield path, listing, is_new
            if depth < DEEPEST:
                pending.extend((path / name, depth + 1) for name in reversed(listing.folders))
        for path in self.listings.keys() - seen:
            del self.listings[path]

    def list_folder(self, path: Path) -> tuple[Listing, bool] | None:
        try:
            changed = path.stat().st_mtime_ns
            known = self.listings.get(path)
            if known is not None and known.settled and known.changed == changed:
                return known, False
            folders, files = [], []
            with os.scandir(path) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        files.append(entry.name)
                    elif not entry.name.startswith(".") and entry.name not in SKIPPED:
                        folders.append(entry.name)
        except OSError:
            return None
        settled = time.time_ns() - changed > SETTLED_NS
        listing = Listing(changed, settled, tuple(sorted(folders)), frozenset(files))
        self.listings[path] = listing
        return listing, True
