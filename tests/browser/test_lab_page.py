"""The lab's page of heads in a real browser: a pointer on a token shows what it attends to."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from devtools import Browser, wait_for

from heedful.report.links import links
from heedful.report.page import Page

pytestmark = pytest.mark.needs("chromium")

LABELS = ["one", "<img src=x onerror='window.hacked = 1'>", "two"]
MAPS = {
    "layer 1, head 1": [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [1.0, 0.0, 0.0]],
    "layer 1, head 2": [[0.0, 1.0, 0.0]] * 3,
}
WORDS = "[...document.querySelectorAll('[data-figure] svg .mark-text text')].map(e => e.textContent)"


def test_a_pointer_on_a_token_shows_what_it_attends_to(tmp_path: Path) -> None:
    if not Path("/usr/bin/chromium").exists():
        pytest.skip("/usr/bin/chromium is not installed: this test looks at a page in a real browser")
    page = Page("heads")
    page.figure(links(MAPS, labels=LABELS, title="t", choice="layer and head"))
    path = page.write(tmp_path / "heads.html")
    with Browser(tmp_path / "profile") as browser:
        browser.size(1000, 800)
        browser.open(path)
        assert "0.542" in browser.run(WORDS)  # the mean of 0.5, 0.125 and 1
        place = browser.run(
            "(() => { const e = [...document.querySelectorAll('[data-figure] svg .mark-text text')]"
            ".find(e => e.textContent === 'one').getBoundingClientRect();"
            "return [e.x + e.width / 2, e.y + e.height / 2]; })()"
        )
        browser.hover(*place)
        wait_for(lambda: "0.500" in browser.run(WORDS), 10)
        assert [w for w in browser.run(WORDS) if w.startswith("0.")] == ["0.500", "0.250", "0.250"]
        browser.hover(5, 5)
        browser.run(
            "(() => { const s = document.querySelector('select'); s.value = 'layer 1, head 2';"
            "s.dispatchEvent(new Event('change')); s.dispatchEvent(new Event('input')); })()"
        )
        wait_for(lambda: "1.000" in browser.run(WORDS), 10)
        assert LABELS[1] in browser.run(WORDS)
        assert browser.run("window.hacked === undefined")
