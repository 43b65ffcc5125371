"""Paths from outside: `~` is expanded, and what no file system could hold is refused in one line."""

from __future__ import annotations

import os
from pathlib import Path

from heedful.errors import UserError, shorten

LONGEST_NAME, LONGEST_PATH = 255, 4095
"""In bytes, as on Linux, macOS and (in characters) Windows."""


def expand_path(path: str | os.PathLike[str]) -> Path:
    """Return a path with `~` expanded; a user or a name that no system has is a `UserError`."""
    text = os.fspath(path)
    if "\0" in text:
        raise UserError(f'"{shorten(text)}": a path has no NUL character')
    try:
        expanded = Path(text).expanduser()
    except RuntimeError:
        raise UserError(f'"{shorten(text)}": there is no such user') from None
    encoded = os.fsencode(expanded) if is_encodable(text) else b"x" * (LONGEST_PATH + 1)
    if len(encoded) > LONGEST_PATH or any(len(part) > LONGEST_NAME for part in encoded.split(b"/")):
        raise UserError(f'"{shorten(text)}": is too long for a path, or no text that one can hold')
    return expanded


def is_encodable(text: str) -> bool:
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def names_file(text: str) -> bool:
    """Whether a text is the path of a file, and not just a text."""
    try:
        return "\n" not in text and expand_path(text).is_file()
    except (UserError, OSError):
        return False
