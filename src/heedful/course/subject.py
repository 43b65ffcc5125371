"""A subject in a process of its own: starts the child and sends it operations, within limits of time."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from heedful.contracts.operations import as_tensors
from heedful.contracts.subject import NotApplicable, SubjectError, SubjectStoppedError
from heedful.course.wire import LIMITS, Limits, WireError, encode, receive
from heedful.errors import UserError

CHUNK = 1 << 20
KEPT_OUTPUT = 64 << 10
"""Bytes of what a student's code prints that are kept; the rest is read and thrown away."""


class FailedImportError(SubjectStoppedError):
    """The student's file cannot be imported; nothing of it can be checked."""


@dataclass(frozen=True)
class ChildLimits:
    """How long a child may take."""

    start: float = 60.0
    """Seconds until the student's file is imported."""
    call: float = 60.0
    """Seconds of one operation."""
    total: float = 300.0
    """Seconds of everything."""
    wire: Limits = LIMITS


def child_command(file: Path, suite: str) -> list[str]:
    """Return the command line of the child; a sandbox puts its own command before it."""
    return [sys.executable, "-P", "-m", "heedful.course.child", str(file), "--as", suite]


class ChildSubject:
    """A student's file, which runs in a child process and cannot see what is expected of it.

    Parameters
    ----------
    file
        The student's file.
    suite
        The name of the suite, which decides what is looked for in the file.
    prefix
        A command to put before the child's, such as that of a sandbox.
    limits
        How long it may take.
    env
        The environment of the child; by default that of this process, without threads.
    cwd
        The folder that the child begins in.

    """

    def __init__(
        self,
        file: Path,
        suite: str,
        *,
        prefix: Sequence[str] = (),
        limits: ChildLimits | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.file, self.suite, self.limits = Path(file), suite, limits or ChildLimits()
        self.output = b""
        self.imported = False
        self._deadline = time.monotonic() + self.limits.total
        if not self.file.is_file():
            raise UserError(f"{self.file}: there is no such file")
        environment = dict(os.environ if env is None else env)
        environment.setdefault("OMP_NUM_THREADS", "1")
        self.process = subprocess.Popen(
            [*prefix, *child_command(self.file.resolve(), suite)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            cwd=cwd,
            start_new_session=True,
        )
        self._drain = threading.Thread(target=self.drain_output, daemon=True)
        self._drain.start()
        self.begin_watch()
        try:
            self.wait_for_import()
            self._operations = self.receive_operations()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def operations(self) -> Mapping[str, Mapping[str, Any]]:
        """The operations by name, each with facts about it."""
        return self._operations

    def call(self, operation: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Carry out an operation in the child."""
        if operation not in self._operations:
            raise NotApplicable(f"there is no {operation}")
        if self.process.poll() is not None:
            raise SubjectStoppedError(self.describe_end())
        frame = encode({"operation": operation, "inputs": dict(inputs)}, self.limits.wire)
        deadline = min(time.monotonic() + self.limits.call, self._deadline)
        self.write_frame(frame, deadline)
        outputs = as_tensors(self.receive_answer(self.limits.call).get("outputs"))
        if not isinstance(outputs, dict):
            raise self.stop("it answered something else than was asked")
        return outputs

    def write_frame(self, frame: bytes, deadline: float) -> None:
        """Write a frame; a child that reads nothing is stopped at the deadline."""
        assert self.process.stdin is not None
        descriptor = self.process.stdin.fileno()
        os.set_blocking(descriptor, False)
        rest = memoryview(frame)
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_WRITE)
            while rest:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise self.stop(self.describe_delay())
                try:
                    rest = rest[os.write(descriptor, rest[:CHUNK]) :]
                except BlockingIOError:
                    continue
                except OSError as error:
                    raise self.stop(self.describe_end()) from error

    def receive_answer(self, seconds: float) -> dict[str, Any]:
        """Wait for the child's answer; an error of the student's code is raised as `SubjectError`."""
        deadline = min(time.monotonic() + seconds, self._deadline)
        try:
            answer = receive(lambda n: self.read_bytes(n, deadline), self.limits.wire)
        except WireError as damaged:
            raise self.stop(str(damaged)) from damaged
        error = answer.get("error")
        if error is None:
            return answer
        if not isinstance(error, dict):
            raise self.stop("the answer is damaged")
        message = str(error.get("message", "an error without a message"))
        if error.get("kind") == "not applicable":
            raise NotApplicable(message)
        if error.get("kind") == "user":
            raise UserError(message)
        lines = error.get("lines")
        raise SubjectError(message, tuple(map(str, lines)) if isinstance(lines, list) else ())

    def read_bytes(self, n: int, deadline: float) -> bytes:
        """Return exactly n bytes of the child's answer."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        parts = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while len(parts) < n:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise self.stop(self.describe_delay())
                data = os.read(descriptor, min(CHUNK, n - len(parts)))
                if not data:
                    self.wait_briefly()
                    raise self.stop(self.describe_end())
                parts += data
        return bytes(parts)

    def wait_briefly(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(5)

    def stop(self, why: str) -> SubjectStoppedError:
        """End the child, and return the error that says why."""
        self.close()
        return SubjectStoppedError(why)

    def wait_for_import(self) -> None:
        try:
            self.receive_answer(self.limits.start)
        except SubjectError as error:
            message = f"{self.file.name} cannot be imported: {error}"
            raise FailedImportError(message, error.lines) from error
        self.imported = True

    def receive_operations(self) -> dict[str, dict[str, Any]]:
        found = self.receive_answer(self.limits.call).get("operations")
        if not isinstance(found, dict) or not all(isinstance(facts, dict) for facts in found.values()):
            raise self.stop("it answered something else than was asked")
        return found

    def begin_watch(self) -> None:
        """Called when the process has begun, before its first answer; here nothing watches it."""

    def describe_delay(self) -> str:
        """Return which limit of time is exceeded."""
        if not self.imported:
            return f"its import took longer than {min(self.limits.start, self.limits.total):g} seconds"
        if not hasattr(self, "_operations"):
            return f"its functions took longer than {self.limits.call:g} seconds for a small example"
        if time.monotonic() >= self._deadline:
            return f"it ran longer than {self.limits.total:g} seconds"
        return f"it took longer than {self.limits.call:g} seconds for one call"

    def describe_end(self) -> str:
        """Return how the child ended."""
        status = self.process.poll()
        if status is None:
            return "it closed its pipe"
        how = f"with status {status}" if status >= 0 else f"by signal {-status}"
        return f"its process ended {how} before it answered"

    def drain_output(self) -> None:
        """Read what the student's code prints, and keep the beginning."""
        assert self.process.stderr is not None
        while data := self.process.stderr.read1(CHUNK):  # type: ignore[attr-defined]
            if len(self.output) < KEPT_OUTPUT:
                self.output += data[: KEPT_OUTPUT - len(self.output)]

    def close(self) -> None:
        """End the child and everything that it started in its session."""
        with suppress(OSError):
            os.killpg(self.process.pid, 9)
        with suppress(OSError):
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):
                if pipe is not None:
                    pipe.close()
        self._drain.join(1)
        if self.process.stderr is not None and not self._drain.is_alive():
            self.process.stderr.close()
