"""The worker: one process that computes for all pages, one request after another.

The process that answers browsers never imports torch. It sends requests through a pipe to a spawned process
that keeps loaded models (`heedful.studio.model_store`), and gets progress and results back.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from heedful.errors import UserError, one_line
from heedful.logs import warn

Report = Callable[[float, str], None]
Result = dict[str, Any] | bytes
Outcome = Literal["progress", "result", "mistake", "failure", "canceled"]
PACKAGE = "heedful.studio.work."
"""Where functions of the worker are; it calls no others."""
DIED = "the process that computes has ended, perhaps for want of memory; it was started again: please repeat"


class WorkerError(Exception):
    """A function failed in the worker, for a reason that is not the user's."""


class WorkerDiedError(WorkerError):
    """The worker process ended while it computed."""


class CanceledError(Exception):
    """A request that nobody waits for any more: the page has sent a newer one."""


@dataclass(eq=False)
class Job:
    """One request to the worker."""

    number: int
    target: str
    params: Mapping[str, Any]
    progress: Report | None
    group: tuple[str, ...] | None
    """Which requests replace each other; None for one that is never replaced."""
    result: Future[Result] = field(default_factory=Future)


class Worker:
    """A worker process with its queue; `close` ends both.

    The process is started by the first request, and again after it has died.
    """

    def __init__(self, folder: Path, memory: int | None = None) -> None:
        self.folder, self.memory = folder, memory
        self.waiting: deque[Job] = deque()
        self.running: Job | None = None
        self.count = self.starts = 0
        self.closed = False
        self.changed = threading.Condition()
        self.context = multiprocessing.get_context("spawn")
        self.canceled = self.context.Value("q", -1)
        self.process: multiprocessing.process.BaseProcess | None = None
        self.pipe: Connection | None = None
        self.thread = threading.Thread(target=self.run_jobs, name="studio worker", daemon=True)
        self.thread.start()

    async def call(
        self,
        target: str,
        params: Mapping[str, Any],
        *,
        progress: Report | None = None,
        client: str = "",
        group: str | None = None,
    ) -> Result:
        """Run `function(params, models, report)` in the worker and return its result.

        A newer request of the same client for the same function (or `group`) cancels older ones: those that
        wait never begin, and one that is computing ends when it next reports progress. `progress` is called
        in the event loop. A request without a client is never canceled by another.
        """
        loop = asyncio.get_running_loop()

        def forward(share: float, message: str) -> None:
            if progress is not None:
                with suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(progress, share, message)

        job = self.submit(target, params, forward, (client, group or target) if client else None)
        try:
            return await asyncio.wrap_future(job.result)
        except asyncio.CancelledError:
            self.cancel(job)
            raise

    def submit(
        self,
        target: str,
        params: Mapping[str, Any],
        progress: Report | None = None,
        group: tuple[str, ...] | None = None,
    ) -> Job:
        """Put a request into the queue."""
        if not target.startswith(PACKAGE):
            raise ValueError(f"{target}: is not in {PACKAGE[:-1]}")
        with self.changed:
            if self.closed:
                raise WorkerError("the studio is closing")
            job = Job(self.count, target, params, progress, group)
            self.count += 1
            if group is not None:
                for other in [one for one in (self.running, *self.waiting) if one and one.group == group]:
                    self.cancel(other)
            self.waiting.append(job)
            self.changed.notify_all()
        return job

    def cancel(self, job: Job) -> None:
        """Drop a request that waits; ask one that is computing to end."""
        with self.changed:
            if job in self.waiting:
                self.waiting.remove(job)
                settle(job, CanceledError())
            elif job is self.running:
                self.canceled.value = job.number

    def close(self) -> None:
        """End the worker process and cancel what waits."""
        with self.changed:
            self.closed = True
            while self.waiting:
                settle(self.waiting.popleft(), CanceledError())
            self.changed.notify_all()
        self.stop_process()
        self.thread.join(timeout=5)

    def run_jobs(self) -> None:
        """Send one request after another, in a thread of its own."""
        while True:
            with self.changed:
                while not self.waiting and not self.closed:
                    self.changed.wait()
                if self.closed:
                    return
                job = self.running = self.waiting.popleft()
            try:
                settle(job, self.run_job(job))
            except BaseException as error:
                settle(job, error)
            with self.changed:
                self.running = None

    def run_job(self, job: Job) -> Result:
        pipe = self.running_pipe()
        try:
            pipe.send((job.number, job.target, dict(job.params)))
            while True:
                number, outcome, value = pipe.recv()
                if number != job.number:
                    continue
                if outcome != "progress":
                    break
                if job.progress is not None:
                    job.progress(*value)
        except (EOFError, OSError):
            if not self.closed:
                warn(f"the worker of the studio ended while it computed {job.target}; it is started again")
            self.stop_process()
            raise WorkerDiedError(DIED) from None
        return read_outcome(outcome, value)

    def running_pipe(self) -> Connection:
        """Return the pipe to the process, which is started if there is none."""
        if self.process is not None and self.pipe is not None and self.process.is_alive():
            return self.pipe
        self.stop_process()
        self.pipe, theirs = self.context.Pipe()
        arguments = (theirs, self.canceled, str(self.folder), self.memory)
        self.process = self.context.Process(target=serve_jobs, args=arguments, name="studio", daemon=True)
        self.process.start()
        self.starts += 1
        theirs.close()
        return self.pipe

    def stop_process(self) -> None:
        if self.process is not None and self.process.is_alive():
            self.process.kill()
            self.process.join(timeout=5)
        if self.pipe is not None:
            self.pipe.close()
        self.process = self.pipe = None


def settle(job: Job, outcome: Result | BaseException) -> None:
    """Tell who waits for a request how it ended, unless nobody does."""
    if not job.result.set_running_or_notify_cancel():
        return
    if isinstance(outcome, BaseException):
        job.result.set_exception(outcome)
    else:
        job.result.set_result(outcome)


def read_outcome(outcome: Outcome, value: Any) -> Result:
    if outcome == "mistake":
        raise UserError(value)
    if outcome == "failure":
        raise WorkerError(value)
    if outcome == "canceled":
        raise CanceledError
    result: Result = value
    return result


def serve_jobs(pipe: Connection, canceled: Any, folder: str, memory: int | None) -> None:
    """Answer requests until the pipe closes: what the worker process does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the pipe
    os.environ["HF_HUB_OFFLINE"] = "1"
    from heedful.studio.folder import StudioFolder
    from heedful.studio.model_store import ModelStore

    models = ModelStore(StudioFolder(Path(folder)), memory)
    while True:
        try:
            number, target, params = pipe.recv()
        except (EOFError, OSError):
            return
        with suppress(BrokenPipeError):
            pipe.send((number, *run_function(target, params, models, pipe, canceled, number)))


def run_function(
    target: str, params: dict[str, Any], models: Any, pipe: Connection, canceled: Any, number: int
) -> tuple[Outcome, Any]:
    def report(share: float, message: str = "") -> None:
        if canceled.value == number:
            raise CanceledError
        pipe.send((number, "progress", (float(share), message)))

    try:
        module, _, name = target.partition(":")
        return "result", getattr(import_module(module), name)(params, models, report)
    except CanceledError:
        return "canceled", None
    except UserError as error:
        return "mistake", str(error)
    except Exception as error:
        traceback.print_exc()
        return "failure", one_line(f"{type(error).__name__}: {error}")
