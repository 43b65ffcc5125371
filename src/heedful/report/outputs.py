"""The files of a report: HTML, figures, PDF, Markdown, a bundle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heedful.errors import UserError
from heedful.paths import expand_path
from heedful.progress import progress
from heedful.report.bundle import write_bundle
from heedful.report.charts.images import render_chart
from heedful.report.facts import load_facts
from heedful.report.layout import build_page
from heedful.report.markdown import render_markdown
from heedful.report.page import Page
from heedful.report.pdf import find_browser, write_pdf
from heedful.report.slides import render_slides
from heedful.report.theme import find_theme
from heedful.runs.files import write_bytes, write_text

IMAGE_EXTENSIONS = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class ReportFiles:
    page: Page
    html: Path
    figures: list[Path] = field(default_factory=list)
    pdf: Path | None = None
    markdown: Path | None = None
    bundle: Path | None = None
    slides: Path | None = None


def write_report(
    folders: Sequence[str | Path],
    out: str | Path = "report.html",
    *,
    figures: str | Path | None = None,
    pdf: str | Path | None = None,
    markdown: str | Path | None = None,
    bundle: str | Path | None = None,
    theme: str = "default",
    slides: str | Path | None = None,
) -> ReportFiles:
    """Report the runs and studies in `folders` in one self-contained HTML file and in other formats.

    `figures` is a folder for PNG, SVG and PDF files; `pdf` needs a browser of the Chromium family; the
    pictures of `markdown` are those in `figures`, or in a folder next to it; `bundle` is a zip file with
    everything that the report was made from; `slides` is an HTML file to project, with one figure per screen.
    """
    if not folders:
        raise UserError("heedful report needs at least one folder of a run or a study")
    html_file = check_target("--out", out, (".html", ".htm"))
    pdf_file = None if pdf is None else check_target("--pdf", pdf, (".pdf",))
    endings = (".md", ".markdown")
    markdown_file = None if markdown is None else check_target("--markdown", markdown, endings)
    slides_file = None if slides is None else check_target("--slides", slides, (".html", ".htm"))
    bundle_file = None if bundle is None else check_target("--bundle", bundle, (".zip",))
    if pdf_file is not None:
        find_browser()
    chosen_theme = find_theme(theme)
    facts = load_facts(folders)
    page = build_page(facts)
    page.theme = chosen_theme
    images = Images(page)
    page.write(html_file)
    if slides_file is not None:
        write_bytes(slides_file, render_slides(page).encode())
    figure_files: list[Path] = []
    figure_folder = Path(figures) if figures is not None else None
    if figure_folder is not None:
        contents = images.render_all(IMAGE_EXTENSIONS)
        figure_files = [write_bytes(figure_folder / name, content) for name, content in contents.items()]
    if markdown_file is not None:
        write_markdown(page, images, markdown_file, figure_folder)
    if pdf_file is not None:
        write_pdf(page, {name: images.render(name, ".svg") for name in page.charts}, pdf_file)
    if bundle_file is not None:
        write_bundle(bundle_file, page, facts, images.render_all(IMAGE_EXTENSIONS))
    return ReportFiles(page, html_file, figure_files, pdf_file, markdown_file, bundle_file, slides_file)


def check_target(option: str, path: str | Path, extensions: Sequence[str]) -> Path:
    target = expand_path(path)
    if target.suffix.lower() not in extensions:
        raise UserError(f"{option} {target}: must end in {' or '.join(extensions)}")
    if target.is_dir():
        raise UserError(f"{option} {target}: is a folder, not a file")
    return target


class Images:
    """The figures of a page as image files, each rendered once."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.contents: dict[tuple[str, str], bytes] = {}

    def render(self, name: str, extension: str) -> bytes:
        if (name, extension) not in self.contents:
            chart = self.page.charts[name]
            self.contents[name, extension] = render_chart(chart, extension, theme=self.page.theme)
        return self.contents[name, extension]

    def render_all(self, extensions: Sequence[str]) -> dict[str, bytes]:
        """Render every figure with each extension; return the contents by file name."""
        pairs = [(name, extension) for name in self.page.charts for extension in extensions]
        missing = [pair for pair in pairs if pair not in self.contents]
        if missing:
            with progress("drawing (files)", len(missing)) as bar:
                for name, extension in missing:
                    self.render(name, extension)
                    bar.advance()
        return {f"{name}{extension}": self.render(name, extension) for name, extension in pairs}


def write_markdown(page: Page, images: Images, target: Path, figures: Path | None) -> Path:
    """Write Markdown with pictures, those in `figures` or in a new folder next to the file."""
    folder = figures if figures is not None else target.with_name(f"{target.stem}-figures")
    if figures is None:
        for name, content in images.render_all((".png",)).items():
            write_bytes(folder / name, content)
    relative = Path(os.path.relpath(folder, target.parent or "."))

    def address(name: str) -> str:
        return "<" + f"{relative.as_posix()}/{name}.png".replace("<", "%3C").replace(">", "%3E") + ">"

    return write_text(target, render_markdown(page, address))
