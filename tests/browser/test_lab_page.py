"""The lab's page of heads in a real browser: a pointer on a token shows what it attends to."""

from __future__ import annotations

from pathlib import Path

import pytest
from tab import Tab

from heedful.report.charts.token_links import token_links
from heedful.report.page import Page

pytestmark = pytest.mark.needs("chromium")

LABELS = ["one", "<img src=x onerror='window.hacked = 1'>", "two"]
MAPS = {
    "layer 1, head 1": [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [1.0, 0.0, 0.0]],
    "layer 1, head 2": [[0.0, 1.0, 0.0]] * 3,
}
WORDS = "[...document.querySelectorAll('[data-figure] svg .mark-text text')].map(e => e.textContent)"


def test_a_pointer_on_a_token_shows_what_it_attends_to(browser: Tab, tmp_path: Path) -> None:
    page = Page("heads")
    page.figure(token_links(MAPS, labels=LABELS, title="t", choice="layer and head"))
    browser.open(page.write(tmp_path / "heads.html"))
    assert "0.542" in browser.run(WORDS)  # the mean of 0.5, 0.125 and 1
    browser.page.mouse.move(
        *browser.center(
            "[...document.querySelectorAll('[data-figure] svg .mark-text text')].find(e => e.textContent === 'one')"
        )
    )
    browser.wait(f"{WORDS}.includes('0.500')", 10)
    assert [w for w in browser.run(WORDS) if w.startswith("0.")] == ["0.500", "0.250", "0.250"]
    browser.page.mouse.move(5, 5)
    browser.page.select_option("select", "layer 1, head 2")
    browser.wait(f"{WORDS}.includes('1.000')", 10)
    assert LABELS[1] in browser.run(WORDS)
    assert browser.run("window.hacked === undefined")
