"""A study's folder: many runs, one question. Run directories are the truth; study.json says which there are.

study.json   the question, its options, and the configurations, each with its name
runs/NAME/   a run directory per configuration; failed.json or pruned.json in it says why it has no results
answer.json  what the study found (`heedful.runs.answers`)
leases/      which process works on what
logs/        what the workers said
jobs/        workers on a cluster: their batch script, and what they said
untrained/   of a study of knowledge: the model that has read nothing
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from heedful.errors import UserError, shorten
from heedful.options.studies import Keep
from heedful.paths import expand_path
from heedful.runs.answers import ANSWER, Answer, read_answer
from heedful.runs.directory import BEST, CONFIG, METRICS, RESULTS, STUDY, Run, slug
from heedful.runs.files import to_json_value, write_error, write_json
from heedful.runs.json_files import decode_record, read_json, read_record
from heedful.runs.leftovers import clear_study_leftovers
from heedful.runs.old_names import mark_balanced, update_names
from heedful.runs.schemas import Metrics, Results

RUNS, LEASES, LOGS, JOBS = "runs", "leases", "logs", "jobs"
FAILED, PRUNED = "failed.json", "pruned.json"
UNTRAINED = "untrained"

KEEPS: tuple[Keep, ...] = ("none", "best", "all")
"""From keeping the fewest weights to keeping the most."""
State = Literal["waiting", "begun", "finished", "failed", "pruned"]


@dataclass(frozen=True)
class Configuration:
    name: str
    """Its folder below runs/, which never changes."""
    settings: Mapping[str, Any]
    """The options in which it differs from the other runs, by name."""
    job: str = ""
    """Runs of one job are made by one process, in the order of study.json. By default each is its own job."""
    arm: str = ""
    """The arm it belongs to, where arms are compared: `minilm lora`."""

    @property
    def claim(self) -> str:
        return self.job or self.name

    @property
    def chain(self) -> str:
        """Runs with the same chain continue one another: those of one job that differ only in epochs."""
        others = {name: value for name, value in self.settings.items() if name != "epochs"}
        return f"{self.job} {others}" if self.job else self.name


@dataclass(frozen=True)
class StudyRecord:
    """study.json."""

    kind: str
    """overfit, search, compare, labels, optimizers, attention or knowledge."""
    question: str
    """For example: which learning rate and how many epochs are best for minilm on boolq?"""
    seed: int
    options: Mapping[str, Any]
    """The options of the study; `run` contains the options that its runs share."""
    configurations: tuple[Configuration, ...] = ()
    command: tuple[str, ...] = ()
    """The words after `heedful`: the command that continues the study, or repeats it elsewhere."""
    keep: Keep = "all"
    """Whose weights are kept when the study ends."""
    version: str = ""
    planned: int = 0
    """How many configurations were planned at the start; the others followed from their results."""


@dataclass(frozen=True)
class Ended:
    """failed.json and pruned.json: why a run has no results."""

    reason: str
    epoch: float | None = None
    value: float | None = None
    """The last dev score of a run that was stopped because others were better."""


@dataclass(frozen=True)
class Outcome:
    configuration: Configuration
    folder: Path
    state: State
    results: Results | None = None
    ended: Ended | None = None

    @property
    def name(self) -> str:
        return self.configuration.name

    @property
    def over(self) -> bool:
        return self.state not in ("waiting", "begun")

    @property
    def dev(self) -> float | None:
        split = self.results.splits.get("dev") if self.results is not None else None
        return split.value if split is not None else None

    def find_metrics(self) -> list[Metrics]:
        return Run(self.folder).read_metrics() if (self.folder / METRICS).is_file() else []


@dataclass(frozen=True)
class StudyFolder:
    """One study's folder. `begin` starts or continues one, `open` reads one."""

    path: Path

    @classmethod
    def open(cls, path: str | Path) -> StudyFolder:
        study = cls(Path(path))
        if not (study.path / STUDY).is_file():
            raise UserError(f"{study.path}: is not a study ({STUDY} is missing)")
        clear_study_leftovers(study.path)
        return study

    def read(self) -> StudyRecord:
        path = self.path / STUDY
        record = decode_record(StudyRecord, mark_balanced(update_names(read_json(path))), str(path))
        for configuration in record.configurations:
            if Path(configuration.name).name != configuration.name or configuration.name.startswith("."):
                raise UserError(f'{path}: "{shorten(configuration.name)}" is not the name of a run')
        return record

    def write(self, record: StudyRecord) -> None:
        write_json(self.path / STUDY, record)

    def add(self, configurations: Iterable[Configuration]) -> None:
        """Append configurations. Only the holder of the lease `plan` may call it."""
        record = self.read()
        self.write(replace(record, configurations=(*record.configurations, *configurations)))

    def run(self, name: str) -> Path:
        return self.path / RUNS / name

    def lease(self, name: str) -> Path:
        lease = self.path / LEASES / name
        lease.parent.mkdir(parents=True, exist_ok=True)
        return lease

    def find_answer(self) -> Answer | None:
        return read_answer(self.path) if (self.path / ANSWER).is_file() else None

    @property
    def concluded(self) -> bool:
        """Whether all runs have ended and the answer is final."""
        answer = self.find_answer()
        return answer is not None and answer.finished

    def read_outcomes(self) -> list[Outcome]:
        """Return the state of each configuration, in the order of study.json."""
        return [self.read_outcome(configuration) for configuration in self.read().configurations]

    def read_outcome(self, configuration: Configuration) -> Outcome:
        run = self.run(configuration.name)
        if (run / RESULTS).is_file():
            return Outcome(configuration, run, "finished", Run(run).read_results())
        if (ended := read_ending(run)) is not None:
            return Outcome(configuration, run, ended[0], ended=ended[1])
        return Outcome(configuration, run, "begun" if (run / CONFIG).is_file() else "waiting")

    def fail(self, name: str, reason: str) -> None:
        write_json(self.run(name) / FAILED, Ended(reason))

    def prune(self, name: str, ended: Ended) -> None:
        write_json(self.run(name) / PRUNED, ended)

    def retry(self) -> None:
        """Forget failures, so that the runs are continued or repeated."""
        for outcome in self.read_outcomes():
            if outcome.state == "failed":
                (outcome.folder / FAILED).unlink()
                for deaths in (self.path / LEASES).glob(f"{outcome.name}.deaths"):
                    deaths.unlink()
                (self.path / ANSWER).unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove the files of the study; study.json last, so that the rest is still recognized."""
        for name in (ANSWER, RUNS, LEASES, LOGS, JOBS, UNTRAINED, STUDY):
            entry = self.path / name
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink(missing_ok=True)


def select_run(path: Path) -> Path:
    """Return the folder of the study's run that is best on dev, among those whose weights were kept."""
    kept = [
        (one.results.splits["dev"].sort_key(), one.folder)
        for one in StudyFolder(path).read_outcomes()
        if one.results is not None and "dev" in one.results.splits and (one.folder / BEST).is_dir()
    ]
    if not kept:
        raise UserError(f"{path}: no run of this study has a score on dev and its weights (--keep best)")
    return max(kept, key=lambda one: one[0])[1]


def read_ending(run: Path) -> tuple[State, Ended] | None:
    """Return why a run has no results, if it ended without them."""
    endings: dict[str, State] = {FAILED: "failed", PRUNED: "pruned"}
    name = next((name for name in endings if (run / name).is_file()), None)
    return None if name is None else (endings[name], read_record(Ended, run / name))


def begin(
    record: StudyRecord, out: Path | None, parts: Sequence[str], *, overwrite: bool = False
) -> StudyFolder:
    """Create the study in `out`, or continue it; the options must be those it was begun with.

    Without `out` it is `studies/KIND-PARTS[-N]`: the first that is this study, or is not there yet.
    """
    refuse_same_names(record.configurations)
    folder = choose_study_folder(record, out, parts)
    if overwrite and (folder.path / STUDY).is_file():
        folder.clear()  # what is left are a person's own files
    elif (difference := explain_conflict(folder, record)) is not None:
        raise UserError(difference)
    if not (folder.path / STUDY).is_file():
        try:
            (folder.path / RUNS).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(folder.path, error) from None
        folder.write(replace(record, planned=len(record.configurations)))
    clear_study_leftovers(folder.path)
    return folder


def choose_study_folder(
    record: StudyRecord, out: Path | None, parts: Sequence[str], root: str = "studies"
) -> StudyFolder:
    """Return the folder of a study, which may not exist yet."""
    if out is not None:
        return StudyFolder(expand_path(out))
    number, name = 1, "-".join(slug(part) for part in (record.kind, *parts))
    folder = StudyFolder(Path(root) / name)
    while explain_conflict(folder, record) is not None:
        number += 1
        folder = StudyFolder(Path(root) / f"{name}-{number}")
    return folder


def explain_conflict(folder: StudyFolder, record: StudyRecord) -> str | None:
    """Return why a folder cannot contain this study; None if it is empty or already contains it."""
    if folder.path.is_file():
        return f"{folder.path}: is a file; a study needs a folder"
    if not (folder.path / STUDY).is_file():
        if folder.path.is_dir() and any(folder.path.iterdir()):
            return f"{folder.path}: holds files but no study ({STUDY} is missing); --out names another folder"
        return None
    begun = folder.read()
    if begun.kind != record.kind:
        return f"{folder.path}: is a study of another kind ({shorten(begun.kind)}); --out names another"
    was, now = (flatten_options({"seed": r.seed, **r.options}) for r in (begun, record))
    difference = find_difference(was, now)
    if KEEPS.index(record.keep) > KEEPS.index(begun.keep):  # weights may be gone already
        difference = difference or ("keep", begun.keep, record.keep)
    if difference is None:  # some options are only in the configurations, which may have grown since
        planned = begun.planned or len(record.configurations)
        for before, after in zip_longest(begun.configurations[:planned], record.configurations):
            difference = difference or find_difference(
                flatten_options(comparable_settings(before)), flatten_options(comparable_settings(after))
            )
    if difference is None:
        return None
    option, had, has = difference
    return (
        f"{folder.path}: was begun with {option} {had}, now it is {has}; "
        "the same options continue it, --overwrite starts anew, another --out is another study"
    )


def comparable_settings(configuration: Configuration | None) -> Mapping[str, Any]:
    """Return the settings of a configuration, or its name where that is all that differs."""
    return {} if configuration is None else {**configuration.settings, "run": configuration.name}


def find_difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[str, str, str] | None:
    """Return the first option that differs, with its former and its present value."""
    for key in sorted(was.keys() | now.keys(), key=lambda key: (key == "run", key)):
        if was.get(key) != now.get(key):
            had, has = (shorten(str(x.get(key, "not given"))) for x in (was, now))
            return key.rpartition(".")[2].replace("_", "-"), had, has
    return None


def refuse_same_names(configurations: Sequence[Configuration]) -> None:
    """Refuse configurations with the same name, which would share a folder."""
    for name, n in Counter(configuration.name for configuration in configurations).items():
        if n > 1:
            raise UserError(f"{n} runs of this study would be called {shorten(name)}; give each thing once")


def flatten_options(options: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Return nested options in one level, as JSON has them."""
    flattened: dict[str, Any] = {}
    for key, value in to_json_value(options).items():
        if isinstance(value, dict):
            flattened |= flatten_options(value, f"{above}{key}.")
        elif value is not None:
            flattened[above + key] = value
    return flattened
