"""What every study is: configurations, how one of them is worked on, and what they say together.

To write a study: a subclass of `Study` with `kind` and `answer`, an entry in `heedful.studies.KINDS`, and a
command that calls `heedful.studies.shared.runner.run` with its `StudyRecord`. The rest is inherited: claims
by lease, resuming, failures with their reason, many processes, the live table.
"""

from __future__ import annotations

import shutil
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from heedful.errors import UserError, one_line
from heedful.options.configuration import check_table
from heedful.options.studies import Keep
from heedful.options.training import AdaptOptions
from heedful.problems.tasks import load_run_task
from heedful.runs.answers import Answer, Note
from heedful.runs.directory import BEST, CHECKPOINTS
from heedful.runs.environment import forget_peak_memory
from heedful.runs.files import WriteError
from heedful.runs.leases import holder_of
from heedful.runs.studies import Configuration, Ended, Outcome, StudyFolder, StudyRecord
from heedful.training.resume import LEASE
from heedful.training.signals import StoppedError

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory")
"""How torch says it, on a processor and on a device."""


class Study(ABC):
    """A study in its folder. Everything is read from there, so that any process can work on it."""

    kind: ClassVar[str]

    def __init__(self, folder: StudyFolder) -> None:
        self.folder = folder
        self.record = folder.read()

    @abstractmethod
    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        """Say what was found, from the run directories alone; also while runs are missing."""

    def grow(self, outcomes: Sequence[Outcome]) -> Sequence[Configuration]:
        """Further configurations, now that some runs are over; none while there is something to wait for.

        Called by one process at a time, when nothing is left to claim. The study ends when all runs are over
        and this gives none.
        """
        return ()

    @classmethod
    def grows(cls, record: StudyRecord) -> bool:
        """Whether there may be more configurations than study.json has at the beginning."""
        return cls.grow is not Study.grow

    def answers_failure(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether runs that all failed answer the question; else there is nothing to conclude."""
        return False

    def finish(self, outcomes: Sequence[Outcome]) -> None:  # noqa: B027
        """Do what comes after the last run, such as to score test with the selected one."""

    def check(self) -> None:
        """Refuse what no run could survive (an unknown model, task or option), before any is begun."""
        from heedful.training.build.tokenizer import load_existing_tokenizer
        from heedful.training.validation import validate

        seen: set[tuple[Any, ...]] = set()
        for configuration in self.record.configurations:
            o = self.options(configuration)
            validate(o)
            if (o.task, o.model, o.tokenizer, o.objective) in seen:
                continue
            seen.add((o.task, o.model, o.tokenizer, o.objective))
            load_run_task(o)
            load_existing_tokenizer(o)

    def work_all(self, job: Sequence[Configuration], threads: int | None) -> None:
        """Make the runs of one job, which this process has claimed."""
        for configuration in job:
            with self.attempt(configuration):
                self.work(configuration, threads)
            if self.folder.outcome(configuration).over:
                drop_checkpoints(self.folder.run(configuration.name))

    @contextmanager
    def attempt(self, configuration: Configuration) -> Iterator[None]:
        """Inside, one run is made; an error becomes the reason why it failed."""
        forget_peak_memory()
        try:
            yield
        except (StoppedError, WriteError):
            raise  # the study stops, and goes on from here
        except PrunedError as error:
            self.folder.prune(configuration.name, error.ended)
        except Exception as error:
            place = self.folder.run(configuration.name) / CHECKPOINTS / LEASE
            if place.parent.is_dir() and holder_of(place) is not None:
                raise  # another process has this run: it did not fail
            if not isinstance(error, UserError):
                traceback.print_exc()
            self.folder.fail(configuration.name, reason(error))

    def work(self, configuration: Configuration, threads: int | None = None) -> None:
        """Make one run in its folder, or continue it."""
        from heedful.training.train import train

        train(self.options(configuration, threads))

    def score_test(self, outcome: Outcome) -> None:
        """Score a selected run on test, where the task has one with labels or answers; once for all."""
        from heedful.training.rescore import add_split

        test = load_run_task(self.options(outcome.configuration)).splits.get("test")
        if test is not None and (test.labels is not None or test.answers is not None):
            add_split(outcome.folder, "test")

    def options(self, configuration: Configuration, threads: int | None = None) -> AdaptOptions:
        """A configuration as the options of `heedful adapt`.

        A run that was begun keeps the threads of its beginning, and so its bits.
        """
        run = self.folder.run(configuration.name)
        given = {**self.record.options.get("run", {}), **configuration.settings}
        options = AdaptOptions(**check_table(AdaptOptions, given, str(self.folder.path)))
        begun = self.folder.outcome(configuration).state == "begun"
        return replace(options, out=run, resume=True, score_test=False, threads=None if begun else threads)


def drop_checkpoints(run: Path) -> None:
    """Remove what only a run in progress needs: many runs with three copies of a model each fill a disk."""
    for step in (run / CHECKPOINTS).glob("step-*"):
        shutil.rmtree(step, ignore_errors=True)


def drop_weights(keep: Keep, outcomes: Sequence[Outcome]) -> None:
    """Remove the weights that nobody selected, once nothing is left to score with them.

    Scores, curves and predictions stay, and a run counts as finished by its results.
    """
    chosen = best(outcomes)
    if keep == "all" or (keep == "best" and chosen is None):
        return
    for outcome in outcomes:
        if outcome.state == "finished" and (keep == "none" or outcome is not chosen):
            shutil.rmtree(outcome.folder / BEST, ignore_errors=True)


class PrunedError(Exception):
    """The run was stopped because others are better."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended.reason)
        self.ended = ended


def reason(error: Exception) -> str:
    """Why a run failed, in one line."""
    lines = str(error).strip().splitlines() or [""]
    if isinstance(error, UserError):
        return lines[0]
    if isinstance(error, MemoryError) or any(word in str(error).lower() for word in OUT_OF_MEMORY):
        return "does not fit in memory"
    return one_line(f"{type(error).__name__}: {lines[0]}")


def failures(outcomes: Sequence[Outcome]) -> list[Note]:
    """A note for each run that failed."""
    return [
        Note(f"{o.name} failed: {o.ended.reason if o.ended else 'no reason is known'}", "bad")
        for o in outcomes
        if o.state == "failed"
    ]


def best(outcomes: Sequence[Outcome]) -> Outcome | None:
    """Return the finished run with the best score on dev; of equals, the one with the lower loss."""
    scored = [(o, o.results.splits["dev"]) for o in outcomes if o.dev is not None and o.results is not None]
    ranked = max(scored, key=lambda pair: pair[1].sort_key(), default=None)
    return None if ranked is None else ranked[0]
