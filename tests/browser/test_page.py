"""Pages in a real browser: they draw, sort and toggle, follow light and dark, and nothing leaves or breaks them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tab import Tab

from heedful.report import charts
from heedful.report.page import Cell, Page

pytestmark = pytest.mark.needs("chromium")

HOSTILE = [
    "</script><script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    '"><svg onload=window.hacked=3>',
    "'; window.hacked = 4; '",
    "{{ 7 * 7 }} {% raw %} <!-- --> ]]> &lt;b&gt; &amp;",
    "\x00\x07\x1b[31mred\u202egnp.exe\u2028\u2029\ud800",
    "<a href='javascript:window.hacked=5'>x</a>",
    "https://example.com/beacon.png",
    "datum.value]; window.hacked = 6; [",
    "',window.hacked=7,'",
    '{"signal": "window.hacked = 8"}',
    '=HYPERLINK("javascript:window.hacked=9")',
    "toString['constructor']('window.hacked=10')()",
]


def curves() -> charts.Chart:
    points = [(e, 0.5 + 0.02 * e, 0.45 + 0.02 * e, 0.55 + 0.02 * e) for e in range(1, 11)]
    return charts.lines(
        {"train": points, "dev": [(x, y - 0.1, low - 0.1, high - 0.1) for x, y, low, high in points]},
        title="Accuracy by epoch",
        x_title="epoch",
        y_title="accuracy",
        mark_best="max",
        rules={"dev fell while train rose": 6},
    )


def all_charts(words: list[str] | None = None) -> list[charts.Chart]:
    """One chart of each kind, with the given words wherever words can stand."""
    a, b, c, d, e, f, g, h, i, j = words or [
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "9",
        "10",
    ]
    return [
        charts.histogram({a: [1, 2, 2, 3], b: [2, 3, 4]}, title=c, x_title=d, y_title=e, rules={f: 2, g: 3}),
        charts.lines(
            {a: [(1, 2), (2, 3)], b: [(1, 1), (2, 4)]}, title=c, x_title=d, y_title=e, rules={f: 1.5}
        ),
        charts.bars(
            [{"label": a, "value": 1, "low": 0.5, "high": 1.5, "group": x} for x in (b, c)]
            + [{"label": d, "value": None, "group": x, "note": e} for x in (b, c)],
            title=f,
            y_title=g,
            x_title=h,
            group_title=i,
            rules={j: 0.7},
        ),
        charts.heat_map(
            [[1, 2], [3, None]],
            x_labels=[a, a],
            y_labels=[b, c],
            title=d,
            x_title=e,
            y_title=f,
            value_title=g,
            notes={(1, 1): h},
        ),
        charts.small_multiples({a: [[1, 2]], b: [[3, 4]]}, x_labels=[c, d], y_labels=[e], title=f, x_title=g),
        charts.scatter(
            [{"x": 1, "y": 2, "low": 1, "high": 3, "group": a, "label": b}, {"x": 2, "y": 1, "group": c}],
            title=d,
            x_title=e,
            y_title=f,
            group_title=g,
        ),
    ]


def write(path: Path, page: Page) -> Path:
    return page.write(path / "page.html")


def test_every_kind_of_chart_draws_its_marks_without_a_word_in_the_console(
    browser: Tab, tmp_path: Path
) -> None:
    page = Page("All kinds")
    for chart in all_charts():
        page.figure(chart)
    browser.open(write(tmp_path, page))
    assert browser.log == []
    assert browser.only_requested_itself()
    marks = browser.run(
        """[...document.querySelectorAll('.chart')].map(chart => {
            const count = kind => chart.querySelectorAll(`.mark-${kind}.role-mark path, .mark-${kind}.role-mark line`).length;
            return {drawn: chart.dataset.drawn, rect: count('rect'), line: count('line'), symbol: count('symbol'),
                    rule: count('rule')};
        })"""
    )
    histogram, lines, bars, heat, multiples, scatter = marks
    assert all(found["drawn"] == "yes" for found in marks)
    assert histogram["rect"] == 6
    assert histogram["rule"] == 2
    assert (lines["line"], lines["symbol"], lines["rule"]) == (2, 4, 1)
    assert (bars["rect"], bars["rule"]) == (4, 3)
    assert heat["rect"] == 4
    assert multiples["rect"] == 4
    assert (scatter["symbol"], scatter["rule"]) == (2, 1)


def test_hostile_text_stays_text(browser: Tab, tmp_path: Path) -> None:
    page = Page(HOSTILE[0], summary=HOSTILE)
    for text in HOSTILE:
        page.section(text)
        page.text(text)
        page.note(text, "warning")
        page.code(text)
        page.facts({text: text}, caption=text)
        page.table([text, "b"], [[text, Cell(text, text)], [text, 1]], caption=text)
        with page.details(text):
            page.text(text)
    for start in range(len(HOSTILE)):
        for chart in all_charts((HOSTILE[start:] + HOSTILE[:start])[:10]):
            page.figure(chart, caption=HOSTILE[start])
    browser.open(write(tmp_path, page))
    for index in range(4):
        browser.click("thead th button", index)
    assert browser.run("window.hacked") is None
    assert browser.log == []
    assert browser.only_requested_itself()
    assert browser.run("document.querySelectorAll('script').length") == 3
    assert browser.run("document.querySelectorAll('main img, main a[href^=javascript]').length") == 0
    assert browser.run("document.querySelectorAll('.chart[data-drawn=yes]').length") == 6 * len(HOSTILE)
    shown = browser.run("[...document.querySelectorAll('main > .summary p')].map(p => p.textContent)")
    assert shown[0] == HOSTILE[0]
    assert shown[4] == HOSTILE[4]
    assert shown[5] == "\\x00\\x07\\x1b[31mred\\u202egnp.exe\\u2028\\u2029\\ud800"
    titles = browser.run("[...document.querySelectorAll('.role-title-text text')].map(t => t.textContent)")
    assert any("</script>" in title for title in titles)


def test_an_injected_script_would_not_run_even_if_escaping_failed(browser: Tab, tmp_path: Path) -> None:
    path = write(tmp_path, Page("Policy"))
    broken = path.read_text().replace(
        "<main>", "<main><script>window.hacked = 1</script><img src=https://example.com/a.png>"
    )
    path.write_text(broken)
    browser.open(path)
    assert browser.run("window.hacked") is None
    blocked = browser.run("fetch('https://example.com/').then(() => 'fetched', () => 'blocked')")
    assert blocked == "blocked"
    assert len(browser.log) >= 3  # the browser complains about each of them
    # Playwright may evaluate what the page may not, so this asks as the page would.
    evaluated = browser.page.context.new_cdp_session(browser.page).send(
        "Runtime.evaluate",
        {
            "expression": "(() => { try { return eval('1'); } catch (e) { return 'forbidden'; } })()",
            "allowUnsafeEvalBlockedByCSP": False,
        },
    )
    assert evaluated["result"]["value"] == "forbidden"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    page = Page("Tables")
    page.table(
        ["name", "accuracy", "step", "lr"],
        [
            ["run 10", 0.9, Cell("1,000", 1000), 5e-5],
            ["run 9", None, Cell("900", 900), 1e-4],
            ["Run 1", 0.85, Cell("20", 20), 1e-3],
            ["élan", -0.1, Cell("3", 3), 2e-5],
        ],
    )
    return write(tmp_path, page)


def column(browser: Tab, index: int) -> list[str]:
    found = browser.run(
        f"[...document.querySelectorAll('tbody tr')].map(row => row.cells[{index}].textContent)"
    )
    assert isinstance(found, list)
    return found


def test_tables_sort_by_number_and_by_word_both_ways(browser: Tab, table: Path) -> None:
    browser.open(table)
    assert column(browser, 0) == ["run 10", "run 9", "Run 1", "élan"]
    browser.click("thead button", 1)
    assert column(browser, 1) == ["-0.10", "0.85", "0.90", ""]
    browser.click("thead button", 1)
    assert column(browser, 1) == ["0.90", "0.85", "-0.10", ""]
    assert browser.run("document.querySelectorAll('th')[1].getAttribute('aria-sort')") == "descending"
    browser.click("thead button", 2)
    assert column(browser, 2) == ["3", "20", "900", "1,000"]
    browser.click("thead button", 3)
    assert column(browser, 3) == ["2e-05", "5e-05", "0.0001", "0.001"]
    browser.click("thead button", 0)
    assert column(browser, 0) == ["élan", "Run 1", "run 9", "run 10"]
    assert browser.run("document.querySelectorAll('[aria-sort]').length") == 1


def test_tables_sort_with_the_keyboard(browser: Tab, table: Path) -> None:
    browser.open(table)
    browser.run("document.querySelectorAll('thead button')[1].focus()")
    browser.page.keyboard.press("Enter")
    assert column(browser, 1)[0] == "-0.10"


OPACITIES = "[...document.querySelectorAll('.mark-line.role-mark path')].map(p => Number(p.getAttribute('opacity') ?? 1))"


def test_a_click_on_a_name_in_the_legend_toggles_its_curve(browser: Tab, tmp_path: Path) -> None:
    page = Page("Toggle")
    page.figure(curves())
    browser.open(write(tmp_path, page))
    assert browser.run(OPACITIES) == [1, 1]
    browser.click(".role-legend-label text", 1)
    browser.wait(f"Math.min(...{OPACITIES}) < 0.1")
    assert sorted(browser.run(OPACITIES)) == [0.06, 1]
    browser.click(".role-legend-label text", 1)
    browser.wait(f"Math.min(...{OPACITIES}) === 1")
    assert browser.log == []


def test_a_hover_tells_the_numbers(browser: Tab, tmp_path: Path) -> None:
    page = Page("Hover")
    page.figure(curves())
    browser.open(write(tmp_path, page))
    browser.page.mouse.move(*browser.center("document.querySelectorAll('.mark-symbol.role-mark path')[3]"))
    tooltip = browser.wait("document.querySelector('#vg-tooltip-element.visible')?.innerText")
    assert re.search(r"curve\s+train", tooltip)
    assert re.search(r"accuracy\s+0\.58", tooltip)


def color(browser: Tab, selector: str, name: str) -> str:
    found = browser.run(f"getComputedStyle(document.querySelector({selector!r})).{name}")
    assert isinstance(found, str)
    return found


def test_pages_and_charts_follow_light_dark_and_paper(browser: Tab, tmp_path: Path) -> None:
    page = Page("Light and dark")
    page.figure(curves())
    browser.open(write(tmp_path, page))
    light = color(browser, "body", "backgroundColor"), color(browser, ".role-title-text text", "fill")
    browser.page.emulate_media(color_scheme="dark")
    dark = color(browser, "body", "backgroundColor"), color(browser, ".role-title-text text", "fill")
    assert light == ("rgb(255, 255, 255)", "rgb(28, 36, 48)")
    assert dark == ("rgb(20, 24, 31)", "rgb(232, 236, 242)")
    browser.page.emulate_media(media="print", color_scheme="dark")
    assert (
        color(browser, "body", "backgroundColor"),
        color(browser, ".role-title-text text", "fill"),
    ) == light


def test_a_phone_never_scrolls_sideways(phone: Tab, tmp_path: Path) -> None:
    page = Page(
        "A long title with an_unbreakable_word_that_is_far_too_long_for_a_phone_to_show", summary="x" * 300
    )
    page.figure(curves(), caption="y" * 200)
    for chart in all_charts():
        page.figure(chart)
    page.table([f"a long column {i}" for i in range(12)], [["z" * 40] * 12])
    page.facts({"n" * 30: "v" * 300})
    page.code("c" * 400)
    phone.open(write(tmp_path, page))
    assert phone.run("document.documentElement.scrollWidth") == 380
    assert phone.run("document.querySelector('.chart svg').getBoundingClientRect().width") <= 380


def test_figures_in_a_closed_part_have_their_full_width_once_opened(browser: Tab, tmp_path: Path) -> None:
    page = Page("Closed")
    with page.details("More"):
        page.figure(curves())
    browser.open(write(tmp_path, page))
    browser.click(".part > summary")
    width = "document.querySelector('.chart svg').getBoundingClientRect().width"
    browser.wait(f"{width} > 500")
    assert 500 < browser.run(width) < 1000
    assert browser.log == []


def test_the_page_prints(browser: Tab, tmp_path: Path) -> None:
    page = Page("Print", summary="Words first.")
    page.figure(curves())
    with page.details("More"):
        page.text("details")
    browser.open(write(tmp_path, page))
    assert len(browser.page.pdf()) > 10_000
    assert browser.log == []
