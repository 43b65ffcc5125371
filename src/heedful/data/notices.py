"""Notices about data: what was guessed or skipped, said once per process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from heedful.data import cache
from heedful.errors import one_line
from heedful.logs import notice, warn

_said: set[str] = set()
_collections: list[list[str]] = []


@contextmanager
def collect_notices() -> Iterator[list[str]]:
    """Collect all notices of the body of a `with`, which are not logged."""
    notices: list[str] = []
    _collections.append(notices)
    try:
        yield notices
    finally:
        _collections.remove(notices)


def name_memory(text: str) -> str:
    """Return a message with "the data" in place of the cached file of data that came from memory."""
    folder = re.escape(str(cache.get_cache_folder() / cache.MEMORY))
    entry = rf"(?:{folder}|\S*[/\\]{cache.MEMORY})[/\\][0-9a-f]{{32}}[/\\]data"
    return re.sub(
        rf"{entry}(?:[/\\](\w+))?(?:\.parquet)?",
        lambda found: f"{found[1]} of the data" if found[1] else "the data",
        text,
    )


def notify(text: str, *, warning: bool = False) -> None:
    text = name_memory(text)
    if _collections:
        _collections[-1].append(one_line(text))
        return
    if text not in _said:
        _said.add(text)
        (warn if warning else notice)(one_line(text))
