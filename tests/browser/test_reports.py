"""Reports of runs and studies in a real browser, with data that attacks the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tab import Tab

from heedful.report.outputs import write_report
from made_runs import HOSTILE, write_answering_run, write_language_run, write_run, write_study

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.needs("chromium")

MARKS = """[...document.querySelectorAll('.chart')].map(chart => {
    const drawn = mark => mark.tagName === 'line' || mark.getAttribute('d');
    const count = kind =>
        [...chart.querySelectorAll(`.mark-${kind}.role-mark :is(path, line)`)].filter(drawn).length;
    return {drawn: chart.dataset.drawn, rect: count('rect'), line: count('line'), symbol: count('symbol'),
            rule: count('rule'), area: count('area')};
})"""


def opened(browser: Tab, out: Path, *folders: Path) -> list[dict[str, Any]]:
    """Open the report of some folders and count the marks of its figures; nothing may be logged or asked for."""
    browser.open(write_report(folders, out).html)
    open_all(browser)
    assert browser.log == []
    assert browser.only_requested_itself()
    marks = browser.run(MARKS)
    wide = "[...document.querySelectorAll('.chart svg.marks')].map(s => s.getBoundingClientRect().width)"
    assert all(100 < width < 1200 for width in browser.run(wide))
    assert all(found["drawn"] == "yes" for found in marks)
    return list(marks)


def open_all(browser: Tab) -> None:
    browser.run("for (const part of document.querySelectorAll('.part')) part.open = true")


def column(browser: Tab, table: int, index: int) -> list[str]:
    found = browser.run(
        f"[...document.querySelectorAll('table:not(.facts)')[{table}].tBodies[0].rows]"
        f".map(row => row.cells[{index}].textContent)"
    )
    assert isinstance(found, list)
    return found


def test_the_figures_of_a_run_draw_what_the_run_holds(browser: Tab, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", epochs=5, falls=True)
    scores, accuracy, loss, confusion, sure = opened(browser, tmp_path / "r.html", run)
    # three baselines and the model, on dev and test, and the shaded interval
    assert (scores["rect"], scores["rule"]) == (2 * 4 + 1, 2)
    assert (accuracy["line"], accuracy["area"]) == (2, 1)
    assert accuracy["symbol"] == 2 * 5 + 2  # every point, and the best of each curve
    assert accuracy["rule"] == 3 + 1  # baselines, and where dev begins to fall
    assert (loss["line"], loss["symbol"]) == (3, 3 * 5 + 3)
    assert confusion["rect"] == 4
    assert (sure["line"], sure["symbol"], sure["area"]) == (2, 4, 1)
    check_colors_of_splits(browser)


def check_colors_of_splits(browser: Tab) -> None:
    """Train, dev and test each have one color, in every chart and every table."""
    legends = browser.run(
        """[...document.querySelectorAll('.role-legend-entry:has(.role-legend-symbol)')].flatMap(legend =>
            [...legend.querySelectorAll('.role-legend-label text')].map((label, i) => {
                const symbol = getComputedStyle(legend.querySelectorAll('.role-legend-symbol path')[i]);
                return [label.textContent, symbol.stroke === 'none' ? symbol.fill : symbol.stroke];
            }))"""
    )
    marks = browser.run(
        """[...document.querySelectorAll('td.of')].map(cell =>
            [cell.textContent, getComputedStyle(cell, '::before').backgroundColor])"""
    )
    assert {name for name, _ in legends} == {"train", "train, while training", "dev", "test"}
    assert len(legends) == 2 + 2 + 3
    named = {(name.partition(",")[0], color) for name, color in [*legends, *marks]}
    assert sorted(named) == [
        ("dev", "rgb(213, 94, 0)"),
        ("test", "rgb(0, 158, 115)"),
        ("train", "rgb(0, 114, 178)"),
    ]


def test_data_that_attack_the_page_stay_text_in_every_kind_of_report(browser: Tab, tmp_path: Path) -> None:
    folders = [
        write_run(
            tmp_path / "a", words=HOSTILE, texts=HOSTILE, task=HOSTILE[0], falls=True, method=HOSTILE[1]
        ),
        write_run(tmp_path / "b", words=HOSTILE, texts=HOSTILE, task=HOSTILE[0], seed=1),
        write_language_run(tmp_path / "c", texts=HOSTILE),
        write_answering_run(tmp_path / "d", answers=HOSTILE[:2]),
        *(write_study(tmp_path / f"study{i}", HOSTILE[i]) for i in (0, 5)),
    ]
    for i, chosen in enumerate([folders[:1], folders[:2], folders[2:3], folders[3:4], folders]):
        opened(browser, tmp_path / f"{i}.html", *chosen)
        browser.run("for (const button of document.querySelectorAll('thead button')) button.click()")
        assert browser.run("window.hacked") is None
        assert browser.log == []
        assert browser.run("document.querySelectorAll('script').length") == 3
        assert browser.run("document.querySelectorAll('main img, main a:not([href^=\"#\"])').length") == 0
    texts = browser.run("document.querySelector('main').innerText")
    assert "</script><script>window.hacked = 1</script>" in texts
    assert "\\x1b[31mred\\u202egnp.exe" in texts


def test_runs_compared_are_sorted_toggled_and_told_by_a_hover(browser: Tab, tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, right=0.6 + 0.1 * i, seed=i) for i, name in enumerate("abc")]
    opened(browser, tmp_path / "r.html", *runs)
    assert column(browser, 0, 0) == ["a", "b", "c"]
    dev = browser.run(
        "[...document.querySelectorAll('thead')[0].rows[0].cells].findIndex(c => c.innerText.startsWith('dev'))"
    )
    by_score = sorted(column(browser, 0, dev), key=float)
    browser.click("thead th button", dev)
    assert column(browser, 0, dev) == by_score
    browser.click("thead th button", dev)
    assert column(browser, 0, dev) == by_score[::-1]
    curves = "[...document.querySelectorAll('.chart')[1].querySelectorAll('.mark-line.role-mark path')]"
    shown = f"{curves}.map(p => Number(p.getAttribute('opacity') ?? 1))"
    assert browser.run(shown) == [1, 1, 1]
    names = browser.run("[...document.querySelectorAll('.role-legend-label text')].map(t => t.textContent)")
    browser.click(".role-legend-label text", names.index("b"))
    browser.wait(f"{shown}.sort().join() === '0.06,0.06,1'")
    browser.click(".role-legend-label text", names.index("b"))
    browser.wait(f"{shown}.join() === '1,1,1'")
    point = "document.querySelectorAll('.chart')[1].querySelectorAll('.mark-symbol.role-mark path')[1]"
    browser.page.mouse.move(*browser.center(point))
    assert "accuracy" in browser.wait("document.querySelector('#vg-tooltip-element.visible')?.innerText")
    assert browser.log == []


def test_more_curves_than_colors_still_have_one_legend(browser: Tab, tmp_path: Path) -> None:
    runs = [write_run(tmp_path / f"run{i:02}", seed=i, epochs=2, n=20) for i in range(13)]
    opened(browser, tmp_path / "r.html", *runs)
    labels = browser.run(
        "[...document.querySelectorAll('.chart')[1].querySelectorAll('.role-legend-label text')].map(t => t.textContent)"
    )
    assert labels == [f"run{i:02}" for i in range(13)]


def test_a_drag_moves_the_axes_and_a_double_click_brings_them_back(browser: Tab, tmp_path: Path) -> None:
    opened(browser, tmp_path / "r.html", write_run(tmp_path / "run"))
    labels = "[...document.querySelectorAll('.chart')[1].querySelectorAll('.role-axis-label text')].map(t => t.textContent).sort()"
    x, y = browser.center("document.querySelectorAll('.chart')[1].querySelector('svg')")
    before = browser.run(f"{labels}.join()")
    mouse = browser.page.mouse
    mouse.move(x, y)
    mouse.down()
    mouse.move(x, y + 100, steps=3)
    mouse.up()
    browser.wait(f"{labels}.join() !== {json.dumps(before)}")
    mouse.dblclick(x, y)
    browser.wait(f"{labels}.join() === {json.dumps(before)}")
    assert browser.log == []


CUT_OFF = """[...document.querySelectorAll('.chart')].flatMap(chart => {
    const svg = chart.querySelector('svg.marks'), room = chart.getBoundingClientRect();
    const box = svg.getBoundingClientRect();
    const beyond = (inner, outer) => inner.width > 0 && (inner.left < outer.left - 1 || inner.top < outer.top - 1
        || inner.right > outer.right + 1 || inner.bottom > outer.bottom + 1);
    const texts = [...svg.querySelectorAll('text')].filter(text => beyond(text.getBoundingClientRect(), box));
    return [...(beyond(box, room) ? [chart.innerText] : []), ...texts.map(text => text.textContent)];
})"""
"""The texts of figures that leave their figure, and figures that leave their place."""


def test_nothing_that_matters_is_cut_off_on_a_screen_or_a_phone(chromium: Browser, tmp_path: Path) -> None:
    labels = [f"a kind of question, number {i}" for i in range(77)]
    folders = [
        write_run(tmp_path / "run", words=("one", "two", "three"), right=1.0, falls=True),
        write_run(tmp_path / "77", words=labels, n=400, task="intents"),
        write_language_run(tmp_path / "language"),
        write_study(tmp_path / "study"),
        *(
            write_run(tmp_path / f"a long name of a run {i}", task="other", seed=i, lr=i + 1)
            for i in range(3)
        ),
    ]
    pages = [write_report([folders[0]], tmp_path / "run.html"), write_report(folders, tmp_path / "all.html")]
    for width in (1280, 390):
        with chromium.new_context(viewport={"width": width, "height": 800}) as context:
            tab = Tab(context.new_page())
            for page in pages:
                tab.open(page.html)
                open_all(tab)
                tab.wait(f"{CUT_OFF}.length === 0")
                assert tab.run("document.documentElement.scrollWidth") == width
                cut = "[...document.querySelectorAll('.scroll')].filter(s => s.scrollWidth > s.clientWidth)"
                if width == 1280:
                    assert tab.run(f"{cut}.map(table => table.innerText)") == []
                else:  # the first column stays while the others move
                    left = "table.querySelector('td').getBoundingClientRect().left"
                    moved = f"(table => {{ const a = {left}; table.scrollLeft = 50; return {left} - a; }})({cut}[0])"
                    assert tab.run(moved) == 0
                assert tab.log == []


def test_slides_are_moved_with_the_keyboard_and_their_figures_fill_the_screen(
    browser: Tab, tmp_path: Path
) -> None:
    run = write_run(tmp_path / "run", falls=True, words=HOSTILE[:2])
    files = write_report([run], tmp_path / "r.html", slides=tmp_path / "slides.html")
    assert files.slides is not None
    browser.open(files.slides)
    number = "[...document.querySelectorAll('.slide')].findIndex(s => s.offsetHeight > 0)"
    last = browser.run("document.querySelectorAll('.slide').length") - 1
    assert browser.run(number) == 0
    for key, slide in (
        *(("ArrowRight", 1), ("Space", 2), ("PageDown", 3), ("ArrowLeft", 2), ("Backspace", 1)),
        *(("End", last), ("ArrowRight", last), ("Home", 0), ("ArrowUp", 0), ("ArrowDown", 1)),
        *(("Shift+Space", 0), ("Enter", 1)),
    ):
        browser.page.keyboard.press(key)
        assert browser.run(number) == slide, key
    assert browser.run("location.hash") == "#2"
    for _ in range(last):
        drawn = browser.run(
            """[...document.querySelectorAll('.slide.on svg.marks')].map(svg => {
                const box = svg.getBoundingClientRect();
                return [box.bottom <= innerHeight && box.right <= innerWidth, box.width * box.height];
            })"""
        )
        assert all(inside and area > 0.4 * 1000 * 800 for inside, area in drawn)
        browser.page.keyboard.press("ArrowRight")
    browser.page.keyboard.press("d")
    assert browser.run("getComputedStyle(document.body).backgroundColor") == "rgb(0, 0, 0)"
    assert browser.run("window.hacked") is None
    assert browser.log == []
    assert browser.only_requested_itself()


def test_the_pdf_is_printed_with_every_part_open(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", texts=HOSTILE, words=HOSTILE[:2], epochs=2)
    pdf = write_report([run], tmp_path / "r.html", pdf=tmp_path / "out" / "r.pdf").pdf
    assert pdf is not None
    content = pdf.read_bytes()
    assert content.startswith(b"%PDF")
    assert (
        content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") + content.count(b"/Type /Page/") >= 2
    )
    assert len(content) > 50_000
