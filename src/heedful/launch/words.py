"""A command in words, from its options: what is not the default, so that it reads as one would type it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from dataclasses import MISSING, fields
from typing import Any

from heedful.launch.options import flag


def command_words(
    command: Sequence[str], arguments: Sequence[object], options: Any = None, leave_out: Collection[str] = ()
) -> tuple[str, ...]:
    """Write the command under this Python, with a flag for each option that differs from its default."""
    given = [] if options is None else flags(options, leave_out)
    words = [str(argument) for argument in arguments]
    if any(word.startswith("-") for word in words):
        given, words = [], [*given, "--", *words]
    return (sys.executable, "-m", "heedful", *command, *words, *given)


def flags(options: Any, leave_out: Collection[str] = ()) -> list[str]:
    """A flag for each field that differs from its default; no value can be taken for a flag."""
    found = []
    for field in fields(options):
        value = getattr(options, field.name)
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        if field.name in leave_out or value == default or value is None:
            continue
        name = flag(field.name)
        if isinstance(value, bool):
            found.append(name if value else f"--no-{name[2:]}")
        elif isinstance(value, tuple | list):
            found += [f"{name}={item}" for item in value]
        else:
            found.append(f"{name}={value}")
    return found
