"""Measure how quick the pages of `heedful ui` are in a browser: Debian's Chromium, without a window.

    python -m benchmarks.studio                      all cases
    python -m benchmarks.studio runs live --runs 500 --live 20 --seconds 20

first-page    from the command until the page Runs shows an empty folder, and until a page is answered
runs          until a list of --runs finished runs is whole: the first page of a studio, and a second one
live          --live of these runs write their progress twice per second: the time until the page shows it,
              the processor time of the studio, and the longest time in which the page answers no click
attention     processor time of a change of the page Attention, at 128 and at 512 tokens (`studio_attention`)

The studio is a process of its own. Runs are written with five evaluations each, and not trained.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from benchmarks import studio_attention
from benchmarks.machine import OFFLINE, refuse_busy
from heedful.runs.directory import Run
from heedful.runs.files import write_json
from heedful.runs.leases import Lease
from heedful.runs.processes import process_name
from heedful.runs.schemas import Check, Checks, Metrics, Results, SplitResult

FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
TOKEN = "token-of-the-benchmark"
WRITES_PER_SECOND = 2
Case = Callable[["Browser", argparse.Namespace], list[dict[str, Any]]]


@dataclass
class Studio:
    """A studio that answers, in a process of its own."""

    url: str
    process: subprocess.Popen[bytes]
    started: float
    """When the command was given, by `time.monotonic`."""


class Browser:
    """Chromium, and pages in it."""

    def __init__(self) -> None:
        from playwright.sync_api import sync_playwright

        path = shutil.which("chromium")
        if path is None:
            sys.exit("this benchmark needs Debian's chromium: apt-get install chromium")
        self.playwright = sync_playwright().start()
        self.browser = self.playwright.chromium.launch(executable_path=path, args=FLAGS)

    def open(self, studio: Studio, path: str) -> Any:
        page = self.browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        page.goto(f"{studio.url}?token={TOKEN}")
        if path:
            page.goto("about:blank")
        return page

    def close(self) -> None:
        self.browser.close()
        self.playwright.stop()


@contextmanager
def serve(folder: Path) -> Iterator[Studio]:
    """Start a studio for a folder, and end it."""
    started = time.monotonic()
    command = [sys.executable, "-m", "heedful", "ui", str(folder), "--port", "0", "--no-open"]
    environment = os.environ | OFFLINE | {"HEEDFUL_TOKEN": TOKEN, "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)
    assert process.stdout is not None
    try:
        line = process.stdout.readline().decode()
        address = re.search(r"http://[^?\s]+", line)
        assert address is not None, line
        yield Studio(address[0], process, started)
    finally:
        process.terminate()
        process.wait(20)
        process.stdout.close()


def measure_first_page(browser: Browser, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Time the start of a studio, and its first page."""
    answered, shown = [], []
    for _ in range(args.turns):
        with tempfile.TemporaryDirectory() as folder, serve(Path(folder)) as studio:
            answered.append(time.monotonic() - studio.started)
            page = browser.open(studio, "")
            page.wait_for_selector("#empty:not([hidden])")
            shown.append(time.monotonic() - studio.started)
            page.context.close()
    return [
        {"what": "the command answers requests", "seconds": median(answered)},
        {"what": "its first page is shown", "seconds": median(shown)},
    ]


def measure_runs(browser: Browser, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Time until all runs are listed, by a studio that has not seen them, and by one that has."""
    times: dict[str, list[float]] = {"first": [], "second": []}
    with tempfile.TemporaryDirectory() as name:
        make_runs(Path(name), args.runs)
        for _ in range(args.turns):
            with serve(Path(name)) as studio:
                for which in times.values():
                    page = browser.open(studio, "/runs")
                    begun = time.monotonic()
                    page.goto(f"{studio.url}runs")
                    wait_for_rows(page, args.runs)
                    which.append(time.monotonic() - begun)
                    if which is times["first"]:
                        page.context.close()
                filtered = time_filter(page, args.runs)
                page.context.close()
    return [
        {"what": f"{args.runs} runs are listed by a new studio", "seconds": median(times["first"])},
        {"what": f"{args.runs} runs are listed again", "seconds": median(times["second"])},
        {"what": "the list follows a word in the filter (120 ms of it are a pause)", "seconds": filtered},
    ]


def wait_for_rows(page: Any, count: int) -> None:
    page.evaluate(
        """async count => {
            const listed = () => document.querySelectorAll("#rows tr").length;
            while (listed() !== count) await new Promise(requestAnimationFrame);
        }""",
        count,
    )


def time_filter(page: Any, runs: int) -> float:
    milliseconds: float = page.evaluate(
        """async word => {
            const box = document.getElementById("query"), begun = performance.now();
            const count = () => document.querySelectorAll("#rows tr").length;
            const before = count();
            box.value = word;
            box.dispatchEvent(new Event("input"));
            while (count() === before) await new Promise(requestAnimationFrame);
            return performance.now() - begun;
        }""",
        f"run-{runs - 1}",
    )
    return milliseconds / 1000


def measure_live(browser: Browser, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Time how long what runs write takes to the page, while all others are listed, too."""
    with tempfile.TemporaryDirectory() as name:
        runs = make_runs(Path(name), args.runs)[: args.live]
        ended = threading.Event()
        for run in runs:
            (run / "results.json").unlink()
            lease = Lease.claim(run / "checkpoints" / ".lease", process_name(os.getpid()), 3600)
            assert lease is not None
        writer = threading.Thread(target=write_progress, args=(runs, ended))
        with serve(Path(name)) as studio:
            page = browser.open(studio, "/runs")
            page.goto(f"{studio.url}runs")
            wait_for_rows(page, args.runs)
            writer.start()
            page.wait_for_timeout(3000)
            used = psutil.Process(studio.process.pid).cpu_times()
            page.evaluate(WATCH)
            page.wait_for_timeout(1000 * args.seconds)
            seen = page.evaluate("window.seen")
            after = psutil.Process(studio.process.pid).cpu_times()
            ended.set()
            writer.join()
            page.context.close()
    delays = sorted(seen["delays"])
    share = (after.user + after.system - used.user - used.system) / args.seconds
    if not delays:
        sys.exit("the page has shown no progress")
    return [
        {
            "what": f"{args.live} of {args.runs} runs live: until the page shows a change",
            "seconds": median(delays),
        },
        {"what": "of every twentieth change, longer than", "seconds": delays[int(0.95 * len(delays))]},
        {"what": "longest time in which the page answers nothing", "seconds": seen["longest"] / 1000},
        {"what": "share of one core that the studio uses", "share": share},
    ]


WATCH = """() => {
    // A note is the time at which its progress was written.
    const seen = window.seen = { delays: [], longest: 0 };
    const notes = new Map();
    const look = (records) => {
        for (const { target } of records) {
            const cell = (target.nodeType === 1 ? target : target.parentElement)?.closest("td.state");
            const note = cell?.querySelector("[title]")?.title;
            if (!note || notes.get(cell) === note) continue;
            notes.set(cell, note);
            seen.delays.push(Date.now() / 1000 - Number(note));
        }
    };
    new MutationObserver(look).observe(document.getElementById("rows"), { childList: true, subtree: true });
    let last = performance.now();
    const beat = () => {
        const now = performance.now();
        seen.longest = Math.max(seen.longest, now - last);
        last = now;
        setTimeout(beat, 0);
    };
    beat();
}"""


def make_runs(root: Path, count: int) -> list[Path]:
    """Write runs that look like trained ones."""
    rng = random.Random(0)
    runs = []
    for i in range(count):
        run = Run.create(root / f"run-{i}")
        options = {"task": f"task-{i % 7}.csv", "model": "minilm", "method": ("full", "head", "lora")[i % 3]}
        run.write_config({"command": "adapt", "adapt": options | {"seed": i}})
        (run.path / "checkpoints").mkdir()
        value = rng.uniform(0.6, 0.95)
        with run.metrics_log() as log:
            for epoch in range(1, 6):
                score = value - 0.2 / epoch
                log.append(Metrics(10 * epoch, float(epoch), "train", 1 / epoch, score + 0.02, 800))
                log.append(Metrics(10 * epoch, float(epoch), "dev", 1 / epoch, score, 200))
        found = Check("dev_falls_while_train_rises", "warning" if i % 5 == 0 else "passed", "Dev got worse.")
        run.write_checks(Checks((found,)))
        split = SplitResult("accuracy", value, 200, (value - 0.05, value + 0.04))
        facts: dict[str, Any] = {"task": options["task"], "model": "minilm", "method": options["method"]}
        run.write_results(
            Results(
                **facts, head="linear", seed=i, splits={"dev": split}, trainable_parameters=770,
                total_parameters=22_713_986, seconds=rng.uniform(20, 900),
            )
        )  # fmt: skip
        runs.append(run.path)
    return runs


def write_progress(runs: list[Path], ended: threading.Event) -> None:
    """Write how far each run is, again and again, with the time of writing as its note."""
    done = 0
    while not ended.wait(1 / WRITES_PER_SECOND):
        done += 1
        for run in runs:
            note = f"{time.time():.3f}"
            counts = {"label": "training (steps)", "done": done, "total": 100_000, "seconds": done / 2}
            write_json(run / "progress.json", {**counts, "note": note, "labels": []})


def measure_attention(browser: Browser, args: argparse.Namespace) -> list[dict[str, Any]]:
    """Measure what a change of the page Attention computes; no browser is needed for that."""
    return studio_attention.measure_changes()


CASES: dict[str, Case] = {
    "first-page": measure_first_page,
    "runs": measure_runs,
    "live": measure_live,
    "attention": measure_attention,
}
"""Every case measures one thing that a person does, and returns rows of `what`, and `seconds` or `share`."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("cases", nargs="*", help=f"cases to run (default: all): {', '.join(CASES)}")
    parser.add_argument("--runs", type=int, default=500, help="number of runs in the folder")
    parser.add_argument("--live", type=int, default=20, help="number of these that are at work")
    parser.add_argument("--seconds", type=int, default=20, help="how long the live runs are watched")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--force", action="store_true", help="measure even if the machine is busy")
    parser.add_argument("--out", type=Path, help="also write the numbers to this JSON file")
    args = parser.parse_args()
    for name in args.cases:
        if name not in CASES:
            parser.error(f"there is no case {name}; there are {', '.join(CASES)}")
    refuse_busy(args.force)
    browser, measured = Browser(), {}
    try:
        for name in args.cases or CASES:
            measured[name] = CASES[name](browser, args)
            for row in measured[name]:
                number = f"{row['seconds']:8.3f} s" if "seconds" in row else f"{row['share']:8.1%}"
                print(f"{name:12}{number:12}  {row['what']}", flush=True)
    finally:
        browser.close()
    if args.out:
        args.out.write_text(json.dumps({"turns": args.turns, "cases": measured}, indent=2) + "\n", "utf-8")


if __name__ == "__main__":
    main()
