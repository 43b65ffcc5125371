"""A study whose workers are a job array on a cluster. Any of them concludes it, so nobody has to wait."""

from __future__ import annotations

import time
from typing import NoReturn

from heedful.errors import SubmittedElsewhere, UserError
from heedful.launch.site import add_site_options
from heedful.launch.slurm import monitor
from heedful.launch.slurm.jobs import SlurmJob
from heedful.launch.slurm.records import Submission
from heedful.launch.slurm.submission import PreparedJob, describe_submission, prepare_job, submit_job
from heedful.logs import notice
from heedful.options.command_line import command_words
from heedful.options.launch import MAX_PARALLEL, StudyLaunchOptions
from heedful.paths import expand_path
from heedful.runs.studies import JOBS, StudyFolder, StudyRecord
from heedful.studies import find_kind
from heedful.studies.shared.live_table import live_table


def show_script(
    record: StudyRecord, launch: StudyLaunchOptions, folder: StudyFolder, threads: int | None
) -> NoReturn:
    """Raise with the batch script that `submit_workers` would submit; nothing is written."""
    prepared = prepare_workers(record, launch, folder, threads)
    raise SubmittedElsewhere(prepared.script, {"folder": str(prepared.folder), "script": prepared.script})


def submit_workers(folder: StudyFolder, launch: StudyLaunchOptions, threads: int | None) -> None:
    """Submit the workers, and with --wait follow them to the study's answer."""
    prepared = prepare_workers(folder.read(), launch, folder, threads)
    submitted = submit_job(prepared)
    if not launch.wait:
        text, facts = describe_submission(prepared.folder, submitted)
        raise SubmittedElsewhere(text, facts)
    try:
        watch(folder, prepared, submitted)
    except KeyboardInterrupt:
        number = submitted.job
        notice(f"job {number} continues; heedful jobs cancel {number} ends it")
        raise


def prepare_workers(
    record: StudyRecord, launch: StudyLaunchOptions, folder: StudyFolder, threads: int | None
) -> PreparedJob:
    """Return the job array, with no more workers than there are jobs."""
    launch = add_site_options(launch)
    workers = MAX_PARALLEL if launch.max_parallel is None else launch.max_parallel
    path = expand_path(folder.path).absolute()
    if not find_kind(record.kind).grows(record):
        workers = min(workers, len({configuration.claim for configuration in record.configurations}))
    words = command_words(["study", "worker"], [path])
    words += () if threads is None else (f"--threads={threads}",)
    return prepare_job(words, launch, path / JOBS, name=path.name, workers=max(1, workers))


def watch(folder: StudyFolder, prepared: PreparedJob, submitted: Submission) -> None:
    """Show the study's progress until it is concluded or its last worker has ended."""
    job: SlurmJob | None = None
    last_query = 0.0
    with live_table(folder) as live:
        while not folder.concluded:
            live.update()
            if time.monotonic() - last_query > monitor.ASK_SECONDS:
                job, last_query = monitor.refresh_job(prepared.folder, submitted, job), time.monotonic()
                if job.over and not folder.concluded:
                    raise describe_end(folder, job)
            time.sleep(monitor.LOOK_SECONDS)
        live.update()


def describe_end(folder: StudyFolder, job: SlurmJob) -> UserError:
    why = next((task.reason for task in job.tasks if task.state != "done" and task.reason), job.state)
    return UserError(f"{folder.path}: the workers of job {job.job} have ended: {why}")
