"""The files of a report: Markdown, figures, bundles, PDF."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.report import pdf as report_pdf
from heedful.report.bundle import remove_out
from heedful.report.markdown import escape_markdown, render_markdown
from heedful.report.outputs import write_report
from heedful.report.page import Page
from heedful.report.theme import CONTRAST
from made_runs import HOSTILE, write_run, write_study

SMALL = {"n": 40, "epochs": 2}


def test_figures_come_as_png_svg_and_pdf_under_plain_names(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", n=10, epochs=2, finished=False)
    written = write_report([run], tmp_path / "out" / "report.html", figures=tmp_path / "figures")
    names = {path.name for path in written.figures}
    assert {f"{name}{form}" for name in written.page.charts for form in (".png", ".svg", ".pdf")} == names
    begins = {".png": b"\x89PNG", ".svg": b"<svg", ".pdf": b"%PDF"}
    for path in written.figures:
        assert path.read_bytes().startswith(begins[path.suffix])
        assert re.fullmatch(r"[a-z0-9-]+\.\w+", path.name)


@pytest.mark.parametrize("text", HOSTILE)
def test_text_in_markdown_is_neither_markup_nor_html_nor_a_link(text: str) -> None:
    found = escape_markdown(text)
    assert "<" not in found
    assert not re.search(r"(?<!\\)[`*\[\]|]", found)
    assert "://" not in found
    assert "www." not in found
    assert not re.search(r"&(?!(amp|lt|gt|#\d+);)", found)


def test_plain_words_stay_readable_in_markdown() -> None:
    assert escape_markdown("accuracy 0.91 (95 % interval 0.89 to 0.93), first-token") == (
        "accuracy 0.91 (95 % interval 0.89 to 0.93), first-token"
    )
    assert escape_markdown("- a") == r"\- a"
    assert escape_markdown("1. a") == r"1\. a"


def test_indented_lines_of_a_summary_are_a_list_and_commands_among_them_are_code() -> None:
    summary = [
        "To use it:",
        "  heedful predict a_b",
        "  heedful check a_b",
        "What helps:",
        "  more *labels*",
        ".",
    ]
    page = Page("t", summary=summary)
    assert render_markdown(page, str) == (
        "# t\n\nTo use it:\n\n```\nheedful predict a_b\nheedful check a_b\n```\n\n"
        "What helps:\n\n- more \\*labels\\*\n\n.\n"
    )
    html = page.html()
    assert '<p class="item"><code>heedful check a_b</code></p>' in html
    assert '<p class="item">more *labels*</p>' in html


def test_markdown_has_every_table_whole_and_pictures_beside_it(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", words=HOSTILE[:2], texts=HOSTILE, **SMALL)  # type: ignore[arg-type]
    written = write_report([run], tmp_path / "report.html", markdown=tmp_path / "docs" / "report.md")
    text = (tmp_path / "docs" / "report.md").read_text()
    pictures = re.findall(r"^!\[[^\n]*\]\(<([^>]+)>\)$", text, re.MULTILINE)
    assert len(pictures) == len(written.page.charts)
    assert all((tmp_path / "docs" / picture).is_file() for picture in pictures)
    tables = [part.splitlines() for part in text.split("\n\n") if part.startswith("| ")]
    bars = [[len(re.findall(r"(?<!\\)\|", line)) for line in lines] for lines in tables]
    assert len(tables) >= 5
    assert all(len(set(counts)) == 1 for counts in bars)
    assert "<script" not in text
    assert "<img" not in text


def test_a_bundle_holds_everything_but_models(tmp_path: Path) -> None:
    run = write_run(tmp_path / "my run", **SMALL)  # type: ignore[arg-type]
    (run / "best").mkdir()
    (run / "best" / "model.safetensors").write_bytes(b"large")
    study = write_study(tmp_path / "study", figures=())
    write_report([run, study], tmp_path / "r.html", bundle=tmp_path / "a" / "all.zip")
    with zipfile.ZipFile(tmp_path / "a" / "all.zip") as archive:
        names = set(archive.namelist())
        assert archive.testzip() is None
        mode = archive.getinfo("all/reproduce.sh").external_attr >> 16
    assert {"all/report.html", "all/reproduce.sh", "all/study/answer.json"} < names
    for file in ("config.toml", "results.json", "env.json", "predictions_test.jsonl"):
        assert f"all/my-run/{file}" in names
    assert any(name.startswith("all/figures/") and name.endswith(".svg") for name in names)
    assert not any("safetensors" in name for name in names)
    assert mode & stat.S_IXUSR


def test_the_script_of_a_bundle_passes_hostile_words_on_unharmed(tmp_path: Path) -> None:
    study = write_study(tmp_path / "s$(touch hacked)", "x", figures=(), command=("study", "search", *HOSTILE[1:], "--out", "gone"))  # fmt: skip
    run = write_run(tmp_path / "-r; touch hacked", epochs=1, finished=False)
    write_report([study, run], tmp_path / "r.html", bundle=tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        archive.extractall(tmp_path / "unpacked")
    tools = tmp_path / "tools"
    tools.mkdir()
    fake = f"#!{sys.executable}\nimport json, sys\nprint(json.dumps(sys.argv[1:]))\n"
    (tools / "heedful").write_text(fake)
    (tools / "heedful").chmod(0o755)
    kept = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", str(tmp_path / "unpacked" / "b" / "reproduce.sh")],
        capture_output=True, text=True, check=True, env=kept, cwd=tmp_path,
    )  # fmt: skip
    calls = [json.loads(line) for line in done.stdout.splitlines()]
    assert calls[0] == ["study", "search", *HOSTILE[1:5], *[w.replace("\x00", "") for w in HOSTILE[5:]], "--out", "again/s-touch-hacked"]  # fmt: skip
    assert calls[1] == ["run", "r-touch-hacked/config.toml", "--out", "again/r-touch-hacked"]
    assert calls[2] == [
        "report",
        "again/s-touch-hacked",
        "again/r-touch-hacked",
        "--out",
        "again/report.html",
    ]
    assert not list(tmp_path.rglob("hacked"))


def test_slides_show_the_verdict_first_then_every_figure_once_and_no_closed_part(tmp_path: Path) -> None:
    runs = [write_run(tmp_path / name, seed=i, texts=HOSTILE, words=HOSTILE) for i, name in enumerate("ab")]
    files = write_report(runs[:1], tmp_path / "r.html", slides=tmp_path / "s.html")
    assert files.slides == tmp_path / "s.html"
    slides = files.slides.read_text()
    body, _, scripts = slides.partition("<script")
    assert 0 < body.index("it beats the best baseline") < body.index('data-figure="0"')
    assert re.findall(r'data-figure="(\d+)"', body) == [str(i) for i in range(len(files.page.charts))]
    assert "<img" not in body
    assert scripts.count("<script>") == 2  # after the data: the drawing library and the keys
    assert CONTRAST.light.series[0] in body
    compared = write_report(runs, tmp_path / "r.html", slides=tmp_path / "two.html").slides
    assert compared is not None
    assert compared.read_text().partition("<script")[0].count("data-figure=") == 4
    with pytest.raises(UserError, match=r"--slides .*s\.pdf: must end in \.html or \.htm"):
        write_report(runs[:1], tmp_path / "r.html", slides=tmp_path / "s.pdf")


def test_a_command_forgets_where_it_was_written() -> None:
    words = ["study", "--out", "x", "--lr", "1", "--out=y", "--overwrite", "z"]
    assert remove_out(words) == ["study", "--lr", "1", "z"]


@pytest.mark.parametrize(
    ("option", "name", "told"),
    [
        ("out", "config.toml", "--out .*config.toml: must end in .html"),
        ("pdf", "a.html", "--pdf .*a.html: must end in .pdf"),
        ("markdown", "a.txt", "--markdown .*a.txt: must end in .md"),
        ("bundle", "a.tar", "--bundle .*a.tar: must end in .zip"),
    ],
)
def test_a_file_of_another_kind_is_never_written_over(
    tmp_path: Path, option: str, name: str, told: str
) -> None:
    run = write_run(tmp_path / "run", n=10, epochs=1)
    with pytest.raises(UserError, match=told):
        write_report([run], **{"out": tmp_path / "r.html", option: tmp_path / name})  # type: ignore[arg-type]
    assert {p.name for p in tmp_path.iterdir()} == {"run"}


def test_without_a_browser_pdf_says_what_is_missing_and_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_pdf.shutil, "which", lambda _: None)
    with pytest.raises(UserError, match=r"--pdf needs a browser .* chromium, .* install chromium"):
        write_report([write_run(tmp_path / "run", n=10)], tmp_path / "r.html", pdf=tmp_path / "r.pdf")
    assert not (tmp_path / "r.html").exists()


def test_a_browser_that_fails_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\necho 'no display' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(report_pdf.shutil, "which", lambda _: str(broken))
    with pytest.raises(UserError, match=r"printed nothing \(no display\)"):
        write_report([write_run(tmp_path / "run", n=10)], tmp_path / "r.html", pdf=tmp_path / "r.pdf")
