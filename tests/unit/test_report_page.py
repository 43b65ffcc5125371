from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.report import charts, formats
from heedful.report.page import Cell, Page, embed_json, load_vega


class Reader(HTMLParser):
    """What a page holds: elements, and the content of its scripts."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.scripts: list[str] = []
        self.text = ""
        self.inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.inside = tag
        self.addresses += [value or "" for name, value in attributes if name in ("src", "href")]
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:
        self.inside = ""

    def handle_data(self, data: str) -> None:
        if self.inside == "script":
            self.scripts[-1] += data
        else:
            self.text += data


def chart(title: str = "title") -> charts.Chart:
    return charts.bars([{"label": title, "value": 1}], title=title, y_title="y")


def test_the_drawing_library_is_there_once_however_many_figures() -> None:
    sizes = []
    for count in (1, 20):
        page = Page("t")
        for _ in range(count):
            page.figure(chart())
        sizes.append(len(page.html()))
    assert sizes[0] > len(load_vega())
    assert sizes[1] - sizes[0] < 100_000


def test_a_page_without_figures_needs_no_drawing_library() -> None:
    page = Page("t")
    page.table(["a"], [[1]])
    assert len(page.html()) < 20_000


def test_nothing_points_outside_the_page() -> None:
    page = Page("t")
    for name in ("one", "two", "three"):
        page.section(name)
        page.figure(chart())
    reader = Reader(page.html())
    assert reader.addresses
    assert all(address.startswith(("#", "data:")) for address in reader.addresses)
    assert not {"img", "iframe", "object", "form"} & set(reader.tags)


def test_the_policy_allows_the_pages_own_scripts_by_hash_and_nothing_else() -> None:
    page = Page("t")
    page.figure(chart())
    html = page.html()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    directives = policy[1].replace("&#39;", "'")
    assert directives.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in directives
    hashes = re.findall(r"'sha256-([^']*)'", directives)
    _, *own = Reader(html).scripts  # the first holds data
    assert hashes == [base64.b64encode(hashlib.sha256(s.encode()).digest()).decode() for s in own]


texts = st.text(max_size=30) | st.sampled_from(
    ["</script><script>", "<!--<script>", "'\"><b>", "\u2028&\x00"]
)


@given(
    st.recursive(texts, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3))
)
def test_embedded_json_reads_back_and_cannot_leave_its_element(value: object) -> None:
    text = embed_json(value)
    assert json.loads(text) == value
    assert not re.search("[<>&\u2028\u2029]", text)


@given(texts.filter(bool))
def test_any_text_in_any_place_adds_no_element(text: str) -> None:
    def build(word: str) -> list[str]:
        page = Page(word, summary=word)
        page.section(word)
        page.text(word)
        page.note(word, "bad")
        page.code(word)
        page.facts({word: word}, caption=word)
        page.table([word], [[word], [Cell(word, word)]], caption=word)
        with page.details(word):
            page.text(word)
        return Reader(page.html()).tags

    assert build(text) == build("harmless")


def test_words_come_in_the_order_they_were_added() -> None:
    page = Page("Title", summary=["First."])
    page.section("Second")
    page.text("Third.")
    with page.details("Fourth"):
        page.text("Fifth.")
    page.note("Sixth.")
    text = Reader(page.html()).text
    places = [text.index(word) for word in ("First", "Second", "Third", "Fourth", "Fifth", "Sixth")]
    assert places == sorted(places)


def test_rows_must_fit_their_columns() -> None:
    with pytest.raises(ValueError, match="2 columns"):
        Page("t").table(["a", "b"], [[1]])


def test_the_page_is_written_with_its_folders(tmp_path: Path) -> None:
    path = Page("Ünïcode").write(tmp_path / "a" / "b.html")
    assert "<title>Ünïcode</title>" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("column", "written"),
    [
        ([1, 22_713_216, -3], ["1", "22,713,216", "-3"]),
        ([0.5, 0.91234, 1], ["0.5000", "0.9123", "1.0000"]),
        ([1234.56, 10.5], ["1,234.6", "10.5"]),
        ([5e-5, 1e-3, 0.5], ["5e-05", "0.001", "0.5"]),
        ([12.345, 99.0], ["12.35", "99.00"]),
        ([1.0, float("inf")], ["1", "inf"]),
    ],
)
def test_the_numbers_of_a_column_are_written_alike(column: list[float], written: list[str]) -> None:
    form = formats.choose_format(column)
    assert [form(value) for value in column] == written
