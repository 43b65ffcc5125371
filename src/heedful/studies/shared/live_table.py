"""The progress of a study: a live table on a terminal, a line for each change otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from heedful.logs import progress_line
from heedful.notebook_progress import DISPLAY, in_notebook, render_bar
from heedful.report.formats import format_duration
from heedful.runs.leases import holder_of
from heedful.runs.studies import Outcome, StudyFolder
from heedful.studies.base import find_best

SHOWN = 20
"""Runs in the table; of more than this many, the running and the latest ones."""


@dataclass(frozen=True)
class ProgressRow:
    name: str
    state: str
    epoch: float | None
    dev: float | None
    seconds: float | None
    reason: str

    def cells(self) -> tuple[str, ...]:
        return (
            self.name,
            self.state,
            "" if self.epoch is None else f"{self.epoch:.3g}",
            "" if self.dev is None else f"{self.dev:.3f}",
            "" if self.seconds is None else format_duration(self.seconds),
            self.reason,
        )


COLUMNS = ("run", "state", "epoch", "dev", "time", "")


def list_rows(folder: StudyFolder, outcomes: Sequence[Outcome]) -> list[ProgressRow]:
    held: dict[str, bool] = {}
    rows = []
    for o in outcomes:
        state: str = o.state
        if state == "begun":
            claim = o.configuration.claim
            if claim not in held:
                held[claim] = (folder.path / "leases").is_dir() and holder_of(folder.lease(claim)) is not None
            state = "running" if held[claim] else "stopped"
        rows.append(make_row(o, state))
    return rows


def make_row(o: Outcome, state: str) -> ProgressRow:
    if o.results is not None:
        epoch = max((row.epoch for row in o.find_metrics()), default=None)
        return ProgressRow(o.name, state, epoch, o.dev, o.results.seconds, "")
    rows = o.find_metrics() if o.state != "waiting" else []
    epoch = rows[-1].epoch if rows else None
    dev = next((row.value for row in reversed(rows) if row.split == "dev"), None)
    reason = o.ended.reason if o.ended is not None else ""
    return ProgressRow(o.name, state, epoch, dev, None, reason)


def describe_progress(outcomes: Sequence[Outcome], seconds_left: float | None) -> str:
    parts = [f"{sum(o.over for o in outcomes)} of {len(outcomes)} runs done"]
    if failed := sum(o.state == "failed" for o in outcomes):
        parts[0] += f" ({failed} failed)"
    if (best := find_best(outcomes)) is not None:
        parts.append(f"best so far {best.name} with {best.dev:.3f} on dev")
    if seconds_left is not None:
        parts.append(f"about {format_duration(seconds_left)} left")
    return ", ".join(parts)


class StudyDisplay:
    """The display of a study; `update` shows what has changed."""

    def __init__(self, folder: StudyFolder, screen: Any = None) -> None:
        self.folder, self.screen = folder, screen
        self.began, self.done_before, self.shown = time.monotonic(), -1.0, ""

    def update(self) -> None:
        outcomes = self.folder.read_outcomes()
        done, total = count_work(outcomes)
        if self.done_before < 0:
            self.done_before = done
        new, elapsed = done - self.done_before, time.monotonic() - self.began
        left = elapsed * (total - done) / new if new > 0 and done < total else None
        if in_notebook():
            DISPLAY.update(self, render_bar("study", done, total, describe_progress(outcomes, left)))
            return
        if self.screen is not None:
            rows = list_rows(self.folder, outcomes)
            self.screen.update(render_table(describe_progress(outcomes, left), rows))
            return
        now = describe_progress(outcomes, None)
        if now != self.shown:
            self.shown = now
            progress_line(f"{self.folder.path}: {describe_progress(outcomes, left)}")


def count_work(outcomes: Sequence[Outcome]) -> tuple[float, float]:
    """Return how much of a study is done, and how much there is in total.

    In epochs, each counted once where a longer run continues a shorter one; in runs where epochs cannot be
    compared, because the runs have different numbers of rows.
    """
    lengths: dict[str, list[float]] = {}
    for o in outcomes:
        lengths.setdefault(o.configuration.chain, []).append(o.configuration.settings.get("epochs") or 0)
    in_runs = any("train_rows" in o.configuration.settings for o in outcomes)
    done = total = 0.0
    for o in outcomes:
        epochs = o.configuration.settings.get("epochs") or 0
        before = max((n for n in lengths[o.configuration.chain] if n < epochs), default=0)
        size = 1.0 if in_runs or not epochs else epochs - before
        total += size
        done += size * share_done(o, before)
    return done, total


def share_done(o: Outcome, before: float) -> float:
    """Return how much of a run is done, beyond the epochs `before` that it took over."""
    if o.over:
        return 1.0
    epochs = o.configuration.settings.get("epochs")
    rows = o.find_metrics() if o.state == "begun" else []
    return min(0.99, max(0.0, rows[-1].epoch - before) / (epochs - before)) if rows and epochs else 0.0


def render_table(title: str, rows: Sequence[ProgressRow]) -> Any:
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None)
    for column in COLUMNS:
        table.add_column(column, justify="right" if column in ("epoch", "dev", "time") else "left")
    over = [row for row in rows if row.state not in ("waiting", "running")]
    running, waiting = ([row for row in rows if row.state == state] for state in ("running", "waiting"))
    room = max(0, SHOWN - len(running))
    for row in [*over[-room:], *running, *waiting[: max(0, room - len(over))]] if room else running:
        table.add_row(*(Text(cell) for cell in row.cells()))
    return Group(Text(title), table)


@contextmanager
def live_table(folder: StudyFolder) -> Iterator[StudyDisplay]:
    """Show the progress of a study while the body of the `with` works on it."""
    if in_notebook():
        display = StudyDisplay(folder)
        DISPLAY.open(display, render_bar("study", 0, None))
        try:
            yield display
        finally:
            DISPLAY.close(display)
        return
    if not sys.stderr.isatty():
        yield StudyDisplay(folder)
        return
    from rich.console import Console
    from rich.live import Live

    with Live(console=Console(stderr=True), refresh_per_second=2, transient=True) as screen:
        yield StudyDisplay(folder, screen)
