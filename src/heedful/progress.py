"""Progress of long work on stderr: a bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")
PLAIN_EVERY_SECONDS = 10.0


class ProgressBar:
    """A count of the work done so far; call `advance` after each piece of work."""

    def __init__(self, label: str, total: int | None) -> None:
        self.label, self.total, self.done = label, total, 0

    def advance(self, n: int = 1, note: str = "") -> None:
        self.done += n


class PlainProgressBar(ProgressBar):
    """Progress as one line every ten seconds, for logs and pipes."""

    def __init__(self, label: str, total: int | None) -> None:
        super().__init__(label, total)
        self.start = self.last = time.monotonic()

    def advance(self, n: int = 1, note: str = "") -> None:
        super().advance(n)
        now = time.monotonic()
        if now - self.last >= PLAIN_EVERY_SECONDS:
            self.last = now
            of = f" of {self.total:,}" if self.total else ""
            tail = f", {note}" if note else ""
            print(f"{self.label}: {self.done:,}{of} after {now - self.start:.0f} s{tail}", file=sys.stderr)


class RichProgressBar(ProgressBar):
    """Progress as a bar with the time left."""

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

    def advance(self, n: int = 1, note: str = "") -> None:
        super().advance(n)
        self.bar.update(self.task, advance=n, note=note)


@contextmanager
def progress(label: str, total: int | None = None) -> Iterator[ProgressBar]:
    """Show progress during the body of a `with` statement."""
    if not sys.stderr.isatty():
        yield PlainProgressBar(label, total)
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
