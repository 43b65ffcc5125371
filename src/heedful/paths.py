"""Paths from outside: `~` is expanded, and what no file system could hold is refused in one line."""

from __future__ import annotations

import os
import re
from pathlib import Path

from heedful.errors import UserError, shorten

LONGEST_NAME, LONGEST_PATH = 255, 4095
"""In bytes, as on Linux, macOS and (in characters) Windows."""

MEMORY = "memory"
"""The folder in the cache of data that came from memory."""


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


def find_cache_folder() -> Path:
    """Return where everything is that can be rebuilt: `$HEEDFUL_CACHE`, or else `~/.cache/heedful`."""
    if chosen := os.environ.get("HEEDFUL_CACHE"):
        return expand_path(chosen)
    return expand_path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "heedful"


def name_memory(text: str) -> str:
    """Return a message with "the data" in place of the cached file of data that came from memory."""
    folder = re.escape(str(find_cache_folder() / MEMORY))
    entry = rf"(?:{folder}|\S*[/\\]{MEMORY})[/\\][0-9a-f]{{32}}[/\\]data"
    return re.sub(
        rf"{entry}(?:[/\\](\w+))?(?:\.parquet)?",
        lambda found: f"{found[1]} of the data" if found[1] else "the data",
        text,
    )
