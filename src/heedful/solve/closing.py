"""What is measured at the end, after test, as far as the time allows: what would help most."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from heedful.logs import notice
from heedful.options.solve import SolveOptions
from heedful.runs.json_files import decode_record
from heedful.runs.studies import StudyFolder
from heedful.solve import request
from heedful.solve.candidates import CANDIDATES, SETUP_SECONDS, Candidate, DataFacts, Speed
from heedful.solve.insight import MeasuredCurve
from heedful.solve.plan import REPORT_SECONDS
from heedful.solve.process import LostProcessError, TimeOverError, TrainingProcess
from heedful.solve.state import SolveState

CLOSING_SHARE = 0.03
"""Share of the time that candidates leave for what is measured at the end."""
LEAST_SECONDS = 2 * SETUP_SECONDS
"""In less time nothing can be measured, and candidates may have it."""
CURVE_MODELS = ("head", "tfidf")
"""Candidates whose model the learning curve is measured with: the first for which there is time."""
CURVE_FITS = 2.0
"""The parts of train together have about twice the rows of train."""


def reserve_closing(minutes: float) -> float:
    """Return the seconds that candidates leave for the end."""
    seconds = CLOSING_SHARE * 60 * minutes
    return seconds if seconds >= LEAST_SECONDS else 0.0


class Closing:
    """The measurements at the end of one command; what an earlier command has measured is kept."""

    def __init__(
        self,
        process: TrainingProcess,
        folder: StudyFolder,
        options: SolveOptions,
        state: SolveState,
        facts: DataFacts,
        end: float,
    ) -> None:
        self.process, self.folder, self.options = process, folder, options
        self.state, self.facts, self.end = state, facts, end

    @property
    def left(self) -> float:
        return self.end - time.monotonic() - REPORT_SECONDS

    def run(self) -> None:
        """Measure what fits in the time. Ctrl-C ends this alone: the model is there."""
        with suppress(TimeOverError, LostProcessError, KeyboardInterrupt):
            if self.state.curve is None:
                self.measure_curve()

    def ask(self, what: str, **wanted: Any) -> dict[str, Any]:
        answer = self.process.ask(self.left, **wanted)
        if "error" in answer:
            notice(f"{what} not measured: {answer['error']}")
        return answer

    def measure_curve(self) -> None:
        """Measure what more labels would bring."""
        for candidate in (c for name in CURVE_MODELS for c in CANDIDATES if c.name == name):
            if self.expect_curve(candidate) > self.left or (candidate.encoder and self.state.speed is None):
                continue
            recorded = {c.name: c.settings for c in self.folder.read().configurations}
            settings = dict(recorded.get(candidate.name, candidate.settings))
            answer = self.ask(
                "what more labels would bring was",
                do="curve",
                options=request.make_run_options(self.folder, self.options, self.state, self.facts, settings),
                labels=self.facts.train,
                folds=self.state.folds or 0,
                seconds=self.left,
            )
            if answer.get("curve") is not None:
                self.state.curve = decode_record(MeasuredCurve, answer["curve"], "the learning curve")
            return

    def expect_curve(self, candidate: Candidate) -> float:
        """Return the seconds that the curve is expected to take with a candidate's model.

        The states of an encoder are in the cache if the candidate was tried.
        """
        facts = self.state.make_budget(self.facts, self.options.minutes).facts
        seconds = candidate.seconds(facts, self.state.speed or Speed())
        if not candidate.encoder:
            seconds *= CURVE_FITS * (1 + (self.state.folds or 0))
        elif candidate.name in self.state.costs:
            seconds = SETUP_SECONDS
        return self.state.slowness * (SETUP_SECONDS + seconds)
