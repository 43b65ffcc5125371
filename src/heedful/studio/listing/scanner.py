"""One look at everything below the folder, which yields the rows that are not as they were."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from heedful.runs.directory import CONFIG, STUDY
from heedful.studio.children import Children
from heedful.studio.folder import StudioFolder
from heedful.studio.listing.folders import FolderTree, Listing
from heedful.studio.listing.rows import Row
from heedful.studio.listing.run_reader import RunReader
from heedful.studio.listing.study_reader import StudyReader


class Scanner:
    """Reads the runs and studies below a folder. Only one thread may use it at a time."""

    def __init__(self, folder: StudioFolder, children: Children) -> None:
        self.folder, self.children = folder, children
        self.tree = FolderTree(folder.root)
        self.runs: dict[Path, RunReader] = {}
        self.studies: dict[Path, StudyReader] = {}
        self.rows: dict[str, Row] = {}

    def scan(self) -> Iterator[Row | str]:
        """Yield each row that has changed since the last scan, and the names of those that are gone."""
        seen, studies = set[str](), list[tuple[Path, Listing]]()
        members: dict[Path, list[Row]] = {}
        inside: dict[Path, Path] = {}  # the study that a folder belongs to
        for path, listing, listed in self.tree.walk():
            parent = inside.get(path.parent)
            if STUDY in listing.files:
                studies.append((path, listing))
                members.setdefault(path, [])
                parent = path
            if parent is not None:
                inside[path] = parent
            if CONFIG in listing.files and STUDY not in listing.files:
                row = self.read_run(path, listing, parent, listed=listed)
                seen.add(row.name)
                if parent is not None:
                    members[parent].append(row)
                yield from self.publish(row)
        for path, listing in studies:
            reader = self.studies.get(path)
            if reader is None:
                reader = self.studies[path] = StudyReader(path, self.folder.name(path))
            row = reader.update(listing, members[path])
            seen.add(row.name)
            yield from self.publish(row)
        yield from self.forget(seen)

    def read_run(self, path: Path, listing: Listing, study: Path | None, *, listed: bool) -> Row:
        reader = self.runs.get(path)
        if reader is None:
            of = "" if study is None else self.folder.name(study)
            reader = self.runs[path] = RunReader(path, self.folder.name(path), of)
        return reader.update(listing, listed=listed)

    def publish(self, row: Row) -> Iterator[Row]:
        child = self.children.known.get(row.name) if row.state == "stopped" else None
        if child is not None and child.runs:
            row = replace(row, state="starting", reason="", resumes=False)
        elif child is not None and (failure := self.children.find_failure(row.name)):
            row = replace(row, reason=failure)
        if self.rows.get(row.name) != row:
            self.rows[row.name] = row
            yield row

    def forget(self, seen: set[str]) -> Iterator[str]:
        """Forget the rows whose folders are gone."""
        for name in self.rows.keys() - seen:
            del self.rows[name]
            path = self.folder.root / name
            self.runs.pop(path, None)
            self.studies.pop(path, None)
            yield name
