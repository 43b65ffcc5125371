"""Notices about data: what was guessed or skipped, said once per process."""

from __future__ import annotations

from heedful.errors import one_line
from heedful.logs import notice, warn

_said: set[str] = set()


def notify(text: str, *, warning: bool = False) -> None:
    if text not in _said:
        _said.add(text)
        (warn if warning else notice)(one_line(text))
