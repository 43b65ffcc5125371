"""`heedful report`: what runs and studies found, as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.output import Json, console, print_json
from heedful.errors import UserError, one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

Beside = Annotated[tuple[Path, ...] | None, Parameter(consume_multiple=True)]
"""A file that may go without a name: it then stands beside --out."""


def report(
    *folders: Path,
    out: Path = Path("report.html"),
    figures: Path | None = None,
    pdf: Beside = None,
    markdown: Beside = None,
    bundle: Path | None = None,
    json: Json = False,
) -> None:
    """Report runs and studies in one HTML file that works offline and by e-mail.

    Words first, then interactive figures, tables that sort, scores of each
    label, checks, wrong answers with the model's confidence, configuration,
    environment, and the command that makes it again. Several runs on one task
    are compared, with intervals and paired tests. What has not finished is
    reported as far as it got.

    Examples:
      heedful report runs/sst2
      heedful report runs/head runs/full --out compared.html --figures figures
      heedful report studies/search --out search.html --pdf --bundle search.zip

    Parameters
    ----------
    folders
        Folders of runs and studies.
    out
        The HTML file.
    figures
        Folder for each figure as PNG, SVG and PDF.
    pdf
        Also as PDF, beside --out or in a file that is named; needs chromium or a browser of its family.
    markdown
        Also as Markdown, beside --out or in a file that is named; pictures in --figures or a folder there.
    bundle
        Also a zip of report, figures, predictions, configurations and a reproduce.sh that reruns all.
    json
        Print what was written as JSON.
    """
    from heedful.report.writing import report as work

    pdf_file, after_pdf = beside("--pdf", pdf, out.with_suffix(".pdf"))
    markdown_file, after_markdown = beside("--markdown", markdown, out.with_suffix(".md"))
    written = work(
        [*folders, *after_pdf, *after_markdown],
        out,
        figures=figures,
        pdf=pdf_file,
        markdown=markdown_file,
        bundle=bundle,
    )
    files = {
        "html": written.html, "pdf": written.pdf, "markdown": written.markdown, "bundle": written.bundle,
    }  # fmt: skip
    made = {name: str(path) for name, path in files.items() if path is not None}
    if json:
        drawn = [str(path) for path in written.figures]
        page = written.page
        print_json({"title": page.title, "summary": page.summary, **made, "figures": drawn})
        return
    show = console()
    for line in written.page.summary:
        show.print(one_line(line), markup=False)
    for path in made.values():
        show.print(f"wrote {one_line(path)}", markup=False)
    if written.figures:
        show.print(f"wrote {len(written.figures)} figures to {one_line(str(figures))}", markup=False)


def beside(option: str, given: Sequence[Path] | None, usual: Path) -> tuple[Path | None, list[Path]]:
    """Tell the file of an option that may go without a name from folders that follow the option."""
    if given is None:
        return None, []
    folders = [path for path in given if path.is_dir()]
    named = [path for path in given if path not in folders]
    if len(named) > 1:
        raise UserError(f"{option} {named[0]} {named[1]}: names one file; folders come before it")
    return (named[0] if named else usual), folders
