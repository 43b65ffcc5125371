"""The runs and studies of a report, loaded from their folders, also before they have finished."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from heedful.errors import UserError
from heedful.options.training import AdaptOptions
from heedful.paths import expand_path
from heedful.problems import find_problem_of_options
from heedful.runs.answers import ANSWER, Answer, read_answer
from heedful.runs.directory import BAG_OF_WORDS, CHECKS, CONFIG, ENVIRONMENT, METRICS, STUDY, Run
from heedful.runs.schemas import Check, Environment, Metrics, Prediction, Results, SplitResult
from heedful.runs.studies import Outcome, StudyFolder, StudyRecord, read_ending

UNNAMED = ("data", "data.parquet")
"""The names of files and folders that hold data given in Python, see `heedful.data.sources.materialize`."""
DATA_FILES = (".csv", ".tsv", ".txt", ".json", ".jsonl", ".parquet", ".arrow", ".feather", ".xlsx", ".toml")
COMPRESSED = (".gz", ".zst", ".bz2", ".xz")
LABEL_LETTERS = 30


@dataclass(frozen=True)
class RunFacts:
    path: Path
    name: str
    """The name on the page, unique among the runs of the page."""
    command: str
    options: dict[str, Any]
    results: Results | None
    metrics: list[Metrics]
    checks: tuple[Check, ...] = ()
    environment: Environment | None = None
    ended: tuple[str, str] | None = None
    """For a study's run without results: that it failed or was pruned, and the reason."""

    @property
    def title(self) -> str:
        model = self.results.model if self.results else self.options.get("model", "a model")
        how = self.method if self.command == "adapt" else self.options.get("objective", "")
        title = f"{shorten_name(str(model))} on {self.task_title}" + (f", {how}" if how else "")
        return f"{title} ({self.note})" if self.note else title

    @property
    def task(self) -> str:
        """The task or the corpus, as it was given on the command line."""
        option = self.options.get("task") or self.options.get("corpus")
        return str(option or (self.results.task if self.results else ""))

    @property
    def task_title(self) -> str:
        """The name of the data without its path; data given in Python has none and is named by its labels."""
        if Path(self.task).is_absolute() and Path(self.task).name in UNNAMED:
            return describe_labels(self.results.labels if self.results else None)
        return shorten_name(self.results.task if self.results else self.task)

    @property
    def note(self) -> str:
        """The text of --note, which is shown in the title and in figures."""
        return str((self.results.note if self.results else self.options.get("note")) or "")

    @property
    def method(self) -> str:
        """The adaptation method, with the objective if it is not the usual one."""
        method = str(self.results.method if self.results else self.options.get("method", ""))
        objective = (self.results.objective if self.results else None) or self.options.get("objective")
        usual = (None, AdaptOptions.objective, find_problem_of_options("adapt", {}).objective)
        return method if objective in usual else f"{method}, {objective}"

    @property
    def first_result(self) -> SplitResult:
        """A result that describes the run's metric; without a value if the run has not finished."""
        if self.results and self.results.splits:
            return next(iter(self.results.splits.values()))
        metric = self.options.get("metric") or find_problem_of_options(self.command, self.options).metric
        return SplitResult(str(metric), None, 0)

    @property
    def metric(self) -> str:
        return str(self.first_result.title)

    @property
    def metric_is_share(self) -> bool:
        return bool(self.first_result.is_share)

    @property
    def best_is(self) -> Literal["min", "max"]:
        return "max" if self.first_result.higher_is_better else "min"

    @property
    def is_language_model(self) -> bool:
        """Whether the run is scored on tokens, and so followed by step rather than by epoch."""
        return self.first_result.unit == "tokens"

    @property
    def missing_reason(self) -> str | None:
        if self.results is not None:
            return None
        return "not finished" if self.ended is None else ": ".join(self.ended)

    @property
    def detail_split(self) -> str | None:
        """The split that is reported in detail: test if it was scored, else dev."""
        splits = self.results.splits if self.results else {}
        return next((split for split in ("test", "dev", *splits) if split in splits), None)

    @property
    def detail_result(self) -> SplitResult | None:
        return self.split(self.detail_split) if self.detail_split else None

    def split(self, name: str) -> SplitResult | None:
        return self.results.splits.get(name) if self.results else None

    @cached_property
    def predictions(self) -> list[Prediction]:
        """One row per example of `detail_split`."""
        return self.find_predictions("predictions")

    @cached_property
    def bag_predictions(self) -> list[Prediction]:
        """The same of the bag of words; runs of older versions have none."""
        return self.find_predictions(BAG_OF_WORDS)

    def find_predictions(self, by: str) -> list[Prediction]:
        file = self.path / f"{by}_{self.detail_split}.jsonl"
        return Run(self.path).read_predictions(str(self.detail_split), by=by) if file.is_file() else []

    def check(self, name: str) -> Check | None:
        return next((check for check in self.checks if check.name == name), None)


@dataclass(frozen=True)
class StudyFacts:
    path: Path
    name: str
    record: StudyRecord
    answer: Answer
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def note(self) -> str:
        run_options = self.record.options.get("run")
        return str((run_options.get("note") if isinstance(run_options, Mapping) else None) or "")

    @property
    def title(self) -> str:
        title = shorten_paths(self.answer.title)
        return f"{title} ({self.note})" if self.note else title

    def load_runs(self) -> list[RunFacts]:
        """Load the finished runs: those that the answer names, in its order, or all if it names none."""
        finished = [outcome.folder for outcome in self.outcomes if outcome.state == "finished"]
        resolved = {folder.resolve() for folder in finished}

        def is_reported(folder: Path) -> bool:
            if folder.resolve() in resolved:
                return True
            is_inside = folder.resolve().is_relative_to(self.path.resolve())
            return is_inside and (folder / CONFIG).is_file() and Run(folder).has_results

        folders = [self.path / folder for folder in self.answer.runs] or finished
        return [load_run(folder) for folder in folders if is_reported(folder)]


def load_facts(folders: Sequence[str | Path]) -> list[RunFacts | StudyFacts]:
    """Load runs and studies; the first folder that is neither raises a `UserError`."""
    return [load_run_or_study(folder) for folder in folders]


def load_run_or_study(path: str | Path) -> RunFacts | StudyFacts:
    folder = expand_path(path)
    if (folder / STUDY).is_file() or (folder / ANSWER).is_file():
        return load_study(folder)
    if folder.is_dir() and not (folder / CONFIG).is_file():
        raise UserError(f"{folder}: is neither a run nor a study ({CONFIG} and {STUDY} are missing)")
    return load_run(folder)


def load_run(path: str | Path) -> RunFacts:
    run = Run.open(path)
    config = run.read_config()
    command = str(config.get("command", "adapt"))
    options = config.get(command)
    ended = None if run.has_results else read_ending(run.path)
    return RunFacts(
        path=run.path,
        name=run.path.resolve().name,
        command=command,
        options=dict(options) if isinstance(options, dict) else {},
        results=run.read_results() if run.has_results else None,
        metrics=run.read_metrics() if (run.path / METRICS).is_file() else [],
        checks=run.read_checks().checks if (run.path / CHECKS).is_file() else (),
        environment=run.read_environment() if (run.path / ENVIRONMENT).is_file() else None,
        ended=None if ended is None else (ended[0], ended[1].reason),
    )


def load_study(path: Path) -> StudyFacts:
    """Load a study; if it has no answer yet, with one that says how far it is."""
    name = path.resolve().name
    if not (path / STUDY).is_file():
        stored = read_answer(path)
        return StudyFacts(path, name, StudyRecord(stored.study, stored.title, 0, {}), stored)
    folder = StudyFolder.open(path)
    record, outcomes = folder.read(), folder.read_outcomes()
    answer = folder.find_answer() or make_preliminary_answer(record, outcomes)
    return StudyFacts(path, name, record, answer, outcomes)


def make_preliminary_answer(record: StudyRecord, outcomes: Sequence[Outcome]) -> Answer:
    over = sum(outcome.over for outcome in outcomes)
    summary = f"This study has no answer yet: {over} of {len(outcomes)} runs have ended."
    return Answer(record.kind, record.question, (summary,), finished=False, command=record.command)


def make_names_unique(runs: Sequence[RunFacts]) -> list[RunFacts]:
    """Name each run by its folder, with as many parent folders as are needed to make the names unique."""
    depth, paths = 1, [run.path.resolve().parts for run in runs]
    while depth < max((len(parts) for parts in paths), default=1):
        names = ["/".join(parts[-depth:]) for parts in paths]
        if len(set(names)) == len(names):
            break
        depth += 1
    return [replace(run, name="/".join(parts[-depth:])) for run, parts in zip(runs, paths, strict=True)]


def shorten_name(name: str) -> str:
    """Return a name without its path and extension; a name such as world/reviews stays whole."""
    path = Path(name)
    if path.suffix.lower() in COMPRESSED:
        path = path.with_suffix("")
    if path.suffix.lower() in DATA_FILES:
        return path.stem
    is_path = path.is_absolute() or name.startswith((".", "~", "runs/", "studies/"))
    return path.name or name if is_path else name


def shorten_paths(question: str) -> str:
    """Shorten the words of a question that are paths."""
    return re.sub(r"[^\s?]+", lambda word: shorten_word(word[0]), question)


def shorten_word(word: str) -> str:
    """Shorten a word of a question if it is a path: that of a model, or that of data."""
    if Path(word).is_absolute() and Path(word).name in UNNAMED:
        return describe_labels(None)
    return shorten_name(word) if "/" in word or Path(word).suffix.lower() in DATA_FILES else word


def describe_labels(labels: Sequence[str] | None) -> str:
    """Name data by its labels: "texts labeled no or yes", or how many there are."""
    if not labels:
        return "texts from Python"
    named = " or ".join([", ".join(labels[:-1]), labels[-1]] if len(labels) > 1 else labels)
    return f"texts labeled {named}" if len(named) <= LABEL_LETTERS else f"texts with {len(labels)} labels"
