"""The report of runs and studies: one page from what their folders hold."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heedful.errors import UserError, unknown
from heedful.report import charts, figures
from heedful.report.page import Kind, Page
from heedful.report.parts import Chart, noted
from heedful.report.reading import SHARES, RunFacts, StudyFacts, named_apart, read_any
from heedful.report.sections import add_run, comparison_table, differing
from heedful.report.sentences.comparisons import describe_comparisons
from heedful.report.sentences.runs import run_summary, several_summary
from heedful.runs.answers import ANSWER, Figure
from heedful.statistics.comparison import compare_all

RUNS_IN_FULL = 12
"""Of more runs than this a page holds the comparison, and in full only the best."""


def build(items: Sequence[RunFacts | StudyFacts]) -> Page:
    """Make the page of runs and studies."""
    runs = named_apart(unique([item for item in items if isinstance(item, RunFacts)]))
    studies = [item for item in items if isinstance(item, StudyFacts)]
    if len(runs) + len(studies) == 1:
        return run_page(runs[0]) if runs else study_page(studies[0])
    if not studies:
        return runs_page(runs)
    counted = [
        counts("study", "studies", len(studies)),
        *([counts("run", "runs", len(runs))] if runs else []),
    ]
    page = Page(" and ".join(counted))
    for study in studies:
        asked = study.title if study.title.endswith("?") else f"{study.title}:"
        page.summary += [f"{asked} {line}" for line in study.answer.summary[:1]]
        page.section(study.title)
        add_study(page, study, page.part, study.name)
    if runs:
        page.summary += told_of(runs)
        page.section("Runs")
        add_runs(page, runs, page.part)
    return page


def counts(one: str, many: str, n: int) -> str:
    """Write how many there are."""
    return f"{n} {one if n == 1 else many}"


def read_all(paths: Sequence[str | Path]) -> list[RunFacts | StudyFacts]:
    """Read what is to be reported; the first that is neither a run nor a study is named."""
    return [read_any(path) for path in paths]


def unique(runs: Sequence[RunFacts]) -> list[RunFacts]:
    """Keep one of each folder."""
    return list({run.path.resolve(): run for run in runs}.values())


def run_page(run: RunFacts) -> Page:
    """Make the page of one run."""
    page = Page(run.title, summary=run_summary(run))
    add_run(page, run, page.section)
    return page


def runs_page(runs: Sequence[RunFacts]) -> Page:
    """Make the page of several runs."""
    kinds = alike(runs)
    titles = {kind[0].title.partition(" on ")[2].partition(",")[0] for kind in kinds}
    on = f" on {next(iter(titles))}" if len(titles) == 1 else ""
    page = Page(f"{len(runs)} runs{on}")
    page.summary += told_of(runs)
    add_runs(page, runs, page.section)
    return page


def told_of(runs: Sequence[RunFacts]) -> list[str]:
    """Say of each task's runs which is best."""
    return [line for kind in alike(runs) for line in several_summary(kind, verdict(kind))]


def alike(runs: Sequence[RunFacts]) -> list[list[RunFacts]]:
    """Group the runs whose scores can be compared: the same task and metric."""
    groups: dict[tuple[str, str], list[RunFacts]] = {}
    for run in runs:
        named = run.options.get("task") or run.options.get("corpus")
        task = str(named or (run.results.task if run.results else ""))
        groups.setdefault((task, run.metric), []).append(run)
    return list(groups.values())


def verdict(runs: Sequence[RunFacts]) -> str | None:
    """Say which of several runs on the same examples is best, where each example is right or wrong."""
    answered = [run for run in runs if run.predictions and run.metric in SHARES]
    if len(answered) < 2:
        return None
    asked = {tuple((p.id, p.label, p.text) for p in run.predictions) for run in answered}
    if len(asked) != 1 or len(answered[0].predictions) < 2:
        return None
    metric, split = figures.metric_name(runs[0].metric), answered[0].scored
    grouped = arms(answered)
    if len(grouped) == 1:
        return seeds_sentence(answered, metric)
    right = {
        name: [[figures.right(p) for p in run.predictions] for run in arm] for name, arm in grouped.items()
    }
    return f"On {split}: {describe_comparisons(compare_all(right), metric)}"


def arms(runs: Sequence[RunFacts]) -> dict[str, list[RunFacts]]:
    """Put runs together that differ only in their seed; an arm of several is named by its settings."""
    groups: dict[str, list[RunFacts]] = {}
    for run in runs:
        same = {k: v for k, v in run.options.items() if k not in ("seed", "threads")}
        groups.setdefault(repr(sorted(same.items(), key=lambda pair: pair[0])), []).append(run)
    apart = [name for name in differing(runs) if name != "seed"]

    def named(arm: Sequence[RunFacts]) -> str:
        if len(arm) == 1:
            return arm[0].name
        return ", ".join(f"{name.replace('_', ' ')} {arm[0].options.get(name)}" for name in apart)

    return {named(arm): arm for arm in groups.values()}


def seeds_sentence(runs: Sequence[RunFacts], metric: str) -> str:
    """Say how much seeds alone change."""
    scores = [sum(figures.right(p) for p in run.predictions) / len(run.predictions) for run in runs]
    return (
        f"These {len(runs)} runs differ only in their seed: {metric} on {runs[0].scored} from "
        f"{min(scores):.3f} to {max(scores):.3f}, {sum(scores) / len(scores):.3f} in the mean."
    )


def add_runs(page: Page, runs: Sequence[RunFacts], head: Callable[[str], None]) -> None:
    """Add several runs: those on the same task compared, then each in full."""
    kinds = alike(runs)
    for kind in (kind for kind in kinds if len(kind) > 1):
        task = kind[0].title.partition(" on ")[2].partition(",")[0]
        head("Comparison" if len(kinds) == 1 else f"Comparison: {task}")
        add_comparison(page, kind, task if len(kinds) > 1 else "")
    head("Each run")
    shown = runs if len(runs) <= RUNS_IN_FULL else best_first(runs)[:1]
    if len(shown) < len(runs):
        page.text(
            f"In full: the best on dev. heedful report on one folder shows any of the other {len(runs) - 1}."
        )
    for run in shown:
        with page.details(f"{run.name}: {run.title}"):
            page.text(*run_summary(run))
            add_run(page, run, page.part, run.name)


def add_comparison(page: Page, runs: Sequence[RunFacts], prefix: str = "") -> None:
    """Add the scores, the curves and the cost of runs on one task."""
    finished = [run for run in runs if run.results is not None]
    drawn: list[tuple[str, Chart | None]] = []
    if finished:
        drawn.append(("scores", figures.compared_bars(runs)))
    curves = [run for run in runs if run.metrics]
    if curves:
        drawn += [("dev", figures.overlaid(curves, "dev")), ("train", train_overlaid(curves))]
    if len(finished) > 1:
        drawn.append(("cost", figures.cost_scatter(finished)))
    note = "; ".join(dict.fromkeys(run.note for run in runs if run.note))
    if drawn and drawn[0][1] is not None:
        page.figure(noted(drawn[0][1], note), "", f"{prefix} {drawn[0][0]}")
    page.table(*comparison_table(runs))
    for name, chart in drawn[1:] if finished else drawn:
        if chart is not None:
            page.figure(noted(chart, note), "", f"{prefix} {name}")


def train_overlaid(runs: Sequence[RunFacts]) -> Chart | None:
    """Draw all runs' scores on train, in evaluation mode where every run has them."""
    in_evaluation = all(any(row.split == "train_eval" for row in run.metrics) for run in runs)
    return figures.overlaid(runs, "train_eval" if in_evaluation else "train")


def best_first(runs: Sequence[RunFacts]) -> list[RunFacts]:
    """Order runs by their score on dev; those without one come last."""

    def place(run: RunFacts) -> tuple[bool, float]:
        found = run.split("dev")
        value = found.value if found else None
        sign = 1 if run.better == "min" else -1
        return value is None, sign * (value or 0.0)

    return sorted(runs, key=place)


def study_page(study: StudyFacts) -> Page:
    """Make the page of one study."""
    summary = study.answer.summary
    said: Kind = "plain"
    for note in study.answer.notes:
        if note.text in summary:
            said = note.kind
    page = Page(study.title, summary=summary, kind=said)
    add_study(page, study, page.section)
    return page


def add_study(page: Page, study: StudyFacts, head: Callable[[str], None], prefix: str = "") -> None:
    """Add everything about one study: its answer, its runs, the command."""
    answer = study.answer
    if not answer.finished:
        over = sum(outcome.over for outcome in study.outcomes)
        page.note(f"The study has not finished: {over} of {len(study.outcomes)} runs are over.", "warning")
    if prefix:
        remarks = {note.text for note in answer.notes}
        page.text(*(line for line in answer.summary if line not in remarks))
    for note in answer.notes:
        if note.text not in answer.summary or prefix:
            page.note(note.text, note.kind)
    if answer.figures or answer.tables:
        head("Findings")
    for number, figure in enumerate(answer.figures):
        where = f"{study.path / ANSWER}: figure {number + 1} ({figure.name})"
        chart = noted(drawn_figure(figure, where), study.note)
        page.figure(chart, figure.caption, f"{prefix} {figure.name}")
    for table in answer.tables:
        page.table(
            table.columns, checked_rows(table.columns, table.rows, str(study.path / ANSWER)), table.title
        )
    ended = [outcome for outcome in study.outcomes if outcome.state in ("failed", "pruned")]
    if ended:
        head("Runs without a result")
        rows = [[o.name, o.state, o.ended.reason if o.ended else None] for o in ended]
        page.table(("run", "state", "reason"), rows)
    runs = study.runs()
    if runs:
        head("Its runs")
        for kind in (kind for kind in alike(runs) if len(kind) > 1):
            with page.details(f"{len(kind)} finished runs"):
                page.table(*comparison_table(kind))
                curves = figures.overlaid([run for run in kind if run.metrics] or kind, "dev")
                if curves is not None:
                    page.figure(noted(curves, study.note), "", f"{prefix} runs dev")
        first = runs[0] if answer.runs else best_first(runs)[0]
        with page.details(f"In full: {first.name}, {first.title}"):
            page.text(*run_summary(first))
            add_run(page, first, page.part, f"{prefix} {first.name}")
    if command := answer.command or study.record.command:
        head("How to make it again")
        page.code(shlex.join(("heedful", *command)))
        if study.record.options:
            with page.details("What the study was told"):
                page.facts(told(study.record.options))


def told(options: Mapping[str, Any]) -> dict[str, Any]:
    """Give a study's options and those that its runs share, in one level; those of a part begin with it."""
    found: dict[str, Any] = {}
    for name, value in options.items():
        part = "" if name == "run" else f"{name}: "
        inside = told(value) if isinstance(value, Mapping) else None
        found |= {name: value} if inside is None else {f"{part}{key}": own for key, own in inside.items()}
    found = {name.replace("_", " "): value for name, value in found.items()}
    return {name: value for name, value in found.items() if value is not None}


def checked_rows(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], where: str
) -> Sequence[Sequence[Any]]:
    """Refuse a stored table whose rows do not fit its columns."""
    if any(len(row) != len(columns) for row in rows):
        raise UserError(
            f"{where}: a table with {len(columns)} columns has a row with another number of cells"
        )
    return rows


KINDS: dict[str, Callable[..., Chart]] = {
    "lines": charts.lines,
    "bars": charts.bars,
    "scatter": charts.scatter,
    "heat_map": charts.heat_map,
    "small_multiples": charts.small_multiples,
    "histogram": charts.histogram,
}


def by_cell(notes: Iterable[tuple[int, int, str]]) -> dict[tuple[int, int], str]:
    """Stored notes of cells, by row and column."""
    return {(row, column): note for row, column, note in notes}


def drawn_figure(figure: Figure, where: str) -> Chart:
    """Draw a stored figure; what does not fit its kind is told with the file's name."""
    function = KINDS[figure.kind]
    known = list(inspect.signature(function).parameters)[1:]
    for name in figure.options:
        if name not in known:
            raise UserError(f"{where}: {unknown('option', name, known)}")
    options = {"title": figure.name, **figure.options}
    try:
        if figure.kind == "heat_map" and options.get("notes"):
            options["notes"] = by_cell(options["notes"])
        if figure.kind == "small_multiples" and options.get("notes"):
            options["notes"] = {panel: by_cell(notes) for panel, notes in options["notes"].items()}
        return function(figure.data, **options)
    except (TypeError, ValueError, KeyError, AttributeError, IndexError) as error:
        raise UserError(
            f"{where}: its data do not fit a figure of the kind {figure.kind} ({error})"
        ) from None
