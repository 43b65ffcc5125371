"""`heedful report`: what runs and studies found, as one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.output import Json, console, print_json
from heedful.errors import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def report(
    *folders: Path,
    out: Path = Path("report.html"),
    figures: Path | None = None,
    pdf: Path | None = None,
    markdown: Path | None = None,
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
      heedful report studies/search --pdf search.pdf --bundle search.zip

    Parameters
    ----------
    folders
        Folders of runs and studies.
    out
        The HTML file.
    figures
        Folder for each figure as PNG, SVG and PDF.
    pdf
        Also as PDF; needs chromium or a browser of its family.
    markdown
        Also as Markdown; its pictures stand in --figures, or in a folder beside it.
    bundle
        Also a zip of report, figures, predictions, configurations and a reproduce.sh that reruns all.
    json
        Print what was written as JSON.
    """
    from heedful.report.writing import report as work

    written = work(folders, out, figures=figures, pdf=pdf, markdown=markdown, bundle=bundle, judge=judge)
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


def judge(right: Mapping[str, Sequence[Sequence[bool]]], metric: str) -> str:
    """Say which of several arms is best, by paired tests corrected for their number."""
    from heedful.evaluation.paired import compare_all, verdict

    return verdict(compare_all(right), metric)
