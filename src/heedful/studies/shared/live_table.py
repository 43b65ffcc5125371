"""How far a study is: a table that renews itself on a terminal, a line for each change elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from heedful.runs.leases import holder_of
from heedful.runs.studies import Outcome, StudyFolder
from heedful.studies.base import best

SHOWN = 20
"""Runs in the table; of more, those at work and the latest."""


@dataclass(frozen=True)
class Line:
    """One run in a table."""

    name: str
    state: str
    epoch: float | None
    dev: float | None
    seconds: float | None
    reason: str

    def cells(self) -> tuple[str, ...]:
        """As text."""
        return (
            self.name,
            self.state,
            "" if self.epoch is None else f"{self.epoch:.3g}",
            "" if self.dev is None else f"{self.dev:.3f}",
            "" if self.seconds is None else duration(self.seconds),
            self.reason,
        )


COLUMNS = ("run", "state", "epoch", "dev", "time", "")


def lines(folder: StudyFolder, outcomes: Sequence[Outcome] | None = None) -> list[Line]:
    """A line for each run."""
    held: dict[str, bool] = {}
    found = []
    for o in folder.outcomes() if outcomes is None else outcomes:
        state: str = o.state
        if not o.over:
            claim = o.configuration.claim
            if claim not in held:
                held[claim] = (folder.path / "leases").is_dir() and holder_of(folder.lease(claim)) is not None
            state = {"begun": "running" if held[claim] else "stopped"}.get(o.state, o.state)
        found.append(describe(o, state))
    return found


def describe(o: Outcome, state: str) -> Line:
    """One run, from its folder."""
    if o.results is not None:
        epoch = max((row.epoch for row in o.metrics()), default=None)
        return Line(o.name, state, epoch, o.dev, o.results.seconds, "")
    rows = o.metrics() if o.state != "waiting" else []
    epoch = rows[-1].epoch if rows else None
    dev = next((row.value for row in reversed(rows) if row.split == "dev"), None)
    reason = o.ended.reason if o.ended is not None else ""
    return Line(o.name, state, epoch, dev, None, reason)


def duration(seconds: float) -> str:
    """A time in words that are short."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def headline(outcomes: Sequence[Outcome], seconds_left: float | None) -> str:
    """How many runs are over, the best so far, and the time left."""
    over = sum(o.over for o in outcomes)
    parts = [f"{over} of {len(outcomes)} runs done"]
    failed = sum(o.state == "failed" for o in outcomes)
    if failed:
        parts[0] += f" ({failed} failed)"
    top = best(outcomes)
    if top is not None:
        parts.append(f"best so far {top.name} with {top.dev:.3f} on dev")
    if seconds_left is not None:
        parts.append(f"about {duration(seconds_left)} left")
    return ", ".join(parts)


class Live:
    """Follows a study; `update` shows what has changed."""

    def __init__(self, folder: StudyFolder, screen: Any = None) -> None:
        self.folder, self.screen = folder, screen
        self.began, self.before, self.said = time.monotonic(), -1.0, ""

    def update(self) -> None:
        """Look again."""
        outcomes = self.folder.outcomes()
        done, whole = amounts(outcomes)
        if self.before < 0:
            self.before = done
        made, elapsed = done - self.before, time.monotonic() - self.began
        left = elapsed * (whole - done) / made if made > 0 and done < whole else None
        if self.screen is not None:
            self.screen.update(table(headline(outcomes, left), lines(self.folder, outcomes)))
            return
        now = headline(outcomes, None)
        if now != self.said:
            self.said = now
            print(f"{self.folder.path}: {headline(outcomes, left)}", file=sys.stderr, flush=True)


def amounts(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """How much of a study is made, and how much it is in all.

    In epochs, each of which is counted once where a longer run goes on from a shorter one; in runs where
    their epochs cannot be compared, because each has a number of rows of its own.
    """
    lengths: dict[str, list[float]] = {}
    for o in outcomes:
        lengths.setdefault(o.configuration.chain, []).append(o.configuration.settings.get("epochs") or 0)
    in_runs = any("train_rows" in o.configuration.settings for o in outcomes)
    done = whole = 0.0
    for o in outcomes:
        epochs = o.configuration.settings.get("epochs") or 0
        before = max((n for n in lengths[o.configuration.chain] if n < epochs), default=0)
        size = 1.0 if in_runs or not epochs else epochs - before
        whole += size
        done += size * share(o, before)
    return done, whole


def share(o: Outcome, before: float) -> float:
    """How much of a run is made, beyond the epochs `before` that it took over."""
    if o.over:
        return 1.0
    epochs = o.configuration.settings.get("epochs")
    rows = o.metrics() if o.state == "begun" else []
    return min(0.99, max(0.0, rows[-1].epoch - before) / (epochs - before)) if rows and epochs else 0.0


def table(title: str, found: Sequence[Line]) -> Any:
    """The table on a terminal."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None)
    for column in COLUMNS:
        shown.add_column(column, justify="right" if column in ("epoch", "dev", "time") else "left")
    order = [line for line in found if line.state not in ("waiting", "running")]
    running = [line for line in found if line.state == "running"]
    rest = [line for line in found if line.state == "waiting"]
    room = max(0, SHOWN - len(running))
    for line in [*order[-room:], *running, *rest[: max(0, room - len(order))]] if room else running:
        shown.add_row(*(Text(cell) for cell in line.cells()))
    return Group(Text(title), shown)


@contextmanager
def watched(folder: StudyFolder) -> Iterator[Live]:
    """Show a study while the body of the `with` works on it."""
    if not sys.stderr.isatty():
        yield Live(folder)
        return
    from rich.console import Console
    from rich.live import Live as Screen

    with Screen(console=Console(stderr=True), refresh_per_second=2, transient=True) as screen:
        yield Live(folder, screen)
