"""Rows for the pages that are open: the folder is looked at while somebody looks."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import asdict
from typing import Any

from starlette.applications import Starlette

from heedful.studio.children import Children
from heedful.studio.events import KEEP, KEEP_SECONDS, is_closing, write_event
from heedful.studio.folder import StudioFolder
from heedful.studio.listing.rows import Row
from heedful.studio.listing.scanner import Scanner

SCAN_SECONDS = 1.0
"""Time between two looks; longer where a look takes long."""
SHARE_OF_TIME = 0.2
"""How much of the time may go into looking."""
BATCH_SECONDS = 0.15
"""The first look at many runs is published in parts."""
LOOK_SECONDS = 0.5

Rows = dict[str, dict[str, Any]]


class Feed:
    """Looks at the folder in a thread, and tells the pages which rows have changed."""

    def __init__(self, app: Starlette, folder: StudioFolder, children: Children) -> None:
        self.app, self.scanner = app, Scanner(folder, children)
        self.rows: Rows = {}
        self.is_whole = False
        """Whether the folder has been looked at once."""
        self.pages: set[asyncio.Queue[dict[str, Any]]] = set()
        self.task: asyncio.Task[None] | None = None

    async def follow(self) -> AsyncIterator[bytes]:
        """Yield all rows, and then what changes, until the page or the server goes."""
        queue: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.pages.add(queue)
        try:
            if self.task is None or self.task.done():
                self.task = asyncio.create_task(self.look())
            yield write_event({"rows": list(self.rows.values()), "gone": [], "whole": self.is_whole}, "all")
            quiet = time.monotonic()
            while not is_closing(self.app):
                try:
                    change = await asyncio.wait_for(queue.get(), LOOK_SECONDS)
                except TimeoutError:
                    if time.monotonic() - quiet > KEEP_SECONDS:
                        quiet = time.monotonic()
                        yield KEEP
                    continue
                quiet = time.monotonic()
                yield write_event(change, "changes")
        finally:
            self.pages.discard(queue)

    async def look(self) -> None:
        """Look at the folder again and again, as long as a page is open."""
        loop = asyncio.get_running_loop()

        def publish(changes: list[Row | str], *, whole: bool) -> None:
            loop.call_soon_threadsafe(self.publish, changes, whole)

        while self.pages and not is_closing(self.app):
            begun = time.monotonic()
            await asyncio.to_thread(self.scan, publish)
            took = time.monotonic() - begun
            await asyncio.sleep(max(SCAN_SECONDS - took, took / SHARE_OF_TIME - took))

    def scan(self, publish: Any) -> None:
        changes, sent = list[Row | str](), time.monotonic()
        for change in self.scanner.scan():
            changes.append(change)
            if time.monotonic() - sent > BATCH_SECONDS:
                publish(changes, whole=False)
                changes, sent = [], time.monotonic()
        publish(changes, whole=True)

    def publish(self, changes: list[Row | str], whole: bool) -> None:
        rows: Rows = {row.name: as_json(row) for row in changes if isinstance(row, Row)}
        gone = [name for name in changes if isinstance(name, str)]
        self.rows.update(rows)
        for name in gone:
            self.rows.pop(name, None)
        news = whole and not self.is_whole
        self.is_whole = self.is_whole or whole
        if rows or gone or news:
            for page in self.pages:
                page.put_nowait({"rows": list(rows.values()), "gone": gone, "whole": self.is_whole})


def as_json(row: Row) -> dict[str, Any]:
    table = asdict(row)
    del table["members"]
    return table
