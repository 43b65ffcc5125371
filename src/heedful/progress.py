"""Progress of long work: a bar on a terminal or in a notebook, plain lines elsewhere, and a small file."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from heedful.logs import progress_line
from heedful.notebook_progress import DISPLAY, in_notebook, render_bar

T = TypeVar("T")
PLAIN_EVERY_SECONDS = 10.0
FILE_EVERY_SECONDS = 2.0


class ProgressFile:
    """A JSON file with the last count, replaced as a whole and at most every two seconds.

    It has the keys `label`, `done`, `total`, `seconds` and `note`, and in `labels` those of all work so far.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.labels, self.last = path, list[str](), 0.0

    def update(self, bar: ProgressBar, note: str) -> None:
        """Write the count of a bar. A full disk is no reason to stop the work."""
        now = time.monotonic()
        if bar.label in self.labels and now - self.last < FILE_EVERY_SECONDS:
            return
        self.last, self.labels = now, list(dict.fromkeys([*self.labels, bar.label]))
        counts = {"label": bar.label, "done": bar.done, "total": bar.total, "seconds": now - bar.start}
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with suppress(OSError):
            temporary.write_text(
                json.dumps({**counts, "note": note, "labels": self.labels}), encoding="utf-8"
            )
            temporary.replace(self.path)


progress_files: list[ProgressFile] = []


@contextmanager
def write_progress_to(path: Path) -> Iterator[None]:
    """Write the progress of all work in the body of a `with` to a file."""
    file = ProgressFile(path)
    progress_files.append(file)
    try:
        yield
    finally:
        progress_files.remove(file)


class ProgressBar:
    """A count of the work done so far; call `advance` after each piece of work.

    With `timed` the pieces are seconds, so that the time that has passed is not shown beside them.
    """

    def __init__(self, label: str, total: int | None, *, timed: bool = False) -> None:
        self.label, self.total, self.done, self.timed = label, total, 0, timed
        self.start = time.monotonic()

    def advance(self, n: int = 1, note: str = "") -> None:
        self.done += n
        for file in progress_files:
            file.update(self, note)
        self.draw_bar(n, note)

    def draw_bar(self, n: int, note: str) -> None:
        """Show that `n` more pieces are done; by default nothing is shown."""


class PlainProgressBar(ProgressBar):
    """Progress as one line every ten seconds, for logs and pipes."""

    def __init__(self, label: str, total: int | None, *, timed: bool = False) -> None:
        super().__init__(label, total, timed=timed)
        self.last = self.start

    def draw_bar(self, n: int, note: str) -> None:
        now = time.monotonic()
        if now - self.last >= PLAIN_EVERY_SECONDS:
            self.last = now
            of = f" of {self.total:,}" if self.total else ""
            after = "" if self.timed else f" after {now - self.start:.0f} s"
            tail = f", {note}" if note else ""
            progress_line(f"{self.label}: {self.done:,}{of}{after}{tail}")


class RichProgressBar(ProgressBar):
    def __init__(self, label: str, total: int | None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        super().__init__(label, total)
        self.bar = Bar(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self.task = self.bar.add_task(label, total=total, note="")

    def draw_bar(self, n: int, note: str) -> None:
        self.bar.update(self.task, advance=n, note=note)


class NotebookProgressBar(ProgressBar):
    """Progress as one live bar below the cell of a notebook."""

    def render(self, note: str = "") -> str:
        return render_bar(self.label, self.done, self.total, note)

    def draw_bar(self, n: int, note: str) -> None:
        DISPLAY.update(self, self.render(note))


@contextmanager
def progress(label: str, total: int | None = None, *, timed: bool = False) -> Iterator[ProgressBar]:
    if in_notebook():
        live = NotebookProgressBar(label, total)
        DISPLAY.open(live, live.render())
        try:
            yield live
        finally:
            DISPLAY.close(live)
        return
    if not sys.stderr.isatty():
        yield PlainProgressBar(label, total, timed=timed)
        return
    bar = RichProgressBar(label, total)
    with bar.bar:
        yield bar


def track(items: Iterable[T], label: str, total: int | None = None) -> Iterator[T]:
    """Yield the items and show how many have been taken."""
    with progress(label, total) as bar:
        for item in items:
            yield item
            bar.advance()
