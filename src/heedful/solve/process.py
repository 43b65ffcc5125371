"""The training process, seen from the process that plans: requests with a time limit."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from heedful.data.workers import STATUS_KILLED

LOOK_SECONDS = 0.25
WORKER = ("-m", "heedful.solve.worker")
STOP_SECONDS = 8.0
"""How long a process that is asked to stop may take to write its checkpoint."""


class TimeOverError(Exception):
    """The training process did not answer in time, and was ended."""


class LostProcessError(Exception):
    """The training process ended by itself."""


class TrainingProcess:
    """Starts the worker when it is first needed, and again after it has ended.

    Attributes
    ----------
    startup
        Seconds that the last start took, which another one would take again.

    """

    def __init__(self, log: Path, threads: int | None, command: Sequence[str] = WORKER) -> None:
        self.log, self.threads, self.command, self.startup = log, threads, command, 0.0
        self.process: subprocess.Popen[str] | None = None
        self.answers: queue.Queue[str | None] = queue.Queue()

    def start(self) -> None:
        """Start the worker, without waiting for it."""
        environment = dict(os.environ, PYTHONUNBUFFERED="1")
        if self.threads is not None:
            environment["OMP_NUM_THREADS"] = str(self.threads)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self.command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment,
                encoding="utf-8",
                start_new_session=True,  # Ctrl-C reaches it from here alone
            )
        self.answers = queue.Queue()
        self.begun, self.ready = time.monotonic(), False
        threading.Thread(target=read_lines, args=(self.process, self.answers), daemon=True).start()

    def ask(self, limit: float, look: Callable[[], None] = lambda: None, /, **request: Any) -> dict[str, Any]:
        """Send a request and return its answer; `look` is called while waiting.

        Raises `TimeOverError` after `limit` seconds, and ends the process.
        """
        end = time.monotonic() + limit
        self.get_ready(limit, look)
        assert self.process is not None
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(request, default=str) + "\n")
            self.process.stdin.flush()
        return self.wait(end, look)

    def get_ready(self, limit: float, look: Callable[[], None] = lambda: None) -> None:
        """Wait until the process can take a request; start it if it does not run.

        Raises `TimeOverError` after `limit` seconds, and ends the process.
        """
        if self.process is None:
            self.start()
        if not self.ready:
            self.wait(time.monotonic() + limit, look)
            self.ready, self.startup = True, time.monotonic() - self.begun

    def wait(self, end: float, look: Callable[[], None]) -> dict[str, Any]:
        while time.monotonic() < end:
            look()
            with suppress(queue.Empty):
                line = self.answers.get(timeout=min(LOOK_SECONDS, max(0.01, end - time.monotonic())))
                if line is None:
                    raise LostProcessError(self.describe_end())
                return dict(json.loads(line))
        self.stop(0.0)
        raise TimeOverError

    def describe_end(self) -> str:
        assert self.process is not None
        status = self.process.wait()
        self.stop(0.0)
        if status == STATUS_KILLED:
            return "its process was killed, as a system that is short of memory does"
        return f"its process ended with status {status}; {self.log} says why"

    def stop(self, patience: float = STOP_SECONDS) -> None:
        """Ask the process to stop, which writes a checkpoint; end it after `patience` seconds."""
        process, self.process = self.process, None
        if process is None:
            return
        if patience:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(patience)
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()

    def __enter__(self) -> TrainingProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop(0.0)


def read_lines(process: subprocess.Popen[str], answers: queue.Queue[str | None]) -> None:
    """Pass each line of the process on; None at its end."""
    assert process.stdout is not None
    with suppress(ValueError, OSError):
        for line in process.stdout:
            answers.put(line)
    answers.put(None)
