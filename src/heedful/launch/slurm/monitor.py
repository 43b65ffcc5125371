"""Follows a job to its end: its progress, its output and its exit status."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

from heedful.errors import one_line
from heedful.launch.slurm import client
from heedful.launch.slurm.jobs import SlurmJob, job_state
from heedful.launch.slurm.records import OUT, JobProgress, Submission, read_end, read_progress, task_file
from heedful.logs import notice, progress_line
from heedful.progress import ProgressBar, progress
from heedful.runs.directory import LOG
from heedful.training.signals import STATUS_STOPPED

LOOK_SECONDS = 0.5
ASK_SECONDS = 5.0
"""A cluster's controller serves many: it is asked seldom; a job's own files say most of it."""


class Display:
    """A log's lines on stderr; on a terminal, a bar takes the place of its lines of progress."""

    def __init__(self) -> None:
        self.shown: ProgressBar | None = None
        self.stack = ExitStack()

    def show_line(self, text: str, count: JobProgress | None = None) -> None:
        if count is not None and count.is_line(text) and sys.stderr.isatty():
            return
        self.close()
        progress_line(one_line(text))

    def show_progress(self, count: JobProgress) -> None:
        if not sys.stderr.isatty():
            return
        label = one_line(count.label)
        if self.shown is None or (self.shown.label, self.shown.total) != (label, count.total):
            self.close()
            self.shown = self.stack.enter_context(progress(label, count.total))
        if count.done != self.shown.done:
            self.shown.advance(count.done - self.shown.done, one_line(count.note))

    def close(self) -> None:
        self.stack.close()
        self.shown = None


class Tail:
    """A log that grows; whole lines only."""

    def __init__(self, path: Path, begin: int, prefix: str) -> None:
        self.path, self.at, self.prefix, self.rest = path, begin, prefix, b""

    def new_lines(self) -> list[str]:
        try:
            with self.path.open("rb") as file:
                if file.seek(0, os.SEEK_END) < self.at:
                    self.at = 0
                file.seek(self.at)
                read = file.read()
        except OSError:
            return []
        self.at += len(read)
        *lines, self.rest = (self.rest + read).split(b"\n")
        return [line.decode(errors="replace") for line in lines]


def show_news(display: Display, folder: Path, tails: Mapping[int | None, Tail]) -> None:
    """Show the new lines of the logs, and the last count of the first task that has one."""
    counts = {task: read_progress(folder, task) for task in tails}
    for task, log in tails.items():
        for line in log.new_lines():
            display.show_line(log.prefix + line, None if log.prefix else counts[task])
    if len(tails) == 1 and (count := next(iter(counts.values()))) is not None:
        display.show_progress(count)


def follow_job(folder: Path, submitted: Submission) -> SlurmJob:
    """Show a job's log until it is over, then copy its output to stdout."""
    display = Display()
    tails = {}
    for task in submitted.tasks:
        prefix = "" if task is None else f"{task}: "
        tails[task] = Tail(task_file(folder, LOG, task), submitted.log_bytes[task or 0], prefix)
    said, job, asked = "", None, 0.0
    try:
        while job is None or not job.over:
            show_news(display, folder, tails)
            if job is None or time.monotonic() - asked > ASK_SECONDS or have_all_ended(folder, submitted):
                job, asked = refresh_job(folder, submitted, job), time.monotonic()
                now = summarize_states(job)
                if now != said and not job.over:
                    display.close()
                    notice(f"job {job.job}: {now}")
                    said = now
            time.sleep(LOOK_SECONDS)
        show_news(display, folder, tails)
    except KeyboardInterrupt:
        display.close()
        number = submitted.job
        notice(f"job {number} goes on; heedful jobs cancel {number} ends it")
        raise
    finally:
        display.close()
    for task in submitted.tasks:
        copy_output(task_file(folder, OUT, task), submitted.out_bytes[task or 0])
    return job


def refresh_job(folder: Path, submitted: Submission, before: SlurmJob | None) -> SlurmJob:
    """Return the job's state; while Slurm does not answer, the last known one."""
    try:
        entries = [entry for entry in client.read_queue() if entry.job == submitted.job]
    except client.SlurmError:
        if before is None:
            raise
        return job_state(folder, submitted, []) if have_all_ended(folder, submitted) else before
    return job_state(folder, submitted, entries or client.read_accounting([submitted.job]))


def have_all_ended(folder: Path, submitted: Submission) -> bool:
    """Whether every task has reported its end; one that was stopped may begin again."""
    notes = [read_end(folder, task, submitted.job) for task in submitted.tasks]
    return all(note is not None and note.status != STATUS_STOPPED for note in notes)


def summarize_states(job: SlurmJob) -> str:
    if len(job.tasks) == 1:
        reason = job.tasks[0].reason
        return job.state + (f" ({reason})" if reason else "")
    states = [task.state for task in job.tasks]
    return ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))


def copy_output(path: Path, begin: int) -> None:
    if not path.is_file():
        return
    sys.stdout.flush()
    with path.open(encoding="utf-8", errors="replace") as file:
        file.seek(begin if begin <= path.stat().st_size else 0)
        shutil.copyfileobj(file, sys.stdout)
    sys.stdout.flush()


def exit_status(job: SlurmJob) -> int:
    """Return the first exit status of the tasks that is not 0."""
    return next((task.status or 1 for task in job.tasks if task.state != "done"), 0)
