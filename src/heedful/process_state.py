"""The process of a caller: what a function of this package changes in it while it works, and puts back.

The command line owns its process. A function that is called from Python is a guest in it: threads, random
states, signal handlers, warning filters and environment variables are afterwards what they were, and settings
that cannot be read back, such as those of malloc, are left alone.
"""

from __future__ import annotations

import os
import random
import re
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from heedful.errors import UserError
from heedful.logs import prints_messages
from heedful.paths import name_memory

P = ParamSpec("P")
T = TypeVar("T")
HANDLED = ("SIGINT", "SIGTERM", "SIGUSR1", "SIGQUIT")
"""Signals that training or its processes may handle; not every system has all of them."""

_guest: ContextVar[bool] = ContextVar("guest", default=False)


def is_guest() -> bool:
    """Whether this code runs inside a function that was called from Python."""
    return _guest.get()


@contextmanager
def keep_process_state(*, uses_torch: bool = True) -> Iterator[None]:
    """Put the state of the process back when the body of the `with` ends, also after an exception.

    Without `uses_torch`, torch is not imported for its state alone.
    """
    import numpy as np

    restore_torch = remember_torch() if uses_torch or "torch" in sys.modules else None
    # Importing torch has added its variables by now.
    environment, states = dict(os.environ), (random.getstate(), np.random.get_state())
    handlers = read_signal_handlers()
    token = _guest.set(True)
    try:
        with warnings.catch_warnings():
            yield
    except UserError as error:
        if not prints_messages():
            error.args = (name_memory(name_keywords(str(error))),)
        raise
    finally:
        _guest.reset(token)
        restore_signal_handlers(handlers)
        random.setstate(states[0])
        np.random.set_state(states[1])
        if restore_torch is not None:
            restore_torch()
        restore_environment(environment)


def remember_torch() -> Callable[[], None]:
    """Return a function that puts torch's threads and random states back."""
    import torch

    threads, state = torch.get_num_threads(), torch.get_rng_state()
    gpu_states = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []

    def restore() -> None:
        torch.set_rng_state(state)
        if gpu_states:
            torch.cuda.set_rng_state_all(gpu_states)
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)

    return restore


def keeps_process_state(function: Callable[P, T]) -> Callable[P, T]:
    """Make a function put the state of the process back when it returns."""

    @wraps(function)
    def guest(*args: P.args, **kwargs: P.kwargs) -> T:
        with keep_process_state():
            return function(*args, **kwargs)

    return guest


def name_keywords(message: str) -> str:
    """Return an error with the keywords of Python instead of options; a whole command stays as it is."""
    if re.search(r"\bheedful [a-z]", message):
        return message
    return re.sub(
        r"--([a-z][a-z-]*)( (?=[\d.\"]|slurm))?",
        lambda option: option[1].replace("-", "_") + ("=" if option[2] else ""),
        message,
    )


def read_signal_handlers() -> dict[signal.Signals, Any]:
    """Return the handlers, which only the main thread may change."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    numbers = [getattr(signal, name) for name in HANDLED if hasattr(signal, name)]
    return {number: signal.getsignal(number) for number in numbers}


def restore_signal_handlers(handlers: dict[signal.Signals, Any]) -> None:
    for number, handler in handlers.items():
        if handler is not None and signal.getsignal(number) is not handler:
            signal.signal(number, handler)


def restore_environment(environment: dict[str, str]) -> None:
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    for name, value in environment.items():
        if os.environ.get(name) != value:
            os.environ[name] = value
