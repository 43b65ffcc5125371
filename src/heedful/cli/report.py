"""`heedful report`: runs and studies in one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.output import Flag, console, print_json
from heedful.errors import UserError, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

OptionalFile = Annotated[tuple[Path, ...] | None, Parameter(consume_multiple=True)]
"""An option that may be given without a file name; the file is then next to --out."""


def command(
    *folders: Path,
    out: Path = Path("report.html"),
    figures: Path | None = None,
    pdf: OptionalFile = None,
    markdown: OptionalFile = None,
    bundle: Path | None = None,
    theme: str = "default",
    slides: OptionalFile = None,
    json: Flag = False,
) -> None:
    """Report runs and studies in one HTML file that works offline and by e-mail.

    The report starts with a verdict and what asks for caution, followed by
    interactive figures, sortable tables, scores per label, wrong answers with
    the model's confidence, checks, and how to reproduce it. Several runs on one task are compared, with
    intervals and paired tests. Unfinished runs are reported as far as they got.

    Examples:
      heedful report runs/sst2
      heedful report runs/head runs/full --out compared.html --figures figures
      heedful report studies/search --out search.html --pdf --bundle search.zip
      heedful report runs/sst2 --slides

    Parameters
    ----------
    folders
        Folders of runs and studies.
    out
        The HTML file.
    figures
        Folder for all figures as PNG, SVG and PDF.
    pdf
        Also write a PDF, next to --out or to the given file; needs Chromium or a browser based on it.
    markdown
        Also write Markdown, next to --out or to the given file; its pictures are in --figures or next to it.
    bundle
        Also write a zip of the report, figures, predictions, configurations and a script that reruns all.
    theme
        Chart theme: default, contrast, or one of an installed package.
    slides
        Also write a page to project in class, next to --out or to the given file: one figure per screen.
    json
        Print the names of the written files as JSON.
    """
    from heedful.report.outputs import write_report

    pdf_file, folders_after_pdf = split_file("--pdf", pdf, out.with_suffix(".pdf"))
    markdown_file, folders_after_markdown = split_file("--markdown", markdown, out.with_suffix(".md"))
    slides_default = out.with_name(f"{out.stem}-slides.html")
    slides_file, folders_after_slides = split_file("--slides", slides, slides_default)
    sources = [*folders, *folders_after_pdf, *folders_after_markdown, *folders_after_slides]
    report_files = write_report(
        sources,
        out,
        figures=figures,
        pdf=pdf_file,
        markdown=markdown_file,
        bundle=bundle,
        theme=theme,
        slides=slides_file,
    )
    paths = {name: getattr(report_files, name) for name in ("html", "pdf", "markdown", "bundle", "slides")}
    files = {name: str(path) for name, path in paths.items() if path is not None}
    if json:
        images = [str(path) for path in report_files.figures]
        page = report_files.page
        print_json({"title": page.title, "summary": page.summary, **files, "figures": images})
        return
    terminal = console()
    for line in report_files.page.summary:
        terminal.print(one_line(line), markup=False)
    for path in files.values():
        terminal.print(f"wrote {one_line(path)}", markup=False)
    if report_files.figures:
        terminal.print(f"wrote {len(report_files.figures)} figures to {one_line(str(figures))}", markup=False)


def split_file(option: str, paths: Sequence[Path] | None, default: Path) -> tuple[Path | None, list[Path]]:
    """Separate the file of an option that may go without one from the folders that follow the option."""
    if paths is None:
        return None, []
    folders = [path for path in paths if path.is_dir()]
    files = [path for path in paths if path not in folders]
    if len(files) > 1:
        raise UserError(f"{option} {files[0]} {files[1]}: takes one file; give the folders first")
    return (files[0] if files else default), folders
