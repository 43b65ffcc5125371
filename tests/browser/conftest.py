"""One Chromium per module, driven by Playwright, and a fresh page in it for each test."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from tab import Tab

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Debian's Chromium.

    Not for the whole session: Playwright's event loop would run under the tests of other folders, too.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def browser(chromium: Browser) -> Iterator[Tab]:
    with chromium.new_context(viewport={"width": 1000, "height": 800}, color_scheme="light") as context:
        yield Tab(context.new_page())


@pytest.fixture
def phone(chromium: Browser) -> Iterator[Tab]:
    with chromium.new_context(viewport={"width": 380, "height": 800}, is_mobile=True) as context:
        yield Tab(context.new_page())
