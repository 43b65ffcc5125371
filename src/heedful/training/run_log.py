"""What the loop writes while it trains: rows of metrics and timing, checkpoints, and what trackers get."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from torch import Tensor

from heedful.errors import UserError
from heedful.logs import notice, warn
from heedful.runs.directory import Run
from heedful.runs.files import JsonLines
from heedful.runs.schemas import Metrics, Timing
from heedful.training import checkpoint
from heedful.training.checkpoint import TrainingState
from heedful.training.ranks import Ranks
from heedful.training.trackers import Tracker

SCORING_SHARE, SCORING_SECONDS = 0.25, 10.0
"""The share of the time, and the seconds, from which on a run says how much of it scoring takes."""


class RunLog:
    """The files of a run while it trains. Only the first of several processes opens them and writes."""

    def __init__(
        self, run: Run, trackers: Sequence[Tracker] = (), on_row: Callable[[Metrics], None] | None = None
    ) -> None:
        self.run, self.trackers, self.on_row = run, trackers, on_row
        self.metrics: JsonLines | None = None
        self.timing: JsonLines | None = None
        self.scoring_seconds, self.told_of_scoring = 0.0, False

    @contextmanager
    def open(self, state: TrainingState) -> Iterator[None]:
        """Open the files; rows that were written after the checkpoint of `state` are dropped."""
        with (
            self.run.metrics_log(keep=state.metrics_bytes) as self.metrics,
            self.run.timing_log(keep=state.timing_bytes) as self.timing,
        ):
            yield
        self.metrics = self.timing = None

    def watch_scoring(self, score: Callable[[], None], state: TrainingState, interval: int) -> None:
        """Score, and say once that it takes more than a quarter of the time, where that is worth a change."""
        start = time.monotonic()
        score()
        seconds = time.monotonic() - start
        self.scoring_seconds += seconds
        share = self.scoring_seconds / max(state.seconds + seconds, 1e-9)
        if self.told_of_scoring or share <= SCORING_SHARE or self.scoring_seconds < SCORING_SECONDS:
            return
        self.told_of_scoring = True
        if self.metrics is not None:
            notice(
                f"scoring takes {share:.0%} of the time so far; --eval-every {2 * interval} or fewer "
                "--train-eval-rows shorten it"
            )

    def write(self, row: Metrics) -> None:
        if self.metrics is None:
            return
        self.metrics.append(row)
        for tracker in self.trackers:
            tracker.log(row)
        if self.on_row is not None:
            self.on_row(row)

    def write_timing(self, state: TrainingState) -> None:
        if self.timing is not None:
            seconds = max(state.seconds, 1e-9)
            rates = state.examples / seconds, state.tokens / seconds
            self.timing.append(Timing(state.step, state.seconds, *rates))

    def save_checkpoint(
        self, state: TrainingState, weights: Mapping[str, Tensor], optimizer: dict[str, Any]
    ) -> None:
        """Write a checkpoint, and remember in it how long the files are."""
        if self.metrics is not None and self.timing is not None:
            state.metrics_bytes, state.timing_bytes = self.metrics.sync(), self.timing.sync()
            checkpoint.save(self.run, state, dict(weights), optimizer)

    def other_run(self, what: str) -> UserError:
        return UserError(f"{self.run.path}: was made with other {what}; --overwrite starts anew")

    def restore(
        self, new: TrainingState, parameters: Collection[str], ranks: Ranks
    ) -> tuple[TrainingState, dict[str, Tensor], dict[str, Any]] | None:
        """Return the newest intact checkpoint, the same in all processes; None if there is none.

        It must have been made with the data of the `new` state and with these parameters.
        """
        latest = checkpoint.load_latest(self.run) if ranks.first else None
        step = ranks.broadcast(None if latest is None else latest[0].step)
        if step is None:
            return None
        folder = checkpoint.checkpoint_folder(self.run, step)
        state, weights, optimizer = latest or checkpoint.read_checkpoint(folder)
        if state.data != new.data:
            raise self.other_run("data or batch settings")
        if weights.keys() != set(parameters):
            raise self.other_run("parameters")
        if state.processes != ranks.size:
            before, now = (f"{n} process{'es' if n > 1 else ''}" for n in (state.processes, ranks.size))
            warn(
                f"{self.run.path}: its last checkpoint is of {before}, "
                f"it goes on with {now}: to rounding, not to the bit"
            )
        return replace(state, processes=ranks.size), weights, optimizer
