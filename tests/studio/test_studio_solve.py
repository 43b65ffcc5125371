"""Solve: a person drops a file, sees what is in it, and gets the best model for it."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import made_runs, tiny
from tests.made_runs import HOSTILE
from tests.studio.conftest import TOKEN, Served, serve

from heedful.errors import UserError
from heedful.runs import write_answer
from heedful.runs.leases import Lease
from heedful.runs.processes import process_name
from heedful.runs.studies import StudyFolder, StudyRecord
from heedful.studio.pages.solve import is_same
from heedful.studio.uploads import name_data_file

NEEDS_BROWSER = pytest.mark.needs("chromium")


def write_table(path: Path, rows: int = 120, *, labels: tuple[str, str] = ("no", "yes")) -> Path:
    """A CSV file of texts and labels, with an empty text in line 12, and a text that has both labels."""
    rng = random.Random(0)
    lines = [f"{tiny.sentence(rng, bool(i % 2))},{labels[i % 2]},a{i % 37}" for i in range(rows)]
    lines[10] = f",{labels[0]},a1"
    lines[20] = f"the very same text,{labels[0]},a1"
    lines[21] = f"the very same text,{labels[1]},a1"
    path.write_text("\n".join(["review,verdict,author", *lines, ""]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    yield from serve(tmp_path_factory.mktemp("empty"))


def give(page: Any, path: Path) -> None:
    page.get_by_role("button", name="Choose a file").set_input_files(path)


@NEEDS_BROWSER
def test_a_dropped_file_is_solved_and_a_page_that_is_opened_again_finds_it(
    empty: Served, new_tab: Any, tmp_path: Path
) -> None:
    tab = new_tab(served=empty)
    page = tab.open("/solve")
    content = write_table(tmp_path / "My reviews.csv").read_text()
    page.evaluate(  # what a browser does when a file is dropped
        """content => {
            const data = new DataTransfer();
            data.items.add(new File([content], "My reviews.csv"));
            document.getElementById("drop").dispatchEvent(
                new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
        }""",
        content,
    )
    page.locator("#understood .facts").wait_for(timeout=90_000)
    page.get_by_label("Minutes").fill("5")
    page.get_by_role("button", name="Solve", exact=True).click()
    tab.wait("location.hash.includes('solve=runs%2Fsolve-My-reviews')", 30)
    page = tab.open("/solve")
    tab.wait("location.hash.includes('solve=runs%2Fsolve-My-reviews')", 30)
    page.locator("#answer .plot svg").first.wait_for(timeout=120_000)
    assert "tfidf" in page.locator("#answer table").first.inner_text()
    page.get_by_role("button", name="End with the best so far").click()
    page.locator("#now .badge.stopped").wait_for(timeout=60_000)
    said = json.loads((empty.folder / "runs" / "solve-My-reviews" / "answer.json").read_text())
    assert not said["finished"]
    assert page.locator("#answer .headline").inner_text() == said["summary"][0]
    command = f"heedful predict {empty.folder}/runs/solve-My-reviews --in texts.csv --out labeled.csv"
    assert command in page.locator("#answer").inner_text()
    with page.expect_download() as saved:
        page.locator("#answer").get_by_role("button", name="Save this figure as SVG").first.click()
    assert "milliseconds per text" in Path(saved.value.path()).read_text()
    assert page.get_by_role("link", name="runs/solve-My-reviews").count() == 1
    page.get_by_role("link", name="Try it").last.click()
    page.get_by_text("Gives texts one of the labels").wait_for(timeout=60_000)


@NEEDS_BROWSER
def test_a_person_sees_what_is_in_a_file_and_what_is_wrong(
    empty: Served, new_tab: Any, tmp_path: Path
) -> None:
    tab = new_tab(served=empty)
    page = tab.open("/solve")
    give(page, write_table(tmp_path / "checked.csv"))
    page.locator("#understood .facts").wait_for(timeout=90_000)
    said = page.locator("#understood").inner_text()
    assert "119 rows" in said
    assert "text is “review”, label is “verdict”" in said
    assert "one label per text" in said
    assert 'skipped 1 of 120 rows, first line 12: empty text in column "review"' in said
    assert "--strict" not in said
    page.get_by_text("Rows that are left out (1)").click()
    page.get_by_text('checked.csv line 12: empty text in column "review"').wait_for()
    page.get_by_text("Texts with several labels (1)").click()
    page.get_by_text("no, yes: the very same text").wait_for()
    page.locator("#understood .plot svg").wait_for()
    names = page.locator("#understood .bar-row text:first-of-type").all_text_contents()
    assert sorted(names) == ["no", "yes"]
    page.get_by_role("combobox", name="Rows that belong together").select_option("author")
    page.get_by_text("split by author: 37 groups").first.wait_for(timeout=30_000)
    assert "group=author" in page.url
    page.reload()
    page.get_by_text("split by author: 37 groups").first.wait_for(timeout=60_000)
    assert page.get_by_role("combobox", name="Rows that belong together").input_value() == "author"


@NEEDS_BROWSER
def test_wrong_files_say_what_is_wrong(empty: Served, new_tab: Any, tmp_path: Path) -> None:
    tab = new_tab(served=empty)
    tab.allowed.append("422")
    page = tab.open("/solve")
    (tmp_path / "paper.pdf").write_bytes(b"%PDF-1.7")
    give(page, tmp_path / "paper.pdf")
    page.get_by_text("files of labeled texts end in .csv").wait_for()
    (tmp_path / "empty.csv").write_bytes(b"")
    give(page, tmp_path / "empty.csv")
    page.get_by_text("empty.csv: the file is empty").wait_for()
    (tmp_path / "one.csv").write_text("text,label\n" + "a good film,yes\n" * 30)
    give(page, tmp_path / "one.csv")
    page.get_by_text("every row has the label").wait_for(timeout=90_000)
    assert not page.get_by_role("button", name="Solve", exact=True).is_visible()
    two = "\n".join(f"a rather long comment {i},another long remark {i},{i % 3}" for i in range(60))
    (tmp_path / "unclear.csv").write_text(f"comment a,comment b,class\n{two}\n")
    give(page, tmp_path / "unclear.csv")
    tab.wait("document.getElementById('data-title').innerText.includes('unclear.csv')", 30)
    page.get_by_text(
        'which column is the text, of "comment a", "comment b"? Say it with "Text" below'
    ).wait_for()
    page.get_by_role("combobox", name="Text", exact=True).select_option("comment b")
    page.get_by_role("combobox", name="Label", exact=True).select_option("class")
    page.get_by_text("text is “comment b”, label is “class”").wait_for(timeout=30_000)
    (tmp_path / "noise.xlsx").write_bytes(os.urandom(2000))
    give(page, tmp_path / "noise.xlsx")
    tab.wait("document.getElementById('problem').innerText.includes('noise.xlsx')", 30)
    page = tab.open("/solve#solve=runs%2Fnowhere")
    page.get_by_text('"runs/nowhere" is not in the folder of this studio').wait_for()


@NEEDS_BROWSER
def test_a_solution_that_fails_says_why(empty: Served, new_tab: Any, tmp_path: Path) -> None:
    tab = new_tab(served=empty)
    page = tab.open("/solve")
    give(page, write_table(tmp_path / "fails.csv"))
    page.locator("#understood .facts").wait_for(timeout=90_000)
    source = page.evaluate("new URLSearchParams(location.hash.slice(1)).get('source')")
    (empty.folder / source).write_text("no table at all")
    page.get_by_role("button", name="Solve", exact=True).click()
    page.locator("#now .badge.failed").wait_for(timeout=60_000)
    assert "fails.csv" in page.locator("#now .problem").inner_text()
    page.get_by_role("link", name="Back to the file").click()
    tab.wait("document.getElementById('problem').innerText.includes('fails.csv')", 30)


@NEEDS_BROWSER
def test_candidates_appear_in_the_picture_as_they_are_scored(tmp_path: Path, new_tab: Any) -> None:
    folder = tmp_path / "runs" / "solve-x"
    (folder / "leases").mkdir(parents=True)
    StudyFolder(folder).write(
        StudyRecord("solve", "which model is best for x?", 0, {}, (), ("solve", "x", "--minutes=5"))
    )
    lease = Lease.claim(folder / "leases" / "solve", process_name(os.getpid()), 60)
    assert lease is not None
    for served in serve(tmp_path):
        tab = new_tab(served=served)
        page = tab.open("/solve")
        page.get_by_text("The first candidate appears here").wait_for()
        assert "of 5 min left" in page.locator("#now").inner_text()
        for count in (1, 3):
            points = [{"x": 1.0 + i, "y": 0.5 + i / 10, "label": f"candidate-{i}"} for i in range(count)]
            figure = made_runs.Figure(
                "score-against-cost", "scatter", points, {"title": "t", "x_title": "x", "y_title": "y"}
            )
            write_answer(folder, made_runs.answer(study="solve", figures=(figure,), finished=False))
            tab.wait(
                f"document.querySelector('#answer .plot svg')?.textContent.includes('candidate-{count - 1}')"
            )
        lease.release()
        page.locator("#now .badge.stopped").wait_for()
        write_answer(
            folder, made_runs.answer(study="solve", summary=("It is good.", "To use it:", "  heedful x"))
        )
        page.locator("#now .badge.finished").wait_for()
        assert page.locator("#answer .headline").inner_text() == "It is good."
        assert page.locator("#answer .command code").inner_text() == "heedful x"


@NEEDS_BROWSER
@pytest.mark.parametrize(("width", "dark"), [(390, True), (2560, False)])
def test_hostile_files_are_shown_as_they_are_and_fit(
    empty: Served, new_tab: Any, tmp_path: Path, width: int, dark: bool
) -> None:
    tab = new_tab(width, dark=dark, served=empty)
    page = tab.open("/solve")
    rows = [
        (
            '"' + f"{HOSTILE[i % 4]}{' w' * (i % 7)}".replace('"', '""') + '"',
            ("<b>bold</b>", "x" * 90)[i % 2],
            "y" * 200,
        )
        for i in range(90)
    ]
    path = tmp_path / f"<img src=x onerror=window.hacked=7> {width}.csv"
    path.write_text("\n".join(["text,label,<script>window.hacked=8</script>", *map(",".join, rows)]))
    give(page, path)
    page.locator("#understood .plot svg").wait_for(timeout=90_000)
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img, main i, main b").count() == 0
    assert not tab.overflows()


def test_uploads_are_limited_and_stay_inside(empty: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.testclient import TestClient

    from heedful.studio import uploads

    assert name_data_file("../../evil.CSV") == "evil.csv"
    assert name_data_file("C:\\temp\\a b.jsonl.gz") == "a-b.jsonl.gz"
    with pytest.raises(UserError, match=r"end in \.csv"):
        name_data_file("a.exe")
    headers = {"Authorization": f"Bearer {TOKEN}"}
    client = TestClient(empty.app, base_url="http://localhost", headers=headers)
    monkeypatch.setattr(uploads, "MOST_UPLOADED", 1000)
    large = client.post("/api/solve/upload?name=large.csv", content=b"x" * 1001)
    assert large.status_code == 413
    parts = client.post("/api/solve/upload?name=large.csv", content=(b"x" * 400 for _ in range(3)))
    assert parts.status_code == 413
    assert not list((empty.folder / "uploads").glob("*/large.csv"))
    assert not list((empty.folder / "uploads").glob(".*"))
    first = client.post("/api/solve/upload?name=small.csv", content=b"text,label\n").json()["source"]
    assert client.post("/api/solve/upload?name=small.csv", content=b"text,label\n").json()["source"] == first
    assert (empty.folder / first).read_bytes() == b"text,label\n"
    for source in ("../x.csv", "/etc/passwd", "uploads/../../x"):
        answer = client.post("/api/solve/start", json={"source": source, "minutes": 1})
        assert answer.status_code == 422
    wrong = client.post("/api/solve/start", json={"source": first, "minutes": 0})
    assert "minutes" in wrong.json()["error"]["message"]


def test_the_same_question_is_continued_and_another_one_is_not() -> None:
    begun = ("solve", "/data/x.csv", "--minutes=10.0", "--out=/runs/solve-x")
    assert is_same(begun, ("solve", "/data/x.csv", "--minutes=30.0"))
    assert not is_same(begun, ("solve", "/data/y.csv", "--minutes=10.0"))
    assert not is_same(begun, ("solve", "/data/x.csv", "--minutes=10.0", "--prefer=speed"))


def test_a_solution_is_ended_by_the_page_even_before_it_has_a_folder(tmp_path: Path) -> None:
    from starlette.testclient import TestClient

    for served in serve(tmp_path):
        headers = {"Authorization": f"Bearer {TOKEN}"}
        client = TestClient(served.app, base_url="http://localhost", headers=headers)
        write_table(tmp_path / "x.csv")
        started = client.post("/api/solve/start", json={"source": "x.csv", "minutes": 5})
        name = started.json()["name"]
        again = client.post("/api/solve/start", json={"source": "x.csv", "minutes": 5})
        assert "still at work" in again.json()["error"]["message"]
        child = served.app.state.children.known[name]
        assert child.runs
        assert client.post("/api/solve/end", json={"name": name}).status_code == 200
        end = time.monotonic() + 60
        while child.runs:
            assert time.monotonic() < end
            time.sleep(0.1)
