"""Python's garbage collector during a command, which owns its process.

Importing torch makes about a million objects that stay. With the collector's usual settings they are visited
again and again while they are made, and three times more at the end: a third of the time of a short command.
"""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator
from contextlib import contextmanager

RARELY = (50_000, 20, 50)
"""Thresholds of the three generations: the objects of an import are visited a few times."""


@contextmanager
def collect_rarely() -> Iterator[None]:
    """Collect rarely inside the `with`, and never at the end of the process, when all memory is freed."""
    before = gc.get_threshold()
    gc.set_threshold(*RARELY)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)
    try:
        yield
    finally:
        gc.set_threshold(*before)
