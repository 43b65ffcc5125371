"""What the page of runs computes: the comparison of several runs, and reports."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import UserError
from heedful.runs.directory import follow_choice

if TYPE_CHECKING:
    from heedful.report.facts import RunFacts
    from heedful.studio.folder import StudioFolder
    from heedful.studio.model_store import ModelStore

    Report = Callable[[float, str], None]

MOST_COMPARED = 24
MOST_REPORTED = 50


def read_names(params: dict[str, Any], most: int, least: int = 1) -> list[str]:
    names = params.get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise UserError("name the folders of the runs")
    if not least <= len(names) <= most:
        raise UserError(f"select {least} to {most} runs; these are {len(names)}")
    return list(dict.fromkeys(names))


def compare(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return what can be said about several runs, group by group of the same task and metric."""
    from heedful.report.facts import load_run, make_names_unique
    from heedful.report.run_comparison import group_by_task

    names = read_names(params, MOST_COMPARED, 2)
    runs = []
    for done, name in enumerate(names):
        report(done / len(names), f"reading {name}")
        runs.append(load_run(find_run(models.folder, name)))
    report(1.0, "comparing")
    groups = sorted(group_by_task(make_names_unique(runs)), key=len, reverse=True)
    return {"groups": [describe_group(group) for group in groups]}


def find_run(folder: StudioFolder, name: str) -> Path:
    """Return the folder of a run, or of the chosen run of a study, which must be inside as well."""
    chosen = follow_choice(folder.resolve(name))
    return folder.resolve(os.path.relpath(chosen, folder.root))


def describe_group(runs: Sequence[RunFacts]) -> dict[str, Any]:
    from heedful.report import run_comparison, run_figures
    from heedful.report.formats import capitalize
    from heedful.report.run_sections import Columns

    scored = [run for run in runs if run.results is not None]
    with_curves = [run for run in runs if run.metrics]
    charts = [
        run_figures.draw_run_scores(runs) if scored else None,
        run_figures.draw_run_curves(with_curves, "dev") if with_curves else None,
        run_figures.draw_cost(scored) if len(scored) > 1 else None,
    ]
    lines = run_comparison.describe_group(runs)[1] if scored else ["None of these runs has a score yet."]
    if len(runs) == 1:
        lines = [f"{runs[0].name} is on another task, or has another metric, than the others.", *lines]
    columns: Columns = run_comparison.make_comparison_table(runs)
    return {
        "task": runs[0].task_title,
        "metric": capitalize(runs[0].metric),
        "runs": [run.name for run in runs],
        "sentences": lines,
        "charts": [chart for chart in charts if chart is not None],
        "table": {"columns": columns[0], "rows": [[show_cell(cell) for cell in row] for row in columns[1]]},
    }


def show_cell(cell: Any) -> str:
    """Return the text of a cell of a report's table."""
    from heedful.report.formats import format_number, is_number

    if cell is None:
        return ""
    return format_number(cell) if is_number(cell) else str(getattr(cell, "text", cell))


def write_report(params: dict[str, Any], models: ModelStore, report: Report) -> bytes:
    """Return the report on runs and studies as a page of HTML."""
    from heedful.report.facts import load_facts
    from heedful.report.layout import build_page

    names = read_names(params, MOST_REPORTED)
    return build_page(load_facts([models.folder.resolve(name) for name in names])).html().encode()
