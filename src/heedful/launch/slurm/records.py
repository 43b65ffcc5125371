"""The files of a job in its folder: how it was submitted, how far it is, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from heedful.errors import UserError, one_line
from heedful.runs.directory import JOB, PROGRESS
from heedful.runs.files import write_json
from heedful.runs.json_files import read_record

OUT, END = "out.txt", "ended.json"


@dataclass(frozen=True)
class Submission:
    """job.json: a job that Slurm has taken."""

    job: str
    command: tuple[str, ...]
    cwd: str
    submitted: str
    workers: int | None = None
    out_bytes: tuple[int, ...] = (0,)
    """The length of each worker's output before this job, which a former job wrote."""
    log_bytes: tuple[int, ...] = (0,)

    @property
    def tasks(self) -> list[int | None]:
        """The numbers of the array's tasks; of a job alone, None."""
        return [None] if self.workers is None else list(range(self.workers))


@dataclass(frozen=True)
class JobEnd:
    """ended.json: how the command ended."""

    job: str
    status: int
    message: str = ""
    requeued: bool = False
    time: str = ""


def write_submission(folder: Path, submitted: Submission) -> None:
    write_json(folder / JOB, submitted)


def read_submission(folder: Path) -> Submission | None:
    return read_record(Submission, folder / JOB) if (folder / JOB).is_file() else None


def task_file(folder: Path, name: str, task: int | None) -> Path:
    """Return a file of a task of an array, or of a job alone.

    `OUT` has what the command prints, `LOG` all other messages of the command and of Slurm.
    """
    stem, suffix = name.split(".")
    return folder / (name if task is None else f"{stem}-{task}.{suffix}")


@dataclass(frozen=True)
class JobProgress:
    """progress.json: the last count of the work (`heedful.progress`)."""

    label: str
    done: int
    total: int | None = None
    seconds: float = 0.0
    note: str = ""
    labels: tuple[str, ...] = ()
    """What all lines of progress in the log begin with."""

    def is_line(self, line: str) -> bool:
        return any(line.startswith(f"{label}: ") for label in self.labels)

    def describe(self) -> str:
        """Return the count in words, as `training (steps) 12 of 96`."""
        of = f" of {self.total:,}" if self.total else ""
        return one_line(f"{self.label} {self.done:,}{of}" + (f", {self.note}" if self.note else ""))


def read_progress(folder: Path, task: int | None) -> JobProgress | None:
    """Return the last count of a task; None where there is none yet."""
    try:
        return read_record(JobProgress, task_file(folder, PROGRESS, task))
    except UserError:
        return None


def read_end(folder: Path, task: int | None, job: str) -> JobEnd | None:
    """Return how this job's command ended; None if it has written nothing."""
    try:
        ended = read_record(JobEnd, task_file(folder, END, task))
    except UserError:
        return None
    return replace(ended, message=one_line(ended.message)) if ended.job == job else None
