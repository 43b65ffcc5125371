"""Where a report goes: HTML, figures as files, PDF, Markdown, a bundle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heedful.errors import UserError
from heedful.progress import progress
from heedful.report.build import build, read_all
from heedful.report.bundle import write_bundle
from heedful.report.markdown import markdown
from heedful.report.page import Page
from heedful.report.printing import find_browser, write_pdf
from heedful.report.save import render
from heedful.runs.files import write_bytes, write_text

FORMS = (".png", ".svg", ".pdf")
"""What a figure is written as."""


@dataclass(frozen=True)
class Written:
    """What was written, and what it says."""

    page: Page
    html: Path
    figures: list[Path] = field(default_factory=list)
    pdf: Path | None = None
    markdown: Path | None = None
    bundle: Path | None = None


def report(
    paths: Sequence[str | Path],
    out: str | Path = "report.html",
    *,
    figures: str | Path | None = None,
    pdf: str | Path | None = None,
    markdown: str | Path | None = None,
    bundle: str | Path | None = None,
) -> Written:
    """Report runs and studies in one self-contained HTML file, and in what else is asked for."""
    if not paths:
        raise UserError("heedful report needs at least one folder of a run or a study")
    targets = {
        option: ending_of(option, path, endings)
        for option, path, endings in (
            ("--out", out, (".html", ".htm")),
            ("--pdf", pdf, (".pdf",)),
            ("--markdown", markdown, (".md", ".markdown")),
            ("--bundle", bundle, (".zip",)),
        )
        if path is not None
    }
    if pdf is not None:
        find_browser()
    items = read_all(paths)
    page = build(items)
    drawn = Drawn(page)
    html = page.write(targets["--out"])
    files: list[Path] = []
    folder = Path(figures) if figures is not None else None
    if folder is not None:
        files = [write_bytes(folder / name, drawn.all(FORMS)[name]) for name in drawn.all(FORMS)]
    written_markdown = None
    if (target := targets.get("--markdown")) is not None:
        written_markdown = write_markdown(page, drawn, target, folder)
    written_pdf = None
    if (target := targets.get("--pdf")) is not None:
        pictures = {name: drawn.one(name, ".svg") for name in page.charts}
        written_pdf = write_pdf(page, pictures, target)
    written_bundle = None
    if (target := targets.get("--bundle")) is not None:
        written_bundle = write_bundle(target, page, items, drawn.all(FORMS))
    return Written(page, html, files, written_pdf, written_markdown, written_bundle)


def ending_of(option: str, path: str | Path, endings: Sequence[str]) -> Path:
    """Refuse a file whose name says that it is something else."""
    target = Path(path).expanduser()
    if target.suffix.lower() not in endings:
        raise UserError(f"{option} {target}: ends in {' or '.join(endings)}")
    if target.is_dir():
        raise UserError(f"{option} {target}: is a folder, not a file")
    return target


class Drawn:
    """The figures of a page as files, each drawn once."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.made: dict[tuple[str, str], bytes] = {}

    def one(self, name: str, form: str) -> bytes:
        """Draw one figure."""
        if (name, form) not in self.made:
            self.made[name, form] = render(self.page.charts[name], form)
        return self.made[name, form]

    def all(self, forms: Sequence[str]) -> dict[str, bytes]:
        """Draw every figure in each form, by the name of its file."""
        wanted = [(name, form) for name in self.page.charts for form in forms]
        missing = [pair for pair in wanted if pair not in self.made]
        if missing:
            with progress("drawing (files)", len(missing)) as shown:
                for name, form in missing:
                    self.one(name, form)
                    shown.advance()
        return {f"{name}{form}": self.one(name, form) for name, form in wanted}


def write_markdown(page: Page, drawn: Drawn, target: Path, figures: Path | None) -> Path:
    """Write Markdown with its pictures: those of `--figures`, or a folder of its own beside it."""
    folder = figures if figures is not None else target.with_name(f"{target.stem}-figures")
    if figures is None:
        for name, content in drawn.all((".png",)).items():
            write_bytes(folder / name, content)
    beside = Path(os.path.relpath(folder, target.parent or "."))

    def address(name: str) -> str:
        return "<" + f"{beside.as_posix()}/{name}.png".replace("<", "%3C").replace(">", "%3E") + ">"

    return write_text(target, markdown(page, address))
