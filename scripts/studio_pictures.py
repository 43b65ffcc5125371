"""Draws the pictures of docs/studio.md: small runs on generated letters, shown by the studio in Chromium.

    python scripts/studio_pictures.py               make runs in a temporary folder, and the pictures
    python scripts/studio_pictures.py --folder DIR  keep the runs, or take those that are there

Needs the extras `test` and `minilm`, and Chromium.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from playwright.sync_api import Page, sync_playwright

from heedful.demo.letters import write_letters

IMAGES = Path(__file__).parents[1] / "docs" / "images"
LABELS = 240
LARGEST = 250_000
"""Bytes of a picture."""
PATIENCE = 300_000
"""Milliseconds that a busy machine may take for a page."""
SIZE: Any = {"width": 1280, "height": 860}
HEEDFUL = (sys.executable, "-m", "heedful")
RUNS: dict[str, tuple[str, ...]] = {
    "majority": ("adapt", "majority", "letters", "--score-test"),
    "words": ("adapt", "tfidf", "letters", "--score-test"),
    "minilm-head": ("adapt", "minilm", "letters", "--method", "head", "--score-test"),
    "minilm-head-60": (
        "adapt",
        "minilm",
        "letters",
        "--method",
        "head",
        "--train-rows",
        "60",
        "--score-test",
    ),
    "writer": ("pretrain", "gpt-nano", "letters.txt", "--epochs", "40", "--block", "64"),
}
"""What is run in the folder, by the name of the run."""


def make_runs(folder: Path) -> None:
    """Make the runs that are not there yet."""
    write_letters(folder / "letters", LABELS)
    with (folder / "letters" / "train.csv").open(encoding="utf-8", newline="") as file:
        texts = [row["text"] for row in csv.DictReader(file)]
    (folder / "letters.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
    for name, words in RUNS.items():
        if not (folder / "runs" / name).is_dir():
            command = (*HEEDFUL, *words, "--out", f"runs/{name}")
            subprocess.run(command, cwd=folder, check=True)


@contextmanager
def serve(folder: Path) -> Iterator[str]:
    """Serve the folder; yields the link."""
    command = (*HEEDFUL, "ui", str(folder), "--port", "0", "--no-open", "--json")
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as studio:
        assert studio.stdout is not None
        text = ""
        while not text.rstrip().endswith("}"):
            line = studio.stdout.readline()
            if not line:
                raise SystemExit("heedful ui has ended")
            text += line
        try:
            yield json.loads(text)["link"]
        finally:
            studio.terminate()


def show_runs(page: Page, base: str) -> None:
    page.goto(f"{base}/runs")
    for name in ("words", "minilm-head"):
        page.get_by_role("checkbox", name=re.compile(f"Select .*{name}$")).check(timeout=60_000)
    page.get_by_role("button", name="Compare", exact=True).click()
    page.locator("#compared svg").first.wait_for(timeout=PATIENCE)
    page.wait_for_timeout(1000)


def show_try_it(page: Page, base: str) -> None:
    text = "Sir, the match on Sunday was a disgrace: the referee saw nothing and our striker was sent off."
    page.goto(f"{base}/try-it#model=runs%2Fminilm-head&other=runs%2Fwords&text={quote(text)}")
    page.locator("#words .verdict, #words .shaded").first.wait_for(timeout=PATIENCE)
    page.locator("#other-answer .headline").wait_for(timeout=PATIENCE)
    page.wait_for_timeout(1500)


def show_lab(page: Page, base: str) -> None:
    page.goto(f"{base}/lab#topic=copy&query=2.4,0.9")
    page.locator("#finding").wait_for(timeout=PATIENCE)
    page.evaluate("document.querySelector('.topic:not([hidden]) .question').scrollIntoView()")
    page.wait_for_timeout(500)


PICTURES = {"studio-runs": show_runs, "studio-try-it": show_try_it, "studio-lab": show_lab}


def draw(folder: Path) -> None:
    """Photograph the pages."""
    with serve(folder) as link, sync_playwright() as playwright:
        flags = ["--no-sandbox", "--disable-gpu"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=flags)
        page = browser.new_page(viewport=SIZE)
        page.goto(link)
        base = link.partition("/?")[0]
        for name, show in PICTURES.items():
            page.goto("about:blank")
            show(page, base)
            target = IMAGES / f"{name}.png"
            page.screenshot(path=target)
            size = target.stat().st_size
            print(f"{target}: {size:,} bytes")
            if size > LARGEST:
                raise SystemExit(f"{target} is larger than {LARGEST:,} bytes")
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the pictures of docs/studio.md.")
    parser.add_argument("--folder", type=Path, help="where the runs are, or will be")
    folder = parser.parse_args().folder
    if folder is not None:
        make_runs(folder)
        draw(folder.resolve())
        return
    with tempfile.TemporaryDirectory() as temporary:
        make_runs(Path(temporary))
        draw(Path(temporary).resolve())


if __name__ == "__main__":
    main()
