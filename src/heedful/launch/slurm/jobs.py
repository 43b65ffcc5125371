"""The state of jobs: from their folders, and from Slurm what those cannot know."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heedful.errors import UserError, one_line
from heedful.launch.slurm import client, records
from heedful.launch.slurm.client import QueueEntry
from heedful.launch.slurm.records import JobEnd, JobProgress, Submission, read_submission, task_file
from heedful.launch.slurm.script import SCRIPT
from heedful.runs.directory import BEST, CHECKPOINTS, JOB, LOG, RESULTS, STUDY, Run
from heedful.runs.studies import StudyFolder
from heedful.training.signals import STATUS_STOPPED

PLACES = ("runs", "studies")
DEPTH = 5
TAIL_BYTES = 16_384
STATES = ("running", "queued", "failed", "stopped", "cancelled", "done")
"""The states of a job. An array has the first of these that one of its tasks has."""
WAITING = ("PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED")
WHY = {
    "TIMEOUT": "the time limit was over",
    "OUT_OF_MEMORY": "more memory than it was given; --mem-gb gives more",
    "NODE_FAIL": "the node failed",
    "BOOT_FAIL": "the node did not start",
    "PREEMPTED": "another job had precedence",
    "DEADLINE": "its deadline was over",
}


@dataclass(frozen=True)
class TaskState:
    task: int | None
    state: str
    reason: str = ""
    progress: str = ""
    elapsed: str = ""
    status: int | None = None


@dataclass(frozen=True)
class SlurmJob:
    job: str
    folder: Path
    submitted: Submission
    tasks: tuple[TaskState, ...]

    @property
    def state(self) -> str:
        return min((task.state for task in self.tasks), key=STATES.index)

    @property
    def over(self) -> bool:
        return self.state not in ("queued", "running")


def find_folders(roots: Iterable[Path]) -> list[Path]:
    """Return the folders below that hold a job; checkpoints are not searched."""
    folders = []
    for root in roots:
        if not root.is_dir():
            raise UserError(f"{root}: there is no such folder")
        for here, names, files in os.walk(root):
            depth = len(Path(here).relative_to(root).parts)
            names[:] = sorted(n for n in names if n not in (CHECKPOINTS, BEST) and not n.startswith("."))
            if depth >= DEPTH:
                names.clear()
            if JOB in files:
                folders.append(Path(here).absolute())
    return list(dict.fromkeys(folders))


def find_jobs(roots: Sequence[Path]) -> tuple[list[SlurmJob], str | None]:
    """Return all jobs below the folders, without folders also those in the queue; and why Slurm is silent."""
    trouble, queue = None, list[QueueEntry]()
    try:
        queue = client.read_queue()
    except UserError as error:
        trouble = str(error)
    folders = find_folders(roots or [path for path in map(Path, PLACES) if path.is_dir()])
    if not roots:
        scripts = [Path(entry.command) for entry in queue if Path(entry.command).name == SCRIPT]
        folders += [script.parent for script in scripts if (script.parent / JOB).is_file()]
    submitted = {folder: read_submission(folder) for folder in dict.fromkeys(folders)}
    pairs = [(folder, one) for folder, one in submitted.items() if one is not None]
    queued = {entry.job for entry in queue}
    if trouble is None:
        queue += client.read_accounting([one.job for _, one in pairs if one.job not in queued])
    jobs = [job_state(folder, one, queue) for folder, one in pairs]
    return sorted(jobs, key=lambda job: job.submitted.submitted), trouble


def active_jobs(folder: Path, queue: Sequence[QueueEntry]) -> list[str]:
    submissions = [read_submission(job_folder) for job_folder in find_folders([folder])]
    if not any(submissions):
        raise UserError(f"{folder}: holds no job")
    numbers = [one.job for one in submissions if one is not None]
    active = [number for number in numbers if any(k.job == number and k.active for k in queue)]
    if not active:
        raise UserError(f"{folder}: its job {numbers[-1]} is over")
    return active


def job_state(folder: Path, submitted: Submission, queue: Sequence[QueueEntry]) -> SlurmJob:
    mine = {entry.task: add_exit_status(entry) for entry in queue if entry.job == submitted.job}
    tasks = tuple(task_state(folder, submitted, task, mine.get(task)) for task in submitted.tasks)
    return SlurmJob(submitted.job, folder, submitted, tasks)


def add_exit_status(entry: QueueEntry) -> QueueEntry:
    """Add the status of a job that failed, which squeue does not tell."""
    if entry.active or entry.exit_status is not None or entry.state == "COMPLETED":
        return entry
    return replace(entry, exit_status=client.ask_exit_status(entry))


def task_state(folder: Path, submitted: Submission, task: int | None, entry: QueueEntry | None) -> TaskState:
    begin = submitted.log_bytes[task or 0] if len(submitted.log_bytes) > (task or 0) else 0
    lines = read_tail(task_file(folder, LOG, task), begin)
    ended, count = records.read_end(folder, task, submitted.job), records.read_progress(folder, task)
    finished = task is None and (folder / RESULTS).is_file()
    state, reason = decide_state(entry, ended, finished, last_message(lines, count))
    return TaskState(
        task,
        state,
        reason,
        describe_run(folder, count) if task is None else count.describe() if count is not None else "",
        entry.elapsed if entry else "",
        ended.status if ended else entry.exit_status if entry else None,
    )


def decide_state(
    entry: QueueEntry | None, ended: JobEnd | None, finished: bool, last: str
) -> tuple[str, str]:
    """Return the state of one task and its reason; `finished` means that a run has its results."""
    if entry is not None and entry.active and not is_cleaning_up(entry, ended):
        if entry.state not in WAITING:
            return "running", ""
        if ended is not None and ended.requeued:
            return "queued", f"requeued: {entry.reason or 'goes on soon'}"
        return "queued", entry.reason
    if entry is not None and entry.state == "CANCELLED":
        return "cancelled", ended.message if ended else ""
    if ended is not None and not ended.requeued:
        if ended.status == 0:
            return "done", ""
        return "stopped" if ended.status == STATUS_STOPPED else "failed", ended.message
    if entry is not None and entry.state == "COMPLETED":
        return "done", ""
    if entry is not None:
        code = f"status {entry.exit_status}" if entry.exit_status else entry.state.lower().replace("_", " ")
        return "failed", WHY.get(entry.state, f"{code}: {last}" if last else code)
    if finished:
        return "done", ""
    return "failed", last or "it left no message, and Slurm no longer knows it"


def is_cleaning_up(entry: QueueEntry, ended: JobEnd | None) -> bool:
    """Whether a job has ended while Slurm still lists it; after a stop it may begin again."""
    return entry.state not in WAITING and ended is not None and ended.status != STATUS_STOPPED


def study_progress(folder: Path) -> str:
    """Return how many runs of a study are over; "" if the job is not a study."""
    if not (folder.parent / STUDY).is_file():
        return ""
    outcomes = StudyFolder.open(folder.parent).read_outcomes()
    return f"{sum(outcome.over for outcome in outcomes)} of {len(outcomes)} runs"


def describe_run(folder: Path, count: JobProgress | None) -> str:
    """Say how far a run is: its scores when it has ended, else the last count, else its last evaluation."""
    run = Run(folder)
    try:
        if run.has_results:
            splits = run.read_results().splits.items()
            return ", ".join(f"{name} {r.metric} {r.value:.3f}" for name, r in splits if r.value is not None)
        if count is not None:
            return count.describe()
        rows = [row for row in run.read_metrics() if row.value is not None]
    except UserError:
        return ""
    return f"epoch {rows[-1].epoch:.3g}, {rows[-1].split} {rows[-1].value:.3f}" if rows else ""


def read_tail(path: Path, begin: int) -> list[str]:
    """Return the last lines of a log, from the byte `begin` on; the first may be half."""
    try:
        with path.open("rb") as file:
            length = file.seek(0, os.SEEK_END)
            file.seek(max(begin if begin <= length else 0, length - TAIL_BYTES))
            return file.read().decode(errors="replace").splitlines()
    except OSError:
        return []


def last_message(lines: Sequence[str], count: JobProgress | None) -> str:
    for line in reversed(lines):
        if line.strip() and not (count is not None and count.is_line(line)):
            return one_line(line.strip()).removeprefix("heedful: ")
    return ""
