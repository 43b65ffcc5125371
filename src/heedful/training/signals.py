"""Being asked to stop: by Slurm before the time is over, by an operator, by Ctrl-C."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from heedful.errors import UserError

STATUS_STOPPED = 75
"""Left by SIGTERM or SIGUSR1 after writing a checkpoint: try again with --resume (EX_TEMPFAIL)."""
SIGUSR1: signal.Signals | None = getattr(signal, "SIGUSR1", None)
"""Slurm's signal before a job's time is over; Windows has none."""
STOP_SIGNALS = tuple(s for s in (SIGUSR1, signal.SIGTERM, signal.SIGINT) if s is not None)
"""Signals that stop a run. SIGUSR1, which says that the time is over, comes first."""
PARENT_SECONDS = 1.0
"""Seconds between two looks whether the parent process is still there."""


class StoppedError(UserError):
    """The run was asked to stop; its checkpoint is written."""

    status = STATUS_STOPPED

    def __init__(self, message: str, by: signal.Signals | None = None) -> None:
        super().__init__(message)
        self.by = by
        """The signal; SIGUSR1 is Slurm's before a job's time is over."""


class StopSignals:
    """Listens for signals. Outside of `defer` the run stops at once, because there is nothing to save.

    If `silent`, another process announces what happens. After the `deadline` (by `time.monotonic`) a run that
    has scored dev takes no further step, and ends with the best model that it has.
    """

    def __init__(self, *, silent: bool = False, deadline: float | None = None) -> None:
        self.silent, self.deadline = silent, deadline
        self.asked: signal.Signals | None = None
        self.patient = False
        self.insisting: threading.Timer | None = None

    def is_over(self, best_step: int) -> bool:
        """Whether the deadline has passed, for a run whose best evaluation was after `best_step`, if any."""
        return self.deadline is not None and best_step >= 0 and time.monotonic() >= self.deadline

    def handle(self, *numbers: signal.Signals) -> AbstractContextManager[None]:
        return handle_signals(self.receive, *numbers)

    def listen(self) -> AbstractContextManager[None]:
        return self.handle(*(s for s in STOP_SIGNALS if s is not signal.SIGINT))

    @contextmanager
    def defer(self) -> Iterator[None]:
        """Inside, a signal (Ctrl-C too) is only noted in `asked`; a second Ctrl-C ends at once.

        So does a second SIGUSR1, which comes by itself after the seconds that a batch script allows: when a
        long evaluation is not over by then, Slurm would soon not requeue the job any more.
        """
        with self.handle(*STOP_SIGNALS):
            self.patient = True
            try:
                yield
            finally:
                self.patient = False
                if self.insisting is not None:
                    self.insisting.cancel()

    def receive(self, number: int, frame: object) -> None:
        name = signal.Signals(number)
        if name is signal.SIGINT and (self.asked is signal.SIGINT or not self.patient):
            raise KeyboardInterrupt
        if name is self.asked is SIGUSR1:
            raise StoppedError(
                "stopped by SIGUSR1 before the next checkpoint; the same command with --resume continues "
                "from the last one",
                name,
            )
        if (
            self.asked is None or self.asked is not SIGUSR1
        ):  # that the time is over comes first, whoever insists
            self.asked = name
        if not self.patient:
            raise StoppedError(f"stopped by {name.name}; the same command with --resume continues", name)
        if not self.silent:
            announce_signal(name)
        seconds = os.environ.get("HEEDFUL_STOP_SECONDS", "")
        if name is SIGUSR1 and seconds.isdigit():
            self.insisting = threading.Timer(int(seconds), os.kill, (os.getpid(), name))
            self.insisting.daemon = True
            self.insisting.start()


@contextmanager
def handle_signals(handler: Callable[[int, object], None], *numbers: signal.Signals) -> Iterator[None]:
    """Handle signals inside; in another thread than the first, whoever runs us handles them."""
    former: dict[signal.Signals, Any] = {}
    if threading.current_thread() is threading.main_thread():
        former = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, previous in former.items():
            signal.signal(number, previous)


def announce_signal(name: signal.Signals) -> None:
    """Print what a signal leads to. This is not `print`, because it may interrupt another one."""
    os.write(2, f"heedful: {name.name}: writing a checkpoint, then stopping\n".encode())


def stop_with_parent(parent: int) -> None:
    """Send this process SIGTERM when `parent` is no longer its parent: nobody forwards signals to it."""

    def watch_parent() -> None:
        while os.getppid() == parent:
            time.sleep(PARENT_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch_parent, name="parent", daemon=True).start()
