"""A page in a real browser that remembers its requests and what its console printed."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Page


class Tab:
    """A Playwright page (`page`) with its errors and warnings (`log`) and requested addresses (`requests`)."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.log: list[str] = []
        self.requests: list[str] = []
        page.on("console", self._record)
        page.on("pageerror", lambda error: self.log.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def _record(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.log.append(message.text)

    def open(self, path: Path) -> None:
        """Open a file and wait until its figures are drawn."""
        self.log.clear()
        self.requests.clear()
        self.page.goto(path.as_uri())
        self.wait("document.documentElement.dataset.ready === 'yes'", 60)

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page."""
        return self.page.evaluate(script)

    def wait(self, condition: str, seconds: float = 5) -> Any:
        """Wait until an expression is true and return its value.

        Playwright's `wait_for_function` evaluates inside the page, which the page's content security policy forbids.
        """
        end = time.monotonic() + seconds
        while not (value := self.run(condition)):
            assert time.monotonic() < end, f"not true within {seconds} s: {condition}"
            self.page.wait_for_timeout(50)
        return value

    def click(self, selector: str, index: int = 0) -> None:
        self.page.locator(selector).nth(index).click()

    def center(self, element: str) -> tuple[float, float]:
        """Scroll to the element that an expression gives and return the position of its center."""
        x, y = self.run(
            f"(() => {{ const element = {element}; element.scrollIntoView({{block: 'center'}});"
            " const box = element.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        return x, y

    def only_requested_itself(self) -> bool:
        return all(url.startswith(("file:", "data:")) for url in self.requests)
