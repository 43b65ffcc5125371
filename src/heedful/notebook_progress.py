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
    return hasattr(find_shell(), "kernel")


def find_shell() -> Any:
    """Return the shell of IPython, or None."""
    ipython = sys.modules.get("IPython")
    return None if ipython is None else ipython.get_ipython()


def show() -> Any:
    """Return IPython's functions that show something, which exist where there is a notebook."""
    return import_module("IPython.display")


class NotebookDisplay:
    """The bars that are at work, the innermost of which is shown. A cell has one display."""

    def __init__(self) -> None:
        self.bars: list[object] = []
        self.handle: Any = None
        self.cell: object = None
        self.shown = 0.0

    def open(self, bar: object, html: str) -> None:
        self.bars.append(bar)
        cell = getattr(find_shell(), "execution_count", None)
        if self.handle is None or cell != self.cell:
            self.cell = cell
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
        """Forget a bar; the last one leaves the display empty."""
        self.bars.remove(bar)
        if not self.bars and self.handle is not None:
            self.handle.update(show().HTML(""))


DISPLAY = NotebookDisplay()


def render_bar(label: str, done: float, total: float | None, note: str = "") -> str:
    """Return a bar with its count and a remark."""
    of = f' value="{done:g}" max="{total:g}"' if total else ""
    count = f"{done:,.0f} of {total:,.0f}" if total else f"{done:,.0f}"
    tail = f", {note}" if note else ""
    return (
        f'<div><progress{of} style="width: 16em"></progress> {escape_text(f"{label}: {count}{tail}")}</div>'
    )
