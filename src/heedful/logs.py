"""Messages of the package: everything goes to the logger `heedful`, and the caller decides what is shown.

    logging.basicConfig(level=logging.INFO)                       shows all notices
    logging.getLogger("heedful").setLevel(logging.ERROR)          shows none

The command line prints them to stderr with a handler of its own (`print_messages`).
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

LOGGER = logging.getLogger("heedful")


def notice(text: str) -> None:
    """Log something worth knowing about the work."""
    LOGGER.info(text)


def warn(text: str) -> None:
    """Log something that a person should look at."""
    LOGGER.warning(text)


def progress_line(text: str) -> None:
    """Log how far the work is; the command line prints it without the name of the program."""
    LOGGER.info(text, extra={"progress": True})


class CommandHandler(logging.Handler):
    """Prints messages to the present stderr: after the name of the program, except progress."""

    def emit(self, record: logging.LogRecord) -> None:
        prefix = "" if getattr(record, "progress", False) else "heedful: "
        print(f"{prefix}{record.getMessage()}", file=sys.stderr, flush=True)


def prints_messages() -> bool:
    """Whether the command line is at work, which speaks of options and not of keywords."""
    return any(isinstance(handler, CommandHandler) for handler in LOGGER.handlers)


@contextmanager
def print_messages() -> Iterator[None]:
    """Print all messages while the body of the `with` works, as the command line does."""
    if prints_messages():
        yield
        return
    handler, level = CommandHandler(), LOGGER.level
    LOGGER.addHandler(handler)
    LOGGER.setLevel(logging.INFO)
    try:
        yield
    finally:
        LOGGER.removeHandler(handler)
        LOGGER.setLevel(level)
