"""Trackers follow a run: they get its configuration, every row of metrics, and its results.

A tracker is a class with the three methods of `Tracker`, made with the run's folder. Another package adds one
through an entry point in the group `heedful.trackers`; `--track NAME` chooses it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from heedful.errors import one_line
from heedful.logs import warn
from heedful.options.training import LoopOptions
from heedful.plugins import Registry
from heedful.runs.directory import Run
from heedful.runs.schemas import Metrics, Results
from heedful.training.ranks import current_ranks


class Tracker(Protocol):
    """Follows one run."""

    def begin(self, config: Mapping[str, Any]) -> None:
        """Take the run's configuration, as config.toml has it, before the first step."""

    def log(self, row: Metrics) -> None:
        """Take one row of metrics.jsonl, as it is written."""

    def end(self, results: Results) -> None:
        """Take the results of the finished run. A run that is stopped or fails does not call this."""


TRACKERS: Registry[Callable[[Path], Tracker]] = Registry(
    "tracker",
    {
        name: f"{__name__}.{name}:{tracker}"
        for name, tracker in {
            "tensorboard": "TensorBoard",
            "mlflow": "MLflow",
            "trackio": "Trackio",
            "wandb": "WandB",
        }.items()
    },
)


class SafeTracker:
    """Passes everything on to a tracker. If it fails, it is dropped with one warning, and the run goes on."""

    def __init__(self, tracker: Tracker) -> None:
        self.tracker, self.failed = tracker, False

    def begin(self, config: Mapping[str, Any]) -> None:
        self.call(self.tracker.begin, config)

    def log(self, row: Metrics) -> None:
        self.call(self.tracker.log, row)

    def end(self, results: Results) -> None:
        self.call(self.tracker.end, results)

    def call(self, method: Callable[[Any], None], value: Any) -> None:
        if self.failed:
            return
        try:
            method(value)
        except Exception as error:
            self.failed = True
            name, reason = type(self.tracker).__name__, one_line(f"{type(error).__name__}: {error}")
            warn(f"the tracker {name} failed and is ignored from now on: {reason}")


def begin_trackers(run: Run, options: LoopOptions, more: Sequence[Tracker]) -> list[SafeTracker]:
    """Begin the trackers that the options name, and `more`; only the first process has any."""
    if not current_ranks().first:
        return []
    names = [*options.track, *(["tensorboard"] if options.tensorboard else [])]
    named = [TRACKERS.find(name)(run.path) for name in dict.fromkeys(names)]
    trackers = [SafeTracker(tracker) for tracker in (*named, *more)]
    for tracker in trackers:
        tracker.begin(run.read_config())
    return trackers


def upload_run(run: Run, name: str) -> None:
    """Give a tracker everything of a finished run: its configuration, its rows and its results."""
    tracker, results = TRACKERS.find(name)(run.path), run.read_results()
    tracker.begin(run.read_config())
    for row in run.read_metrics():
        tracker.log(row)
    tracker.end(results)
