"""The one writer of command lines: options as one would type them, without those at their default."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import MISSING, fields
from typing import Any

from heedful.options.values import flag


def command_words(
    command: Sequence[str], arguments: Sequence[object], options: Any = None, leave_out: Collection[str] = ()
) -> tuple[str, ...]:
    """Return a command under this Python, with a flag for each option that differs from its default."""
    flags = [] if options is None else option_flags(options, leave_out)
    words = [str(argument) for argument in arguments]
    if any(word.startswith("-") for word in words):
        flags, words = [], [*flags, "--", *words]
    return (sys.executable, "-m", "heedful", *command, *words, *flags)


def option_flags(
    options: Any,
    leave_out: Collection[str] = (),
    change: Callable[[str, Any], Any] = lambda name, value: value,
) -> list[str]:
    """Return a flag for each field that differs from its default; no value can be mistaken for a flag.

    Parameters
    ----------
    options
        A dataclass of options.
    leave_out
        Names of fields to leave out.
    change
        Returns the value to write, given a field's name and value: a path that holds from every folder.

    """
    words = []
    for field in fields(options):
        value = getattr(options, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if field.name in leave_out or value == default or value is None:
            continue
        name, value = flag(field.name), change(field.name, value)
        if isinstance(value, bool):
            words.append(name if value else f"--no-{name[2:]}")
        elif isinstance(value, tuple | list):
            words += [f"{name}={item}" for item in value]
        else:
            words.append(f"{name}={value}")
    return words
