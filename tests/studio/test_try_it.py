"""Try it: a person asks a model, wants reasons, looks at mistakes, and labels many texts."""

from __future__ import annotations

import csv
import io
import json
import random
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests import tiny
from tests.made_runs import HOSTILE
from tests.studio.conftest import Served, serve

from heedful.inference.loading import load_run
from heedful.runs import Prediction, Run

pytestmark = pytest.mark.needs("chromium")
TEXT = "the film was lovely and the music rather dull"


@pytest.fixture(scope="module")
def kinds(studio_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A studio of linear models: sets of labels, numbers for pairs, ordered classes, hostile labels."""
    from heedful.cli import main

    root = tmp_path_factory.mktemp("kinds")
    rng, write = random.Random(0), csv.writer
    tables: dict[str, tuple[list[str], list[list[str]]]] = {
        "topics": (["text", "labels"], []),
        "alike": (["sentence1", "sentence2", "score"], []),
        "stars": (["text", "label"], []),
        "hostile": (["text", "label"], []),
    }
    for i in range(80):
        good = bool(i % 2)
        text = tiny.sentence(rng, good)
        topics = (["good"] if good else []) + (["music"] if "music" in text else []) + ["all"] * (i % 3 == 0)
        tables["topics"][1].append([text, "|".join(topics) or "good|all"])
        words = text.split()
        tables["alike"][1].append(
            [text, " ".join(words[: rng.randint(1, len(words))]), f"{rng.random():.3f}"]
        )
        tables["stars"][1].append([text, str(1 + i % 2 * 2 + ("music" in text))])
        tables["hostile"][1].append([f"{text} {HOSTILE[1]}", HOSTILE[i % 2]])
    for name, (header, rows) in tables.items():
        with (root / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
            write(file).writerows([header, *rows])
        kind = {"stars": ("--kind", "ordered"), "topics": ("--kind", "labels")}.get(name, ())
        run = str(root / "runs" / name)
        assert main(["adapt", "tfidf", str(root / f"{name}.csv"), "--out", run, "--score-test", *kind]) == 0
    yield from serve(root)


def open_try(tab: Any, model: str, text: str = TEXT, more: str = "") -> Any:
    page = tab.open(f"/try-it#model={quote(model, safe='')}&text={quote(text)}{more}")
    tab.wait("document.querySelector('#answer .headline') !== null", 60)
    return page


def test_a_person_types_a_text_and_sees_why(tab: Any) -> None:
    page = tab.open("/try-it")
    page.get_by_label("Model").select_option("runs/reviews")
    page.get_by_role("textbox", name="Text").fill(TEXT)
    tab.wait("document.querySelector('#words .verdict') !== null", 60)
    folder = tab.served.folder / "runs" / "reviews"
    predictor = load_run(folder)
    answer = predictor.predict([TEXT], calibrate=True)[0]
    assert page.locator("#answer .headline").inner_text() == (
        f"{answer.label} {100 * answer.confidence:.1f} %"
    )
    assert "Probabilities are calibrated on 30 rows of dev" in page.locator("#answer").inner_text()
    assert "random order" in page.locator("#words .verdict").inner_text()
    assert page.locator("#words .shaded span").count() == len(TEXT.split())
    page.get_by_role("combobox", name="by", exact=True).select_option("occlusion")
    page.get_by_text("Occlusion: how far the score falls without each word").wait_for()
    assert "method=occlusion" in page.url
    again = tab.open(page.url.removeprefix(tab.served.url))
    again.get_by_text("Occlusion: how far").wait_for(timeout=60_000)
    assert again.locator("#text").input_value() == TEXT


def test_another_run_answers_beside_it_and_figures_are_saved(tab: Any) -> None:
    page = open_try(tab, "runs/words", more="&other=runs%2Freviews")
    tab.wait("document.querySelector('#other-answer .headline') !== null", 60)
    other = load_run(tab.served.folder / "runs" / "reviews").predict([TEXT], calibrate=True)[0]
    assert page.locator("#other-answer .headline").inner_text().startswith(other.label)
    with page.expect_download() as saved:
        page.locator("#answer").get_by_role("button", name="Save this figure as SVG").click()
    picture = Path(saved.value.path()).read_text()
    assert picture.startswith("<svg")
    assert "yes" in picture
    assert "var(" not in picture
    with page.expect_download() as saved:
        page.locator("#answer").get_by_role("button", name="Save this figure as PNG").click()
    assert Path(saved.value.path()).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("run", ["words", "reviews"])
def test_the_nearest_training_examples_begin_with_the_text_itself(tab: Any, run: str) -> None:
    rows = list(csv.reader((tab.served.folder / "data" / "train.csv").read_text().splitlines()))[1:]
    page = open_try(tab, f"runs/{run}", rows[7][0])
    page.get_by_role("button", name="Find them").click()
    tab.wait("document.querySelector('#neighbors tbody') !== null", 60)
    first = page.locator("#neighbors tbody tr").first.inner_text()
    assert "The same text:" in first
    assert rows[7][0] in first
    assert rows[7][1] in first
    assert "1.000" in first
    assert "Compared with 60 training rows" in page.locator("#neighbors").inner_text()
    assert "near=1" in page.url


def test_without_its_data_a_run_still_answers_and_says_so(
    studio_folder: Path, tmp_path: Path, new_tab: Any
) -> None:
    copy = tmp_path / "moved"
    shutil.copytree(studio_folder / "runs" / "words", copy)
    config = (copy / "config.toml").read_text()
    (copy / "config.toml").write_text(config.replace(str(studio_folder / "data"), str(tmp_path / "gone")))
    rows = [
        Prediction("a", "yes", "no", {"no": 0.6, "yes": 0.4}, "a dull film"),
        Prediction("b", "yes", "no", {"no": 0.9, "yes": 0.1}, "a poor end"),
        Prediction("c", "yes", "yes", {"no": 0.2, "yes": 0.8}, "a fine start"),
        Prediction("d", "no", "yes", {"no": 0.3, "yes": 0.7}, "a kind actor"),
    ]
    Run(copy).write_predictions("test", rows)
    (copy / "predictions_dev.jsonl").unlink()
    for served in serve(tmp_path):
        tab = new_tab(served=served)
        page = open_try(tab, "moved", more="&near=1")
        assert "Not calibrated: moved has no predictions on dev" in page.locator("#answer").inner_text()
        page.get_by_text("the training data is not here any more").wait_for()
        listed = [row.split("\t") for row in page.locator("#mistakes tbody tr").all_inner_texts()]
        assert [(row[0], row[3]) for row in listed] == [
            ("90.0 %", "a poor end"),
            ("70.0 %", "a kind actor"),
            ("60.0 %", "a dull film"),
        ]
        page.get_by_role("combobox", name="Mistakes").select_option(label="yes for no (1)")
        tab.wait("document.querySelectorAll('#mistakes tbody tr').length === 1")
        page.get_by_role("button", name="Explain row 4").click()
        tab.wait("document.getElementById('answer').innerText.includes('The right answer is no.')")
        assert page.locator("#text").input_value() == "a kind actor"
        tab.wait("document.querySelector('#words .shaded')?.innerText === 'a kind actor'")


def test_many_lines_and_files_are_labeled_and_downloaded(tab: Any, tmp_path: Path) -> None:
    page = open_try(tab, "runs/words")
    page.get_by_label("One text per line").fill("a lovely, kind film\n=1+1 was ugly\n\n<b>warm</b>")
    page.get_by_label("a column per label").check()
    page.get_by_role("button", name="Label these lines").click()
    page.get_by_text("3 rows labeled").wait_for(timeout=60_000)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download lines-labeled.csv").click()
    rows = list(csv.reader(io.StringIO(Path(saved.value.path()).read_text())))
    assert rows[0] == ["text", "label", "confidence", "probability_no", "probability_yes"]
    assert [row[0] for row in rows[1:]] == ["a lovely, kind film", "'=1+1 was ugly", "<b>warm</b>"]
    assert [row[1] for row in rows[1:]] == ["yes", "no", "yes"]
    told = load_run(tab.served.folder / "runs" / "words").predict(["a lovely, kind film"], calibrate=True)[0]
    assert float(rows[1][2]) == pytest.approx(told.confidence, abs=1e-5)

    given = tmp_path / "My reviews.csv"
    given.write_text("id;review\n1;a bright scene\n2;\n3;a cold plot\n", encoding="utf-8")
    page.get_by_label("Form of the labeled file").select_option(".jsonl")
    page.get_by_label("A file of texts").set_input_files(given)
    page.get_by_text("labeled").first.wait_for()
    with page.expect_download() as saved:
        page.get_by_role("button", name="Download My reviews-labeled.jsonl").click()
    lines = [json.loads(line) for line in Path(saved.value.path()).read_text().splitlines()]
    assert [(line["id"], line["label"]) for line in lines] == [("1", "yes"), ("2", None), ("3", "no")]

    tab.allowed.append("422")
    (tmp_path / "notes.pdf").write_bytes(b"%PDF")
    page.get_by_label("A file of texts").set_input_files(tmp_path / "notes.pdf")
    page.get_by_text("files to label end in .csv").wait_for()
    assert not list(tab.served.folder.glob(".heedful-studio/*"))


def test_uploads_have_a_limit_and_names_cannot_lead_out(studio: Served) -> None:
    from starlette.testclient import TestClient

    from heedful.studio.pages.try_it import MOST_UPLOADED, name_upload

    assert name_upload("../../evil.CSV") == "texts.csv"
    assert name_upload("C:\\temp\\a.jsonl.gz") == "texts.jsonl.gz"
    from tests.studio.conftest import TOKEN

    client = TestClient(studio.app, base_url="http://localhost", headers={"Authorization": f"Bearer {TOKEN}"})
    large = client.post("/api/try_it/file?name=a.csv&model=runs/words", content=b"x" * (MOST_UPLOADED + 1))
    assert large.status_code == 413
    assert client.get("/api/try_it/labeled/unknown").status_code == 404


def test_every_kind_of_answer(kinds: Served, new_tab: Any) -> None:
    tab = new_tab(served=kinds)
    page = open_try(tab, "runs/topics")
    told = load_run(kinds.folder / "runs" / "topics").predict([TEXT])[0]
    shown = page.locator("#answer .headline").inner_text()
    assert shown.split(" ")[0].strip(",") in ("no", "good", "music", "all")
    assert set(re.findall(r"good|music|all", shown)) == set(told.label.split("|")) - {""}
    assert page.locator("#answer .mark").count() == 3, "each label has its threshold"
    page.get_by_role("combobox", name="Explain", exact=True).select_option("music")
    page.get_by_text('for and against "music"').wait_for()

    page = tab.open("/try-it#model=runs%2Falike&text=a+film")
    page.get_by_role("textbox", name="Second text").fill("a film with music")
    tab.wait("document.querySelector('#answer .headline') !== null", 60)
    number = load_run(kinds.folder / "runs" / "alike").predict([("a film", "a film with music")])[0]
    assert page.locator("#answer .headline").inner_text() == number.label
    assert "half of the numbers are within" in page.locator("#answer").inner_text()
    tab.wait("document.querySelectorAll('#words .shaded').length === 2")
    assert "the largest error first" in page.locator("#split").inner_text()
    errors = [float(row.split("\t")[0]) for row in page.locator("#mistakes tbody tr").all_inner_texts()]
    assert errors == sorted(errors, reverse=True)
    page.get_by_label("One text per line").fill("a dull plot\ta dull start\na film\ta very long film")
    page.get_by_role("button", name="Label these lines").click()
    page.get_by_text("2 rows labeled").wait_for(timeout=60_000)

    page = open_try(tab, "runs/stars")
    names = page.locator("#answer .bar-row text:first-of-type").all_text_contents()
    assert names == ["1", "2", "3", "4"], "ordered classes stay in their order"


def test_hostile_labels_and_texts_are_shown_as_they_are(kinds: Served, new_tab: Any) -> None:
    tab = new_tab(served=kinds)
    page = open_try(
        tab, "runs/hostile", HOSTILE[0] + HOSTILE[1] + HOSTILE[2], "&near=1&right=" + quote(HOSTILE[1])
    )
    tab.wait("document.querySelector('#neighbors tbody') !== null", 60)
    tab.wait("document.querySelector('#words .verdict, #words .shaded') !== null", 60)
    page.get_by_label("One text per line").fill("\n".join(HOSTILE[:4]))
    page.get_by_role("button", name="Label these lines").click()
    page.get_by_text("4 rows labeled").wait_for(timeout=60_000)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img, main svg[onload]").count() == 0
    assert any(HOSTILE[i] in page.locator("#answer .headline").inner_text() for i in (0, 1))


@pytest.mark.parametrize(("width", "dark"), [(390, True), (2560, False)])
def test_the_page_fits_the_window(new_tab: Any, width: int, dark: bool) -> None:
    tab = new_tab(width, dark=dark)
    open_try(tab, "runs/words", "word " * 300 + "x" * 300, "&near=1&other=runs%2Freviews")
    tab.wait("document.querySelector('#words .verdict') !== null", 60)
    tab.wait("document.querySelector('#neighbors tbody') !== null", 60)
    assert not tab.overflows()
