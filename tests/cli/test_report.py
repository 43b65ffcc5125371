"""`heedful report`, as it is typed."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from heedful.report.theme import CONTRAST, DEFAULT
from made_runs import HOSTILE, write_run, write_study

Command = Callable[..., Any]


def test_the_command_writes_the_page_and_prints_its_summary(heedful: Command, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", words=HOSTILE[4:6], texts=HOSTILE)
    done = heedful("report", run, "--out", tmp_path / "report.html")
    assert done.status == 0, done.err
    first, second = done.out.splitlines()[:2]
    assert re.fullmatch(
        r"The accuracy on test is 0\.\d{3} \(95 % interval .*\): it beats the best baseline, .*", first
    )
    assert second.startswith("On test the accuracy is 0.")
    assert f"wrote {tmp_path / 'report.html'}" in done.out
    assert "\x1b" not in done.out
    assert (tmp_path / "report.html").read_text().startswith("<!DOCTYPE html>")


def test_two_runs_are_told_apart_by_a_paired_test(heedful: Command, tmp_path: Path) -> None:
    runs = [
        write_run(tmp_path / name, method=name, right=right, n=300)
        for name, right in (("good", 0.95), ("bad", 0.55))
    ]
    done = heedful("report", *runs, "--out", tmp_path / "r.html", "--slides", "--json")
    found = json.loads(done.out)
    assert found["title"] == "2 runs on sentences"
    assert found["slides"] == str(tmp_path / "r-slides.html")
    assert "good is best on these examples" in Path(found["slides"]).read_text().partition("<script")[0]
    assert any(
        line.startswith(
            "On test: good is best on these examples: its accuracy, 0.957, is higher than that of bad"
        )
        for line in found["summary"]
    )
    assert found["html"] == str(tmp_path / "r.html")
    assert found["figures"] == []


def test_the_theme_colors_the_page_and_its_figures(heedful: Command, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", n=10, epochs=2, finished=False)
    arguments = ("report", run, "--out", tmp_path / "r.html", "--figures", tmp_path / "figures")
    done = heedful(*arguments, "--theme", "contrast")
    assert done.status == 0, done.err
    page, figure = (tmp_path / "r.html").read_text(), (tmp_path / "figures" / "loss.svg").read_text()
    for color in (CONTRAST.light.ink, CONTRAST.light.series[0]):
        assert color in page
        assert color in figure
    assert CONTRAST.dark.series[0] in page
    assert DEFAULT.light.series[0] not in page + figure
    done = heedful(*arguments, "--theme", "contrst")
    assert done.status == 2
    assert 'unknown theme "contrst"; did you mean "contrast"' in done.err


def test_mistakes_are_one_line(heedful: Command, tmp_path: Path) -> None:
    for arguments, told in (
        ((), "needs at least one folder"),
        ((tmp_path / "none",), "there is no such folder"),
        ((tmp_path,), "is neither a run nor a study"),
        ((write_run(tmp_path / "run"), "--out", tmp_path / "x.pdf"), "must end in .html"),
    ):
        done = heedful("report", *arguments)
        assert (done.status, done.out) == (2, "")
        assert told in done.err
        assert done.err.count("\n") == 1


def test_markdown_without_a_name_stands_beside_the_page(heedful: Command, tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a"), write_run(tmp_path / "b", seed=1)]
    page = tmp_path / "both.html"
    for words in ((*runs, "--out", page, "--markdown"), ("--out", page, "--markdown", *runs)):
        done = heedful("report", *words)
        assert done.status == 0, done.err
        assert f"wrote {tmp_path / 'both.md'}" in done.out.replace("\n", "")
        assert "# " in (tmp_path / "both.md").read_text()
        (tmp_path / "both.md").unlink()
    done = heedful("report", *runs, "--out", page, "--markdown", tmp_path / "x.md", tmp_path / "y.md")
    assert (done.status, done.err.count("\n")) == (2, 1)
    assert "takes one file" in done.err


def test_a_damaged_run_names_the_file(heedful: Command, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    (run / "results.json").write_text('{"task": 3}')
    done = heedful("report", run, "--out", tmp_path / "r.html")
    assert done.status == 2
    assert 'results.json: field "task" is a whole number; it must be text' in done.err
    assert not (tmp_path / "r.html").exists()


def test_the_command_never_imports_torch(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / "a"), write_run(tmp_path / "b", seed=1), write_study(tmp_path / "s")]
    script = (
        "import sys; from heedful.cli import main; status = main(sys.argv[1:]); "
        "sys.exit(status or ('torch imported' if 'torch' in sys.modules else 0))"
    )
    words = [
        "report",
        *map(str, runs),
        "--out",
        str(tmp_path / "r.html"),
        "--markdown",
        str(tmp_path / "r.md"),
    ]
    done = subprocess.run([sys.executable, "-c", script, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
