"""A study whose workers are a job array on a cluster. Any of them concludes it; nobody has to wait here."""

from __future__ import annotations

import sys
import time
from typing import NoReturn

from heedful import studies
from heedful.errors import SubmittedElsewhere, UserError
from heedful.launch.site import add_site_options
from heedful.launch.slurm import monitor
from heedful.launch.slurm.jobs import SlurmJob
from heedful.launch.slurm.records import Submission
from heedful.launch.slurm.submission import PreparedJob, describe_submission, prepare_job, submit_job
from heedful.options.command_line import command_words
from heedful.options.launch import MAX_PARALLEL, StudyLaunchOptions
from heedful.runs.studies import JOBS, StudyFolder, StudyRecord
from heedful.studies.shared.live_table import watched


def show(
    record: StudyRecord, launch: StudyLaunchOptions, folder: StudyFolder, threads: int | None
) -> NoReturn:
    """Give the batch script that `work` would submit; nothing is written."""
    prepared = ready(record, launch, folder, threads)
    raise SubmittedElsewhere(prepared.script, {"folder": str(prepared.folder), "script": prepared.script})


def work(folder: StudyFolder, launch: StudyLaunchOptions, threads: int | None) -> None:
    """Submit the workers, and follow them to the study's answer if that is asked for."""
    prepared = ready(folder.read(), launch, folder, threads)
    submitted = submit_job(prepared)
    if not launch.wait:
        text, facts = describe_submission(prepared.folder, submitted)
        raise SubmittedElsewhere(text, facts)
    try:
        watch(folder, prepared, submitted)
    except KeyboardInterrupt:
        number = submitted.job
        print(f"heedful: job {number} goes on; heedful jobs cancel {number} ends it", file=sys.stderr)
        raise


def ready(
    record: StudyRecord, launch: StudyLaunchOptions, folder: StudyFolder, threads: int | None
) -> PreparedJob:
    """The job array, with no more workers than there can be work for."""
    launch = add_site_options(launch)
    workers = MAX_PARALLEL if launch.max_parallel is None else launch.max_parallel
    place = folder.path.expanduser().absolute()
    if not studies.kind(record.kind).grows(record):
        workers = min(workers, len({configuration.claim for configuration in record.configurations}))
    words = command_words(["study", "worker"], [place])
    words += () if threads is None else (f"--threads={threads}",)
    return prepare_job(words, launch, place / JOBS, name=place.name, workers=max(1, workers))


def watch(folder: StudyFolder, prepared: PreparedJob, submitted: Submission) -> None:
    """Show how far the study is, until it is concluded or its last worker has ended."""
    job: SlurmJob | None = None
    asked = 0.0
    with watched(folder) as live:
        while not folder.concluded:
            live.update()
            if time.monotonic() - asked > monitor.ASK_SECONDS:
                job, asked = monitor.refresh_job(prepared.folder, submitted, job), time.monotonic()
                if job.over and not folder.concluded:
                    raise ended(folder, job)
            time.sleep(monitor.LOOK_SECONDS)
        live.update()


def ended(folder: StudyFolder, job: SlurmJob) -> UserError:
    """Say why the workers ended before the study did."""
    why = next((task.reason for task in job.tasks if task.state != "done" and task.reason), job.state)
    return UserError(f"{folder.path}: the workers of job {job.job} have ended: {why}")
