"""Submitting a command as a batch job."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.launch.slurm import client
from heedful.launch.slurm.options import refuse_impossible
from heedful.launch.slurm.records import END, OUT, Submission, read_submission, task_file, write_submission
from heedful.launch.slurm.script import SCRIPT, Batch, batch_script, command_line
from heedful.options.launch import LaunchOptions
from heedful.paths import expand_path
from heedful.runs.directory import LOG, PROGRESS
from heedful.runs.files import write_bytes, write_error


@dataclass(frozen=True)
class PreparedJob:
    """A job that is ready: its script, and where it goes."""

    batch: Batch
    script: str

    @property
    def folder(self) -> Path:
        return self.batch.folder


def prepare_job(
    words: tuple[str, ...],
    options: LaunchOptions,
    folder: Path,
    name: str = "",
    workers: int | None = None,
    tasks: int = 1,
) -> PreparedJob:
    """Check everything, and make the script; nothing is written. By default the folder names the job."""
    refuse_impossible(options)
    absolute = expand_path(folder).absolute()
    if set(str(absolute)) & set("%\\"):
        reason = "Slurm reads % and \\ in a path in its own way"
        raise UserError(f"{folder}: {reason}; --out names another folder")
    batch = Batch(words, absolute, Path.cwd(), name or absolute.name, workers, tasks)
    return PreparedJob(batch, batch_script(batch, options))


def submit_job(prepared: PreparedJob, replacing: Callable[[], object] | None = None) -> Submission:
    """Write the script into the job's folder and submit it from there; what Slurm refuses leaves nothing.

    `replacing` removes what the job is to replace; it is called when nothing speaks against the job any more.
    """
    folder, batch = prepared.folder, prepared.batch
    refuse_busy(folder)
    if replacing is not None:
        client.test_script(prepared.script)
        replacing()
    new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise write_error(folder, error) from None
    script = write_bytes(folder / SCRIPT, os.fsencode(prepared.script))
    tasks = [None] if batch.workers is None else list(range(batch.workers))
    for task in tasks:
        task_file(folder, END, task).unlink(missing_ok=True)
        task_file(folder, PROGRESS, task).unlink(missing_ok=True)
    paths = ([task_file(folder, name, task) for task in tasks] for name in (OUT, LOG))
    out, log = (tuple(p.stat().st_size if p.is_file() else 0 for p in each) for each in paths)
    try:
        job = client.sbatch(SCRIPT, folder)
    except BaseException:
        script.unlink(missing_ok=True)
        for path in new_folders:
            with suppress(OSError):
                path.rmdir()
        raise
    now = datetime.now(UTC).isoformat(timespec="seconds")
    submitted = Submission(job, batch.words, str(batch.cwd), now, batch.workers, out, log)
    write_submission(folder, submitted)
    return submitted


def describe_submission(folder: Path, submitted: Submission) -> tuple[str, dict[str, Any]]:
    """Return the job's number, its files and how to follow it: as text, and as data."""
    many = "" if submitted.workers is None else f", an array of {submitted.workers} workers"
    shown = folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
    log = str(task_file(shown, LOG, submitted.tasks[0]))
    look, watch = command_line(["heedful", "jobs", str(shown)]), command_line(["tail", "-f", log])
    lines = {
        f"job {submitted.job}": f"queued{many}",
        "folder": command_line([str(shown)]),
        "log": command_line([log]),
        "follow": f"{look}  or  {watch}",
        "cancel": f"heedful jobs cancel {submitted.job}",
    }
    facts = {
        "job": submitted.job,
        "folder": str(folder),
        "workers": submitted.workers,
        "script": str(folder / SCRIPT),
        "logs": [str(task_file(folder, LOG, task)) for task in submitted.tasks],
    }
    return "".join(f"{name + ':':<8} {text}\n" for name, text in lines.items()), facts


def refuse_busy(folder: Path) -> None:
    former = read_submission(folder)
    if former is not None and any(e.job == former.job and e.active for e in client.read_queue()):
        raise UserError(
            f"{folder}: job {former.job} is at it; heedful jobs shows it, "
            f"heedful jobs cancel {former.job} ends it"
        )
