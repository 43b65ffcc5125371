"""Runs: a person watches runs, finds and compares them, stops one, continues it, and opens reports."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests import made_runs
from tests.made_runs import HOSTILE
from tests.studio.conftest import TOKEN, Served, serve
from tests.studio.test_run_list import copy_run

from heedful.runs import Run
from heedful.runs.files import write_json
from heedful.runs.leases import Lease
from heedful.runs.processes import process_name
from heedful.runs.studies import Configuration, Ended, StudyFolder, StudyRecord

NEEDS_BROWSER = pytest.mark.needs("chromium")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A studio over runs that were written and not trained, in every state, and a study."""
    root = tmp_path_factory.mktemp("made")
    runs = root / "runs"
    made_runs.write_run(runs / "good", right=0.95, seed=1, n=200)
    made_runs.write_run(runs / "bad", right=0.55, seed=2, n=200, method="head", falls=True)
    made_runs.write_run(runs / "other-task", right=0.7, seed=3, task="letters")
    made_runs.write_run(runs / "ended", seed=4, finished=False)
    made_runs.write_run(runs / "hostile", words=HOSTILE[:3], seed=5, task=HOSTILE[1], note=HOSTILE[0])
    if os.name == "posix":
        made_runs.write_run(runs / "<img src=x onerror='window.hacked = 9'>", seed=6, note="hostile folder")
    damaged = made_runs.write_run(runs / "damaged", seed=7)
    (damaged / "results.json").write_text("{")
    study = root / "studies" / "search"
    names = tuple(Configuration(f"lr-{i}", {"lr": i}) for i in range(3))
    record = StudyRecord("search", "which rate is best?", 0, {}, names, ("study", "search", "minilm", "x"))
    for i in range(2):
        made_runs.write_run(study / "runs" / f"lr-{i}", right=0.6 + 0.2 * i, seed=10 + i)
    StudyFolder(study).write(record)
    made_runs.write_run(study / "runs" / "lr-2", seed=12, finished=False)
    write_json(study / "runs" / "lr-2" / "failed.json", Ended("the loss is no longer a number"))
    yield from serve(root)


def listed(tab: Any) -> list[str]:
    names: list[str] = tab.page.locator("#rows tr th .text:first-child").all_inner_texts()
    return names


def find_row(tab: Any, name: str) -> Any:
    tab.wait(f"[...document.querySelectorAll('#rows th')].some(th => th.innerText.startsWith({name!r}))")
    return tab.page.locator("#rows tr").filter(has=tab.page.get_by_label(f"Select {name}", exact=True))


def open_runs(tab: Any, view: str = "") -> Any:
    page = tab.open(f"/runs{view}")
    tab.wait("document.getElementById('count').innerText.includes('runs and studies')")
    return page


@NEEDS_BROWSER
def test_a_person_finds_a_run_and_reads_its_report(made: Served, new_tab: Any) -> None:
    tab = new_tab(served=made)
    page = open_runs(tab)
    assert len(listed(tab)) == 8, "runs of the study are not listed by themselves"
    good = find_row(tab, "runs/good").inner_text()
    results = Run(made.folder / "runs" / "good").read_results().splits["test"]
    assert f"{results.value:.3f}" in good
    assert "accuracy, test" in good
    assert "minilm, full on sentences" in good
    assert "fine" in good
    assert "caution: dev falls while train rises" in find_row(tab, "runs/bad").inner_text()
    assert "stopped" in find_row(tab, "runs/ended").inner_text()
    assert "the file is damaged" in find_row(tab, "runs/damaged").inner_text()
    spark = find_row(tab, "runs/good").get_by_role("img")
    assert spark.get_attribute("aria-label").startswith("dev from 0.650 to 0.950")
    page.get_by_label("Filter").fill("HEAD runs/b")
    tab.wait("document.querySelectorAll('#rows tr').length === 1")
    assert listed(tab) == ["runs/bad"]
    assert "q=HEAD" in page.url
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="runs/bad").click()
    report = opened.value
    report.get_by_role("heading", name="minilm on sentences, head").wait_for()
    report.locator("svg.marks").first.wait_for()
    assert report.evaluate("window.origin") == "null", "a report cannot read what the studio answers"


@NEEDS_BROWSER
def test_order_state_and_filter_are_in_the_address(made: Served, new_tab: Any) -> None:
    tab = new_tab(served=made)
    page = open_runs(tab)
    page.get_by_role("button", name="Score").click()
    tab.wait("location.hash.includes('sort=score')")
    scores = page.locator("#rows td.score strong").all_inner_texts()
    assert scores == sorted(scores, reverse=True)
    assert page.locator("th[aria-sort=descending]").inner_text() == "Score ↓".removesuffix(" ↓")
    page.get_by_role("button", name="Score").click()
    tab.wait("location.hash.includes('reverse=1')")
    assert page.locator("#rows td.score strong").all_inner_texts() == scores[::-1]
    page.get_by_role("combobox", name="State", exact=True).select_option("checks")
    tab.wait("document.querySelectorAll('#rows tr').length === 1")
    page.reload()
    tab.wait("document.querySelectorAll('#rows tr').length === 1")
    assert listed(tab) == ["runs/bad"]
    assert page.get_by_role("combobox", name="State", exact=True).input_value() == "checks"


@NEEDS_BROWSER
def test_a_study_shows_its_best_run_and_opens_its_runs(made: Served, new_tab: Any) -> None:
    tab = new_tab(served=made)
    page = open_runs(tab)
    row = find_row(tab, "studies/search")
    assert "which rate is best?" in row.inner_text()
    best = Run(made.folder / "studies/search/runs/lr-1").read_results().splits["test"].value
    assert f"{best:.3f}" in row.inner_text()
    row.get_by_role("button", name="Show the runs of studies/search").click()
    tab.wait("document.querySelectorAll('#rows tr').length === 3")
    assert "the loss is no longer a number" in find_row(tab, "studies/search/runs/lr-2").inner_text()
    page.get_by_role("button", name="Runs of studies/search: show all again").click()
    tab.wait("document.querySelectorAll('#rows tr').length === 8")
    page.get_by_label("runs of studies, too").check()
    tab.wait("document.querySelectorAll('#rows tr').length === 11")


@NEEDS_BROWSER
def test_selected_runs_are_compared_with_the_sentence_of_the_paired_test(made: Served, new_tab: Any) -> None:
    tab = new_tab(served=made)
    page = open_runs(tab)
    for name in ("runs/good", "runs/bad", "runs/other-task"):
        page.get_by_label(f"Select {name}", exact=True).check()
    page.get_by_role("button", name="Compare").click()
    page.locator("#compared .plot svg").nth(2).wait_for(timeout=60_000)
    said = page.locator("#compared").inner_text()
    good, bad = (
        Run(made.folder / "runs" / name).read_results().splits["test"].value for name in ("good", "bad")
    )
    assert f"On test: good is best on these examples: its accuracy, {good:.3f}" in said
    assert f"higher than that of bad ({bad:.3f}), beyond chance." in said
    assert "other-task is on another task" in said
    with page.expect_download() as saved:
        page.locator("#compared").get_by_role("button", name="Save this figure as SVG").first.click()
    picture = Path(saved.value.path()).read_text()
    assert picture.startswith("<svg")
    assert "good" in picture
    assert "var(" not in picture
    with page.expect_download() as saved:
        page.locator("#compared").get_by_role("button", name="Save this figure as PNG").first.click()
    assert Path(saved.value.path()).read_bytes().startswith(b"\x89PNG")
    page.reload()
    page.locator("#compared .plot svg").first.wait_for(timeout=60_000)
    assert page.get_by_label("Select runs/good", exact=True).is_checked()
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Open the report").click()
    opened.value.get_by_role("heading", name="3 runs").wait_for()


@NEEDS_BROWSER
def test_the_keyboard_alone_sorts_selects_and_compares(made: Served, new_tab: Any) -> None:
    tab = new_tab(served=made)
    page = open_runs(tab, "#sort=name")
    page.get_by_label("Filter").focus()
    page.keyboard.type("minilm sentences")
    tab.wait("location.hash.includes('q=minilm')")
    page.get_by_label("Select runs/bad", exact=True).focus()
    page.keyboard.press("Space")
    page.get_by_label("Select runs/good", exact=True).focus()
    page.keyboard.press("Space")
    page.get_by_role("button", name="Compare").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "comparison-title"
    page.locator("#compared .verdict").wait_for(timeout=60_000)


@NEEDS_BROWSER
def test_what_a_run_writes_appears_without_drawing_other_rows_again(made: Served, new_tab: Any) -> None:
    tab = new_tab(served=made)
    folder = made_runs.write_run(made.folder / "runs" / "live", seed=20, finished=False, epochs=1)
    lease = Lease.claim(folder / "checkpoints" / ".lease", process_name(os.getpid()), 60)
    if lease is None:
        (folder / "checkpoints").mkdir()
        lease = Lease.claim(folder / "checkpoints" / ".lease", process_name(os.getpid()), 60)
    assert lease is not None
    try:
        page = open_runs(tab)
        find_row(tab, "runs/live")
        page.evaluate("document.querySelectorAll('#rows tr').forEach(row => { row.mark = 1; })")
        counts = {"label": "training (steps)", "total": 200, "note": "loss 0.5", "labels": []}
        write_json(folder / "progress.json", {**counts, "done": 50, "seconds": 50.0})
        tab.wait("document.getElementById('rows').innerText.includes('training 25 %, 3 min left')")
        assert listed(tab)[0] == "runs/live", "what works is at the top"
        with (folder / "metrics.jsonl").open("a") as log:
            log.write('{"step": 20, "epoch": 2.0, "split": "dev", "value": 0.875, "n": 80}\n')
        write_json(folder / "progress.json", {**counts, "done": 100, "seconds": 60.0})
        tab.wait("document.getElementById('rows').innerText.includes('training 50 %, 20 s left')")
        spark = find_row(tab, "runs/live").get_by_role("img").get_attribute("aria-label")
        assert "to 0.875" in spark
        assert page.evaluate("[...document.querySelectorAll('#rows tr')].every(row => row.mark === 1)")
    finally:
        lease.release()
    tab.wait("document.querySelector('#rows tr.running') === null")
    assert "stopped" in find_row(tab, "runs/live").inner_text()
    shutil.rmtree(folder)
    tab.wait("!document.getElementById('rows').innerText.includes('runs/live')")


@NEEDS_BROWSER
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_a_run_is_stopped_and_continued_from_the_page(
    studio_folder: Path, tmp_path: Path, new_tab: Any
) -> None:
    words = ["adapt", str(studio_folder / "models" / "tiny"), str(studio_folder / "data"), "--epochs", "2000"]
    words += ["--eval-every", "40", "--lr", "1e-3", "--out", str(tmp_path / "long"), "--threads", "1"]
    running = subprocess.Popen(
        [sys.executable, "-m", "heedful", *words], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    )
    started: dict[str, subprocess.Popen[bytes]] = {}
    try:
        for served in serve(tmp_path):
            tab = new_tab(served=served)
            page = open_runs(tab)
            started = served.app.state.children.started
            page.get_by_role("button", name="Stop long").click(timeout=90_000)
            page.get_by_text("long: It writes a checkpoint, then it stops.").wait_for()
            assert running.wait(timeout=60) == 75
            before = len(Run(tmp_path / "long").read_metrics())
            page.get_by_role("button", name="Resume long").click(timeout=60_000)
            tab.wait("document.querySelector('#rows tr').className.includes('running')", 120)
            end = time.monotonic() + 120
            while len(Run(tmp_path / "long").read_metrics()) <= before:
                assert time.monotonic() < end
                time.sleep(0.2)
            child = started["long"]
            assert child.poll() is None
            child.terminate()
            assert child.wait(timeout=60) == 75
    finally:
        for process in (running, *started.values()):
            process.kill()


@NEEDS_BROWSER
def test_hostile_names_notes_and_labels_are_shown_as_they_are(made: Served, new_tab: Any) -> None:
    tab = new_tab(served=made)
    hostile = "runs/<img src=x onerror='window.hacked = 9'>"
    page = open_runs(tab, f"#compare=1&select=runs%2Fhostile%2F%2F{quote(hostile, safe='')}")
    page.locator("#compared .plot svg").first.wait_for(timeout=60_000)
    page.wait_for_timeout(200)
    assert page.evaluate("window.hacked") is None
    assert page.locator("main script, main img, main svg[onload]").count() == 0
    assert HOSTILE[0] in page.locator("#rows").inner_text()
    page = tab.open(f"/api/runs/report?name={quote(hostile, safe='')}")
    page.locator("svg.marks").first.wait_for()
    assert page.evaluate("window.hacked") is None


@NEEDS_BROWSER
@pytest.mark.parametrize(("width", "dark"), [(390, True), (1280, False), (2560, False)])
def test_the_list_and_a_comparison_fit_the_window(
    made: Served, new_tab: Callable[..., Any], width: int, dark: bool
) -> None:
    tab = new_tab(width, dark=dark, served=made)
    page = open_runs(tab, "#compare=1&inside=1&select=runs%2Fgood%2F%2Fruns%2Fbad")
    page.locator("#compared .plot svg").nth(1).wait_for(timeout=60_000)
    assert not tab.overflows()


@NEEDS_BROWSER
def test_five_hundred_runs_are_listed_and_stay_quick(tmp_path: Path, new_tab: Any) -> None:
    first = made_runs.write_run(tmp_path / "runs" / "run-0", n=10)
    for i in range(1, 500):
        copy_run(first, tmp_path / "runs" / f"run-{i}")
    for served in serve(tmp_path):
        tab = new_tab(served=served)
        page = open_runs(tab)
        assert len(listed(tab)) == 500
        page.evaluate("document.querySelectorAll('#rows tr').forEach(row => { row.mark = 1; })")
        typed = page.evaluate("""async () => {
            const box = document.getElementById('query');
            const begun = performance.now();
            box.value = 'run-49';
            box.dispatchEvent(new Event('input'));
            while (document.querySelectorAll('#rows tr').length !== 11) await new Promise(requestAnimationFrame);
            return performance.now() - begun;
        }""")
        assert typed < 2000, "generous: the debounce is 120 ms and this machine may be busy"
        page.get_by_label("Filter").fill("")
        tab.wait("document.querySelectorAll('#rows tr').length === 500")
        assert page.evaluate("[...document.querySelectorAll('#rows tr')].every(row => row.mark === 1)")


def test_requests_cannot_leave_the_folder_or_stop_what_nobody_makes(made: Served) -> None:
    from starlette.testclient import TestClient

    headers = {"Authorization": f"Bearer {TOKEN}"}
    client = TestClient(made.app, base_url="http://localhost", headers=headers, raise_server_exceptions=False)
    for name in ("../", "/etc", "runs/../..", "no-such-run"):
        for verb in ("stop", "resume"):
            assert client.post(f"/api/runs/{verb}", json={"name": name}).status_code == 422
    answer = client.post("/api/runs/stop", json={"name": "runs/good"})
    assert answer.json()["error"]["message"] == "runs/good: nobody works on it"
    answer = client.post("/api/runs/resume", json={"name": "runs/good"})
    assert answer.json()["error"]["message"] == "runs/good: has finished"
    elsewhere = {"Sec-Fetch-Site": "cross-site"}
    assert client.get("/api/runs/events", headers=elsewhere).status_code == 403
    assert client.get("/api/runs/report?name=runs/good", headers=elsewhere).status_code == 403
