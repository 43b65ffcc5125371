"""The process of a batch job: it requeues itself before its time is over, and writes how it ended."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

from heedful.errors import UserError, one_line
from heedful.launch.rank_environment import is_slurm_follower, read_number
from heedful.launch.slurm import client
from heedful.launch.slurm.records import END, JobEnd, task_file
from heedful.logs import warn
from heedful.progress import write_progress_to
from heedful.runs.directory import PROGRESS
from heedful.runs.files import write_json
from heedful.training.signals import StoppedError, StopSignals


class BatchJob:
    """The batch job that this process is: `exec`ed by the script that `heedful.launch.slurm.script` makes."""

    def __init__(self, folder: str, environment: dict[str, str]) -> None:
        task = environment.get("SLURM_ARRAY_TASK_ID", "")
        self.folder = Path(folder)
        self.task = int(task) if task.isdigit() else None
        self.job = environment.get("SLURM_ARRAY_JOB_ID") or environment.get("SLURM_JOB_ID", "")
        self.restarts = read_number(environment, "SLURM_RESTART_COUNT")
        self.max_requeues = read_number(environment, "HEEDFUL_MAX_REQUEUES")
        self.follows = is_slurm_follower(environment)

    @classmethod
    def from_environment(cls) -> BatchJob:
        """Read the variables that the script sets, and remove them: child processes are not the job."""
        folder = os.environ.pop("HEEDFUL_JOB")
        inside = cls(folder, dict(os.environ))
        if not inside.follows:
            task_file(inside.folder, END, inside.task).unlink(missing_ok=True)
        return inside

    @property
    def number(self) -> str:
        """Slurm's name of this job; in an array, the job number alone would mean all tasks."""
        return self.job if self.task is None else f"{self.job}_{self.task}"

    def run(self, work: Callable[[], tuple[int, BaseException | None]]) -> int:
        """Do the work, and write how it ended; a stop before the time limit requeues the job.

        Of several tasks the first one does so for all. That another one was stopped is no failure, which
        would end the first before it has done it.
        """
        try:
            # From the first moment on: on a busy node the warning may come while torch is still loaded.
            file = task_file(self.folder, PROGRESS, self.task)
            counted = nullcontext() if self.follows else write_progress_to(file)
            with StopSignals(silent=True).handle(signal.SIGUSR1), counted:
                status, error = work()
        except BaseException as failure:
            if self.follows:
                raise
            self.write_end(1, f"{type(failure).__name__}: {failure}")
            raise
        if self.follows:
            return 0 if isinstance(error, StoppedError) else status
        if getattr(error, "by", None) is signal.SIGUSR1:
            self.requeue_or_end(status, str(error))
        else:
            self.write_end(status, str(error or ""))
        return status

    def requeue_or_end(self, status: int, message: str) -> None:
        if not self.job or self.restarts >= self.max_requeues:
            said = f"no requeue left of {self.max_requeues}; {message}"
            warn(said)
            self.write_end(status, said)
            return
        count = f"requeue {self.restarts + 1} of {self.max_requeues}"
        warn(f"job {self.number} goes back into the queue ({count})")
        self.write_end(status, message, requeued=True)  # before: Slurm ends this process at once
        try:
            client.requeue(self.number)
        except UserError as error:
            warn(str(error))
            self.write_end(status, f"{error}; {message}")

    def write_end(self, status: int, message: str, *, requeued: bool = False) -> None:
        """Write how it ended. That a full disk prevents this changes nothing about the end."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        try:
            end = JobEnd(self.job, status, one_line(message), requeued, now)
            write_json(task_file(self.folder, END, self.task), end)
        except UserError as error:
            warn(str(error))
