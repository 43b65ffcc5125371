"""Notices about data: what was guessed or skipped, said once per process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from heedful.errors import one_line
from heedful.logs import notice, warn
from heedful.paths import name_memory

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


def notify(text: str, *, warning: bool = False) -> None:
    text = name_memory(text)
    if _collections:
        _collections[-1].append(one_line(text))
        return
    if text not in _said:
        _said.add(text)
        (warn if warning else notice)(one_line(text))
