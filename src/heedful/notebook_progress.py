"""Progress in a notebook: one live bar below the cell, which disappears when the work is done."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any

from heedful.display import escape_text

UPDATE_SECONDS = 0.2


def in_notebook() -> bool:
    """Whether this code runs in a kernel of Jupyter, whose output is shown in a page."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and hasattr(shell, "kernel")


def show() -> Any:
    """Return IPython's functions that show something, which exist where there is a notebook."""
    return import_module("IPython.display")


class NotebookDisplay:
    """The bars that are at work, the innermost of which is shown. There is one display at a time."""

    def __init__(self) -> None:
        self.bars: list[object] = []
        self.handle: Any = None
        self.shown = 0.0

    def open(self, bar: object, html: str) -> None:
        self.bars.append(bar)
        if self.handle is None:
            self.handle = show().display(show().HTML(html), display_id=True)
        else:
            self.update(bar, html, now=True)

    def update(self, bar: object, html: str, *, now: bool = False) -> None:
        """Show the innermost bar, at most five times per second."""
        if self.handle is None or bar is not self.bars[-1]:
            return
        if now or time.monotonic() - self.shown >= UPDATE_SECONDS:
            self.shown = time.monotonic()
            self.handle.update(show().HTML(html))

    def close(self, bar: object) -> None:
        """Forget a bar; the last one takes the display with it."""
        self.bars.remove(bar)
        if not self.bars and self.handle is not None:
            self.handle.update(show().HTML(""))
            self.handle = None


DISPLAY = NotebookDisplay()


def render_bar(label: str, done: float, total: float | None, note: str = "") -> str:
    """Return a bar with its count and a remark."""
    of = f' value="{done:g}" max="{total:g}"' if total else ""
    count = f"{done:,.0f} of {total:,.0f}" if total else f"{done:,.0f}"
    tail = f", {note}" if note else ""
    return (
        f'<div><progress{of} style="width: 16em"></progress> {escape_text(f"{label}: {count}{tail}")}</div>'
    )
