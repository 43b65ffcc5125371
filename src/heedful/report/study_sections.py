"""The sections of a study's report: its answer, its runs, its command."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from heedful.errors import UserError, unknown
from heedful.report import charts
from heedful.report.charts import Chart
from heedful.report.charts.vega import add_title_note
from heedful.report.facts import StudyFacts
from heedful.report.page import Finding, Page
from heedful.report.run_comparison import group_by_task, make_comparison_table, sort_best_first
from heedful.report.run_figures import draw_run_curves
from heedful.report.run_sections import Heading, add_run
from heedful.report.sentences.runs import describe_run
from heedful.runs.answers import ANSWER, Figure

CHARTS: dict[str, Callable[..., Chart]] = {
    kind: getattr(charts, kind)
    for kind in ("lines", "bars", "scatter", "heat_map", "small_multiples", "histogram")
}
"""The functions that draw the figures of an answer, by `Figure.kind`."""


def add_study(
    page: Page, study: StudyFacts, add_heading: Heading, prefix: str = "", *, is_page: bool = False
) -> None:
    """Add all sections of a study; the file names of its figures start with `prefix`.

    If the page is about this study alone, its first figure and its notes are at the top.
    """
    add_answer(page, study, add_heading, prefix, is_page=is_page)
    if ended := [outcome for outcome in study.outcomes if outcome.state in ("failed", "pruned")]:
        add_heading("Runs without a result")
        rows = [[o.name, o.state, o.ended.reason if o.ended else None] for o in ended]
        page.table(("run", "state", "reason"), rows)
    add_study_runs(page, study, add_heading, prefix)
    if command := study.answer.command or study.record.command:
        add_heading("How to reproduce it")
        page.code(shlex.join(("heedful", *command)))
        if study.record.options:
            with page.details("Options of the study"):
                page.facts(flatten_options(study.record.options))


def add_answer(
    page: Page, study: StudyFacts, add_heading: Heading, prefix: str, *, is_page: bool = False
) -> None:
    """Add the notes, figures and tables of a study's answer; with a prefix also its summary."""
    answer = study.answer
    findings = []
    if not answer.finished:
        over = sum(outcome.over for outcome in study.outcomes)
        progress = f"The study has not finished: {over} of {len(study.outcomes)} runs have ended."
        findings.append(Finding("warning", "", progress))
    if prefix:
        notes = {note.text for note in answer.notes}
        page.text(*(line for line in answer.summary if line not in notes))
    findings += [
        Finding(note.kind, "", note.text, "note" if note.kind == "plain" else "")
        for note in answer.notes
        if note.text not in answer.summary or prefix
    ]
    page.findings(findings, lead=is_page)
    if answer.tables or len(answer.figures) > is_page:
        add_heading("Findings")
    for number, figure in enumerate(answer.figures):
        where = f"{study.path / ANSWER}: figure {number + 1} ({figure.name})"
        chart = add_title_note(draw_figure(figure, where), study.note)
        page.figure(chart, figure.caption, f"{prefix} {figure.name}", lead=is_page and number == 0)
    for table in answer.tables:
        if any(len(row) != len(table.columns) for row in table.rows):
            columns = f"a table with {len(table.columns)} columns"
            raise UserError(f"{study.path / ANSWER}: {columns} has a row with another number of cells")
        page.table(table.columns, table.rows, table.title)


def add_study_runs(page: Page, study: StudyFacts, add_heading: Heading, prefix: str) -> None:
    """Add the finished runs of a study: compared by task, and the selected or best one in full."""
    runs = study.load_runs()
    if not runs:
        return
    add_heading("Runs")
    for group in (group for group in group_by_task(runs) if len(group) > 1):
        with page.details(f"{len(group)} finished runs"):
            page.table(*make_comparison_table(group))
            curves = draw_run_curves([run for run in group if run.metrics] or group, "dev")
            if curves is not None:
                page.figure(add_title_note(curves, study.note), name=f"{prefix} runs dev")
    first = runs[0] if study.answer.runs else sort_best_first(runs)[0]
    with page.details(f"In full: {first.name}, {first.title}"):
        page.text(*describe_run(first))
        add_run(page, first, page.part, f"{prefix} {first.name}")


def flatten_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a study's options in one level, without those that are not set.

    The names of nested options start with the name of their table, except for those that the runs share.
    """
    flat: dict[str, Any] = {}
    for name, value in options.items():
        if isinstance(value, Mapping):
            prefix = "" if name == "run" else f"{name}: "
            flat |= {f"{prefix}{key}": inner for key, inner in flatten_options(value).items()}
        else:
            flat[name] = value
    return {name.replace("_", " "): value for name, value in flat.items() if value is not None}


def draw_figure(figure: Figure, where: str) -> Chart:
    """Draw a stored figure; raise a `UserError` that names the file if its data or options are wrong."""
    function = CHARTS[figure.kind]
    names = list(inspect.signature(function).parameters)[1:]
    for name in figure.options:
        if name not in names:
            raise UserError(f"{where}: {unknown('option', name, names)}")
    options = {"title": figure.name, **figure.options}
    try:
        if figure.kind == "heat_map" and options.get("notes"):
            options["notes"] = index_notes(options["notes"])
        if figure.kind == "small_multiples" and options.get("notes"):
            options["notes"] = {panel: index_notes(notes) for panel, notes in options["notes"].items()}
        return function(figure.data, **options)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise UserError(f"{where}: its data do not fit a figure of kind {figure.kind} ({error})") from None


def index_notes(notes: Iterable[tuple[int, int, str]]) -> dict[tuple[int, int], str]:
    return {(row, column): note for row, column, note in notes}
