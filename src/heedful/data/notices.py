"""Notices about data: what was guessed or skipped, said once per process."""

from __future__ import annotations

import sys

from heedful.errors import one_line

_said: set[str] = set()


def notify(text: str) -> None:
    if text not in _said:
        _said.add(text)
        print(f"heedful: {one_line(text)}", file=sys.stderr)
