"""The base class of studies: a plan of runs, how one of them is made, and what they show together.

To add a study, write a subclass of `Study` with `plan` and `answer` and name it in the table of
`heedful.studies`; in a package of your own, name it in `pyproject.toml`:

    [project.entry-points."heedful.studies"]
    depths = "my_package:Depths"

`heedful study depths` is made from the class: its docstring is the help text, the fields of its dataclasses
are the options. The rest is inherited: claims by lease, resuming, failures with their reason, several
processes, a cluster, the live table.
"""

from __future__ import annotations

import shutil
import traceback
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from heedful.errors import UserError, one_line
from heedful.options.configuration import check_table
from heedful.options.studies import Keep, StudyOptions
from heedful.options.training import FIXED_FULL_RATE, FIXED_SETTINGS, AdaptOptions
from heedful.options.types import MODEL_HELP, TASK_HELP
from heedful.runs.answers import Answer, Note
from heedful.runs.directory import BEST, CHECKPOINTS
from heedful.runs.environment import forget_peak_memory
from heedful.runs.files import WriteError
from heedful.runs.leases import holder_of
from heedful.runs.studies import Configuration, Ended, Outcome, StudyFolder, StudyRecord
from heedful.studies.shared.epochs import continue_run, find_shorter
from heedful.training.resume import LEASE
from heedful.training.run_task import load_run_task
from heedful.training.signals import StoppedError

OUT_OF_MEMORY = ("out of memory", "can't allocate memory", "cannot allocate memory", "not enough memory")
"""How torch reports a lack of memory, on a CPU and on a device."""


@dataclass(frozen=True)
class StudyPlan:
    """What a study asks and the runs that it begins with."""

    question: str
    seed: int
    options: Mapping[str, Any]
    """What identifies the study; `run` holds the options that its runs share."""
    configurations: Sequence[Configuration]
    folder_words: Sequence[str]
    """Names in the study's default folder, after the study's own: `studies/search-boolq-minilm`."""


class Study(ABC):
    """A study in its folder. Everything is read from there, so that any process can work on it."""

    name: ClassVar[str]
    """The second word of the command, and `kind` in study.json."""
    options: ClassVar[type[StudyOptions]] = StudyOptions
    run_options: ClassVar[type[AdaptOptions] | None] = None
    """The options of its runs; None where the study decides all of them."""
    arguments: ClassVar[Mapping[str, str]] = {"model": MODEL_HELP, "task": TASK_HELP}
    """The positional arguments of the command with their help: fields of `run_options`, or of `options`."""

    def __init__(self, folder: StudyFolder) -> None:
        self.folder = folder
        self.record = folder.read()

    @classmethod
    @abstractmethod
    def plan(cls, options: Any, run: Any) -> StudyPlan:
        """Return the runs to begin with, from the study's options and those of its runs."""

    @abstractmethod
    def answer(self, outcomes: Sequence[Outcome]) -> Answer:
        """Return what the runs show, from their directories alone; also while runs are missing."""

    def grow(self, outcomes: Sequence[Outcome]) -> Sequence[Configuration]:
        """Return further configurations, now that some runs are over; none while others are awaited.

        Called by one process at a time, when nothing is left to claim. The study ends when all runs are over
        and this returns none.
        """
        return ()

    @classmethod
    def grows(cls, record: StudyRecord) -> bool:
        """Whether there may be more configurations than study.json has at the beginning."""
        return cls.grow is not Study.grow

    def answers_failure(self, outcomes: Sequence[Outcome]) -> bool:
        """Whether runs that all failed answer the question; otherwise there is nothing to conclude."""
        return False

    def finish(self, outcomes: Sequence[Outcome]) -> None:  # noqa: B027
        """Do what comes after the last run, such as scoring the selected one on test."""

    def check(self) -> None:
        """Refuse what no run could survive (an unknown model, task or option) before the first run."""
        from heedful.training.build.tokenizer import load_existing_tokenizer
        from heedful.training.validation import validate

        checked: set[tuple[Any, ...]] = set()
        for configuration in self.record.configurations:
            o = self.settings(configuration)
            validate(o)
            identity = (o.task, o.model, o.tokenizer, o.objective)
            if identity not in checked:
                checked.add(identity)
                load_run_task(o)
                load_existing_tokenizer(o)

    def work_on_job(self, job: Sequence[Configuration], threads: int | None) -> None:
        """Make the runs of one job, which this process has claimed.

        A run that differs from a shorter one in its epochs alone continues it, and fails as it failed.
        """
        for configuration in job:
            shorter = find_shorter(self.folder, self.record, configuration)
            if shorter is not None and shorter.state == "failed" and shorter.ended is not None:
                self.folder.fail(configuration.name, shorter.ended.reason)
                continue
            with self.attempt(configuration):
                if shorter is not None and shorter.results is not None:
                    continue_run(shorter.folder, self.folder.run(configuration.name), configuration)
                self.work(configuration, threads)
        for configuration in (*self.record.configurations, *job):
            if configuration.claim == job[0].claim and self.folder.read_outcome(configuration).over:
                drop_checkpoints(self.folder.run(configuration.name))

    @contextmanager
    def attempt(self, configuration: Configuration) -> Iterator[None]:
        """Make one run inside; an error becomes the reason why it failed."""
        forget_peak_memory()
        try:
            yield
        except (StoppedError, WriteError):
            raise  # the study stops, and continues from here
        except PrunedError as error:
            self.folder.prune(configuration.name, error.ended)
        except Exception as error:
            lease = self.folder.run(configuration.name) / CHECKPOINTS / LEASE
            if lease.parent.is_dir() and holder_of(lease) is not None:
                raise  # another process has this run: it did not fail
            if not isinstance(error, UserError):
                traceback.print_exc()
            self.folder.fail(configuration.name, describe_failure(error))

    def work(self, configuration: Configuration, threads: int | None = None) -> None:
        from heedful.training.train import train_run

        train_run(self.settings(configuration, threads))

    def score_test(self, outcome: Outcome) -> None:
        """Score a selected run on test, once, where the task has one with labels or answers."""
        from heedful.training.rescore import add_split

        test = load_run_task(self.settings(outcome.configuration)).splits.get("test")
        if test is not None and (test.targets is not None or test.answers is not None):
            add_split(outcome.folder, "test")

    def settings(self, configuration: Configuration, threads: int | None = None) -> AdaptOptions:
        """Return a configuration as the options of `heedful adapt`.

        A run that was begun keeps the threads of its beginning, and so its bits.
        """
        older = {} if self.record.version else FIXED_SETTINGS  # before 0.2, which had fixed defaults
        table = {**older, **self.record.options.get("run", {}), **configuration.settings}
        if older and table.get("method", "full") == "full" and table.get("lr") is None:
            table["lr"] = FIXED_FULL_RATE
        options = AdaptOptions(**check_table(AdaptOptions, table, str(self.folder.path)))
        if self.folder.read_outcome(configuration).state == "begun":
            threads = None
        folder = self.folder.run(configuration.name)
        return replace(options, out=folder, resume=True, score_test=False, threads=threads)


def drop_checkpoints(run: Path) -> None:
    """Remove what only a run in progress needs: many runs with three copies of a model each fill a disk."""
    for step in (run / CHECKPOINTS).glob("step-*"):
        shutil.rmtree(step, ignore_errors=True)


def drop_weights(keep: Keep, outcomes: Sequence[Outcome]) -> None:
    """Remove the weights that nobody selected, once nothing is left to score with them.

    Scores, curves and predictions stay, and a run counts as finished by its results.
    """
    best = find_best(outcomes)
    if keep == "all" or (keep == "best" and best is None):
        return
    for outcome in outcomes:
        if outcome.state == "finished" and (keep == "none" or outcome is not best):
            shutil.rmtree(outcome.folder / BEST, ignore_errors=True)


class PrunedError(Exception):
    """The run was stopped because others are better."""

    def __init__(self, ended: Ended) -> None:
        super().__init__(ended.reason)
        self.ended = ended


def describe_failure(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [""]
    if isinstance(error, UserError):
        return lines[0]
    if isinstance(error, MemoryError) or any(word in str(error).lower() for word in OUT_OF_MEMORY):
        return "does not fit in memory"
    return one_line(f"{type(error).__name__}: {lines[0]}")


def failure_notes(outcomes: Sequence[Outcome]) -> list[Note]:
    return [
        Note(f"{o.name} failed: {o.ended.reason if o.ended else 'no reason is known'}", "bad")
        for o in outcomes
        if o.state == "failed"
    ]


def failure_reasons(outcomes: Sequence[Outcome]) -> dict[str, str]:
    return {o.name: o.ended.reason for o in outcomes if o.state == "failed" and o.ended}


def find_best(outcomes: Sequence[Outcome]) -> Outcome | None:
    """Return the finished run with the best score on dev; among equals the one with the lower loss."""
    scored = [(o, o.results.splits["dev"]) for o in outcomes if o.dev is not None and o.results is not None]
    best, _ = max(scored, key=lambda pair: pair[1].sort_key(), default=(None, None))
    return best
