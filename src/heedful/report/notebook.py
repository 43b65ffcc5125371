"""How runs, studies and charts look in a notebook: pictures that need no network and can be printed."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape

from heedful.display import render_lines, render_table, render_title
from heedful.report.charts.images import render_chart
from heedful.report.charts.vega import Chart
from heedful.report.facts import RunFacts, StudyFacts, load_run_or_study
from heedful.report.layout import build_page
from heedful.report.run_sections import make_score_table
from heedful.report.sentences.runs import describe_run


def render_picture(chart: Chart, caption: str = "") -> str:
    """Return a chart as a picture: in an `img` element no text of the data can become a script."""
    svg = base64.b64encode(render_chart(chart, ".svg")).decode()
    title = escape(" ".join(chart["title"]["text"]), quote=True)
    picture = f'<img alt="{title}" style="max-width: 100%" src="data:image/svg+xml;base64,{svg}">'
    return f"<div>{picture}{render_lines([caption]) if caption else ''}</div>"


def draw_figures(folder: str) -> Mapping[str, Chart]:
    """Return the figures of the report on a run or a study, by name."""
    return build_page([load_run_or_study(folder)]).charts


def render_folder(folder: str) -> str:
    """Return a run or a study in short: what it found, its scores or tables, and its first figures."""
    facts = load_run_or_study(folder)
    return render_study(facts) if isinstance(facts, StudyFacts) else render_run(facts)


def render_run(run: RunFacts) -> str:
    parts = [render_title(run.title), render_lines(describe_run(run))]
    if run.results is not None and run.results.splits:
        columns, rows = make_score_table(run)
        parts.append(render_table(columns, [[getattr(cell, "text", cell) for cell in row] for row in rows]))
    bad = [check for check in run.checks if check.status in ("failed", "warning")]
    parts += [
        render_lines([check.message], "bad" if check.status == "failed" else "warning") for check in bad
    ]
    charts = build_page([run]).charts
    curves = [name for name in charts if name in (run.metric.replace(" ", "-"), "loss")]
    return "".join([*parts, *(render_picture(charts[name]) for name in curves[:1] or list(charts)[:1])])


def render_study(study: StudyFacts) -> str:
    answer = study.answer
    parts = [answer._repr_html_()]
    charts = build_page([study]).charts
    captions = {figure.name: figure.caption for figure in answer.figures}
    shown: Sequence[str] = [name for name in charts if name in captions][:2]
    return "".join([*parts, *(render_picture(charts[name], captions[name]) for name in shown)])
