"""What there is to report: a run or a study, read once, also while it is not finished."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from heedful.errors import UserError
from heedful.runs.answers import ANSWER, Answer, read_answer
from heedful.runs.directory import CHECKS, CONFIG, ENVIRONMENT, METRICS, Run
from heedful.runs.files import read_text
from heedful.runs.schemas import Check, Environment, Metrics, Prediction, Results, SplitResult
from heedful.runs.studies import STUDY, Outcome, StudyFolder, StudyRecord, ending

LOWER_IS_BETTER = ("perplexity",)
SHARES = ("accuracy", "exact_match")
"""Metrics that count right answers, and so have an interval from the count alone."""


@dataclass(frozen=True)
class RunFacts:
    """One run."""

    path: Path
    name: str
    """What it is called on the page; no two runs of a page share a name."""
    command: str
    options: dict[str, Any]
    results: Results | None
    metrics: list[Metrics]
    checks: tuple[Check, ...] = ()
    environment: Environment | None = None
    ended: tuple[str, str] | None = None
    """Of a study's run without results, that it failed or was pruned, and why."""

    @property
    def title(self) -> str:
        """Model, task and method in words."""
        found = self.results
        model = found.model if found else self.options.get("model", "a model")
        task = found.task if found else self.options.get("task") or self.options.get("corpus", "")
        how = self.method if self.command == "adapt" else self.options.get("objective", "")
        named = f"{last_part(str(model))} on {last_part(str(task))}" + (f", {how}" if how else "")
        return f"{named} ({self.note})" if self.note else named

    @property
    def note(self) -> str:
        """The remark that its title and its figures carry."""
        return str((self.results.note if self.results else self.options.get("note")) or "")

    @property
    def method(self) -> str:
        """What a step may change; where it matters, also what it minimises."""
        method = str(self.results.method if self.results else self.options.get("method", ""))
        objective = (self.results.objective if self.results else None) or self.options.get("objective")
        return method if objective in (None, "auto", "classify") else f"{method}, {objective}"

    @property
    def metric(self) -> str:
        """The name of the score."""
        if self.results and self.results.splits:
            return next(iter(self.results.splits.values())).metric
        if self.command == "pretrain":
            return "perplexity"
        return "exact_match" if self.options.get("objective") in ("text2text", "answer") else "accuracy"

    @property
    def lacking(self) -> str | None:
        """Why it has no results."""
        if self.results is not None:
            return None
        return "not finished" if self.ended is None else ": ".join(self.ended)

    @property
    def better(self) -> Literal["min", "max"]:
        """Whether the largest or the smallest score is the best."""
        return "min" if self.metric in LOWER_IS_BETTER else "max"

    @property
    def scored(self) -> str | None:
        """The split that is shown in detail: test where it was scored, else dev."""
        splits = self.results.splits if self.results else {}
        return next((split for split in ("test", "dev", *splits) if split in splits), None)

    def split(self, name: str) -> SplitResult | None:
        """The score on a split."""
        return self.results.splits.get(name) if self.results else None

    @property
    def config_text(self) -> str:
        """The configuration, as it stands in its file."""
        return read_text(self.path / CONFIG)

    @cached_property
    def predictions(self) -> list[Prediction]:
        """One row an example of the split that is shown in detail."""
        file = self.path / f"predictions_{self.scored}.jsonl"
        return Run(self.path).predictions(str(self.scored)) if file.is_file() else []

    def check(self, name: str) -> Check | None:
        """What one check found."""
        return next((check for check in self.checks if check.name == name), None)


@dataclass(frozen=True)
class StudyFacts:
    """One study."""

    path: Path
    name: str
    record: StudyRecord
    answer: Answer
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def note(self) -> str:
        """The remark that its title and its figures carry."""
        shared = self.record.options.get("run")
        return str((shared.get("note") if isinstance(shared, Mapping) else None) or "")

    @property
    def title(self) -> str:
        """Its question."""
        return f"{self.answer.title} ({self.note})" if self.note else self.answer.title

    def runs(self) -> list[RunFacts]:
        """Its finished runs: those that the answer names, in its order, else all."""
        named = [self.path / folder for folder in self.answer.runs]
        finished = {outcome.folder.resolve() for outcome in self.outcomes if outcome.state == "finished"}
        folders = named or [o.folder for o in self.outcomes if o.state == "finished"]
        inside = self.path.resolve()
        kept = [
            f
            for f in folders
            if f.resolve() in finished or (f.resolve().is_relative_to(inside) and finished_run(f))
        ]
        return [read_run(folder) for folder in kept]


def finished_run(folder: Path) -> bool:
    """Tell whether a folder holds a run with results."""
    return (folder / CONFIG).is_file() and Run(folder).finished


def read_any(path: str | Path) -> RunFacts | StudyFacts:
    """Read a run or a study."""
    folder = Path(path).expanduser()
    if (folder / STUDY).is_file() or (folder / ANSWER).is_file():
        return read_study(folder)
    if folder.is_dir() and not (folder / CONFIG).is_file():
        raise UserError(f"{folder}: is neither a run nor a study ({CONFIG} and {STUDY} are missing)")
    return read_run(folder)


def read_run(path: str | Path) -> RunFacts:
    """Read one run, as far as it got."""
    run = Run.open(path)
    config = run.config()
    command = str(config.get("command", "adapt"))
    options = config.get(command)
    ended = None if run.finished else ending(run.path)
    return RunFacts(
        path=run.path,
        name=run.path.resolve().name,
        command=command,
        options=dict(options) if isinstance(options, dict) else {},
        results=run.results() if run.finished else None,
        metrics=run.metrics() if (run.path / METRICS).is_file() else [],
        checks=run.checks().checks if (run.path / CHECKS).is_file() else (),
        environment=run.environment() if (run.path / ENVIRONMENT).is_file() else None,
        ended=None if ended is None else (ended[0], ended[1].reason),
    )


def read_study(path: Path) -> StudyFacts:
    """Read one study; one without an answer yet says how far it is."""
    name = path.resolve().name
    if not (path / STUDY).is_file():
        answer = read_answer(path)
        return StudyFacts(path, name, StudyRecord(answer.study, answer.title, 0, {}), answer)
    folder = StudyFolder.open(path)
    record, outcomes = folder.read(), folder.outcomes()
    return StudyFacts(path, name, record, folder.answer() or unanswered(record, outcomes), outcomes)


def unanswered(record: StudyRecord, outcomes: Sequence[Outcome]) -> Answer:
    """What can be said of a study that has said nothing itself."""
    over = sum(outcome.over for outcome in outcomes)
    summary = f"This study has no answer yet: {over} of {len(outcomes)} runs are over."
    return Answer(record.kind, record.question, (summary,), finished=False, command=record.command)


def named_apart(runs: Sequence[RunFacts]) -> list[RunFacts]:
    """Give each run a name of its own: its folder's, with as many folders above it as tell them apart."""
    depth, names = 1, [run.path.resolve().parts for run in runs]
    while depth < max((len(parts) for parts in names), default=1):
        short = ["/".join(parts[-depth:]) for parts in names]
        if len(set(short)) == len(short):
            break
        depth += 1
    return [replace(run, name="/".join(parts[-depth:])) for run, parts in zip(runs, names, strict=True)]


def last_part(name: str) -> str:
    """Shorten a path to its last part; a name such as world/reviews stays whole."""
    return Path(name).name or name if Path(name).is_absolute() else name
