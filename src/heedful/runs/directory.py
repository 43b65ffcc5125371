"""The run directory: the only interface between training and reporting."""

from __future__ import annotations

import itertools
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heedful.errors import UserError, shorten
from heedful.options.configuration import COMMANDS, check_stored_options
from heedful.runs import files
from heedful.runs.files import JsonLines, write_error, write_json
from heedful.runs.json_files import decode_record, iterate_rows, read_json, read_record
from heedful.runs.leftovers import clear_run_leftovers
from heedful.runs.old_names import mark_balanced, mark_prompt_length, update_names
from heedful.runs.schemas import Checks, Environment, Metrics, Prediction, Results, Timing
from heedful.runs.toml import read_toml, write_toml

CONFIG, RESULTS, CHECKS, ENVIRONMENT = "config.toml", "results.json", "checks.json", "env.json"
METRICS, TIMING, LOG = "metrics.jsonl", "timing.jsonl", "log.txt"
CHECKPOINTS, BEST = "checkpoints", "best"
JOB = "job.json"
PROGRESS = "progress.json"
ESTIMATOR = "estimator.json"
"""Beside the files of a run: the parameters and the classes of the `TextClassifier` that was saved."""
STUDY = "study.json"
CHOSEN = "chosen.json"
"""In a folder with several runs: which of them was chosen."""
REFITTED = "-refitted"
"""How the name of a run ends in which a chosen model is fitted again on train and dev."""
BAG_OF_WORDS = "bag_of_words"
PREDICTIONS = re.compile(rf"(predictions|{BAG_OF_WORDS})_[\w-]+\.(jsonl|txt)")
OF_JOBS = re.compile(
    r"jobs|submit\.sh|job\.json|(?:(?:out|log)(?:-\d+)?\.txt)|(?:ended|progress)(?:-\d+)?\.json"
)
"""The files of a batch job in its folder (`heedful.launch`)."""


class Run:
    """The folder of one run. `create` starts or continues one, `open` reads one."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @classmethod
    def create(cls, path: str | Path, *, overwrite: bool = False, resume: bool = False) -> Run:
        """Start a run in an empty or new folder, continue one (`resume`), or replace one (`overwrite`).

        Replacing removes only the files of a run; a folder without a run is not touched.
        """
        run = cls(path)
        if overwrite and resume:
            raise UserError("--overwrite and --resume exclude each other")
        try:
            run.path.mkdir(parents=True, exist_ok=True)
            holds = sorted(entry.name for entry in run.path.iterdir())
        except (FileExistsError, NotADirectoryError):
            raise UserError(f"{run.path}: is a file; a run needs a folder") from None
        except OSError as error:
            raise write_error(run.path, error) from None
        if holds and not (overwrite or resume):
            advice = "--resume continues the run there, --overwrite replaces it"
            raise UserError(f"{run.path}: is not empty; {advice}")
        # A run that was killed before its configuration was written has only files of a run.
        if CONFIG not in holds and not all(is_run_file(name) for name in holds):
            reason = f"contains files but no run ({CONFIG} is missing)"
            raise UserError(f"{run.path}: {reason}; give another folder with --out")
        if overwrite:
            run.clear()
        if resume:
            files.remove_temporary(run.path)
            files.remove_temporary(run.checkpoints)
            files.recover(run.path / BEST)
            clear_run_leftovers(run.path)
        return run

    @classmethod
    def open(cls, path: str | Path) -> Run:
        run = cls(follow_choice(path))
        if not run.path.is_dir():
            raise UserError(f"{run.path}: there is no such folder")
        clear_run_leftovers(run.path)
        if not (run.path / CONFIG).is_file():
            raise UserError(f"{run.path}: is not a run ({CONFIG} is missing)")
        return run

    def clear(self) -> None:
        """Remove the files of a run; results first, so that a half-removed run never looks finished."""
        names = [RESULTS, *sorted(entry.name for entry in self.path.iterdir() if is_run_file(entry.name))]
        for name in dict.fromkeys(names):
            entry = self.path / name
            shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink(
                missing_ok=True
            )

    @property
    def has_results(self) -> bool:
        return (self.path / RESULTS).is_file()

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write the resolved configuration, from which `heedful run` repeats the run."""
        write_toml(self.path / CONFIG, config, comment=f"heedful run {CONFIG} makes this run again")

    def read_config(self) -> dict[str, Any]:
        stored = update_names(read_toml(self.path / CONFIG))
        for command, kind in COMMANDS.items():
            if command in stored:
                check_stored_options(kind, stored[command], f"{self.path / CONFIG} [{command}]")
        if "command" in stored and str(stored["command"]) not in stored:
            raise UserError(f"{self.path / CONFIG}: has no table of the options of its command")
        config: dict[str, Any] = mark_balanced(stored)
        return mark_prompt_length(config)

    def write_results(self, results: Results) -> None:
        """Write the results. They come last: a run with results is finished."""
        write_json(self.path / RESULTS, results)

    def read_results(self) -> Results:
        if not self.has_results:
            unfinished = "the run has not finished (--resume continues it)"
            raise UserError(f"{self.path}: has no {RESULTS}: {unfinished}")
        results = read_record(Results, self.path / RESULTS)
        if (wrong := results.find_contradiction()) is not None:
            raise UserError(f"{self.path / RESULTS}: {wrong}")
        return results

    def write_checks(self, checks: Checks) -> None:
        write_json(self.path / CHECKS, checks)

    def read_checks(self) -> Checks:
        path = self.path / CHECKS
        return decode_record(Checks, update_names(read_json(path)), str(path))

    def write_environment(self, environment: Environment) -> None:
        write_json(self.path / ENVIRONMENT, environment)

    def read_environment(self) -> Environment:
        return read_record(Environment, self.path / ENVIRONMENT)

    def metrics_log(self, *, keep: int | None = None) -> JsonLines:
        """Open metrics.jsonl for writing; `keep` continues after this many bytes."""
        return JsonLines(self.path / METRICS, keep=keep)

    def read_metrics(self) -> list[Metrics]:
        return list(iterate_rows(Metrics, self.path / METRICS))

    def timing_log(self, *, keep: int | None = None) -> JsonLines:
        """Open timing.jsonl for writing; `keep` as for the metrics."""
        return JsonLines(self.path / TIMING, keep=keep)

    def read_timing(self) -> list[Timing]:
        return list(iterate_rows(Timing, self.path / TIMING))

    def write_predictions(
        self, split: str, predictions: Iterable[Prediction], *, by: str = "predictions"
    ) -> None:
        """Write one row per example; the file appears when it is complete.

        `by` is the first part of the file's name, which is another one for a baseline's predictions.
        """
        path = self.path / f"{by}_{split}.jsonl"
        temporary = files.temporary_path(path)
        try:
            with JsonLines(temporary) as log:
                for prediction in predictions:
                    log.append(prediction)
                log.sync()
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)

    def write_answers(self, split: str, answers: Iterable[str]) -> None:
        """Write only the answers, one per line, in the order of the questions."""
        files.write_text(self.path / f"predictions_{split}.txt", "".join(f"{answer}\n" for answer in answers))

    def read_predictions(self, split: str, *, by: str = "predictions") -> list[Prediction]:
        return list(iterate_rows(Prediction, self.path / f"{by}_{split}.jsonl"))

    @property
    def checkpoints(self) -> Path:
        return self.path / CHECKPOINTS

    @property
    def best(self) -> Path:
        return self.path / BEST


def is_output(folder: Path) -> bool:
    """Return whether a folder is that of a run or a study, and not one with a person's own files."""
    return any((folder / name).is_file() for name in (CONFIG, STUDY))


def follow_choice(path: str | Path) -> Path:
    """Return the folder of the chosen run of a study or a folder of several runs; another as it is."""
    folder = Path(path)
    if (folder / CHOSEN).is_file():
        return folder / read_choice(folder / CHOSEN)
    if (folder / STUDY).is_file():
        from heedful.runs.studies import select_run

        return select_run(folder)
    return folder


@dataclass(frozen=True)
class Choice:
    """chosen.json."""

    run: str


def read_choice(path: Path) -> str:
    """Return the path of the chosen run below the folder; one that leads out of it is refused."""
    name = read_record(Choice, path).run
    if Path(name).is_absolute() or ".." in Path(name).parts or not name.strip("."):
        raise UserError(f'{path}: "{shorten(name)}" is no folder below it')
    return name


def name_refitted(run: Path) -> Path:
    """Return the folder of the run in which the model of another run is fitted again on train and dev."""
    return run.with_name(f"{run.name}{REFITTED}")


def name_before_refit(run: Path) -> Path:
    return run.with_name(run.name.removesuffix(REFITTED))


def write_choice(folder: Path, run: Path) -> None:
    write_json(folder / CHOSEN, {"run": run.relative_to(folder).as_posix()})


def is_run_file(name: str) -> bool:
    files = {CONFIG, RESULTS, CHECKS, ENVIRONMENT, METRICS, TIMING, LOG, CHECKPOINTS, BEST, f".{BEST}.former"}
    temporary = name.startswith(".") and name.endswith(".tmp")
    matches = PREDICTIONS.fullmatch(name) or OF_JOBS.fullmatch(name)
    return name in files or temporary or matches is not None


def new_run_path(root: str | Path, task: str, model: str, method: str, seed: int) -> Path:
    """Create and return the folder `ROOT/TASK-MODEL-METHOD-sSEED[-N]`, with the first free N."""
    for path in run_paths(root, task, model, method, seed):
        try:
            path.mkdir(parents=True)
            break
        except FileExistsError:
            continue
        except OSError as error:
            raise write_error(path, error) from None
    return path


def last_run_path(root: str | Path, task: str, model: str, method: str, seed: int) -> Path | None:
    """Return the last folder that `new_run_path` created for this name, if there is one."""
    first = next(run_paths(root, task, model, method, seed))
    folders = {1: first} if first.is_dir() else {}
    for path in first.parent.glob(f"{first.name}-*"):
        count = path.name.removeprefix(f"{first.name}-")
        if path.is_dir() and count.isdecimal():
            folders[int(count)] = path
    return folders[max(folders)] if folders else None


def run_paths(root: str | Path, task: str, model: str, method: str, seed: int) -> Iterator[Path]:
    """Yield the paths that a run's folder may have, the plainest first."""
    name = f"{slug(task)}-{slug(model)}-{slug(method)}-s{seed}"
    yield Path(root) / name
    for count in itertools.count(2):
        yield Path(root) / f"{name}-{count}"


def slug(text: str) -> str:
    """Return a name or a path as a harmless part of a folder's name."""
    last = [part for part in re.split(r"[/\\]", text) if part.strip(".")][-1:]
    words = re.sub(r"[^A-Za-z0-9._]+", "-", last[0] if last else "").strip("-.")
    return words[:40].rstrip("-.") or "unnamed"
