"""The comparison of several runs: which can be compared, which is best, and how they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from heedful.report import run_figures
from heedful.report.charts import Chart
from heedful.report.charts.vega import add_title_note
from heedful.report.facts import RunFacts
from heedful.report.formats import format_duration, is_number
from heedful.report.page import SEVERITIES, Cell, Headline, Kind, Page
from heedful.report.run_sections import Columns, make_interval_cell, make_value_cell
from heedful.report.sentences.comparisons import describe_comparisons, describe_ranking
from heedful.report.sentences.runs import describe_runs, describe_seeds
from heedful.report.sentences.verdicts import KINDS
from heedful.statistics.comparison import compare_all, rank


def group_by_task(runs: Sequence[RunFacts]) -> list[list[RunFacts]]:
    """Group the runs whose scores can be compared: the same task and metric."""
    groups: dict[tuple[str, str], list[RunFacts]] = {}
    for run in runs:
        groups.setdefault((run.task, run.metric), []).append(run)
    return list(groups.values())


def describe_group(runs: Sequence[RunFacts]) -> tuple[Headline, list[str]]:
    """Describe runs on the same task: first which is best, by paired tests if they can be made."""
    right, tested = find_right_answers(runs), list_tested(runs)
    if right is None:
        lines = describe_runs(runs, None)
        return Headline(lines[0]), lines
    if len(right) == 1:
        (seeds,) = right.values()
        verdict = describe_seeds(tested, [sum(run) / len(run) for run in seeds])
        return Headline(verdict), [verdict, *describe_runs(runs, None)]
    comparisons, metric = compare_all(right), tested[0].metric
    ranking = describe_ranking(comparisons, metric)
    further = describe_comparisons(comparisons, metric).removeprefix(ranking).strip()
    verdict = f"On {tested[0].detail_split}: {ranking}"
    kind: Kind = "good" if rank(comparisons).furthest is None else "warning"
    return Headline(verdict, kind), [verdict, *describe_runs(runs, further or None)]


def list_tested(runs: Sequence[RunFacts]) -> list[RunFacts]:
    return [run for run in runs if run.predictions and run.metric_is_share]


def find_right_answers(runs: Sequence[RunFacts]) -> dict[str, list[list[bool]]] | None:
    """Return which examples each run of each arm has right; None if they are not the same examples."""
    tested = list_tested(runs)
    if len(tested) < 2:
        return None
    examples = {tuple((p.id, p.label, p.text) for p in run.predictions) for run in tested}
    if len(examples) != 1 or len(tested[0].predictions) < 2:
        return None
    return {
        name: [[run_figures.is_right(p) for p in run.predictions] for run in arm]
        for name, arm in group_by_arm(tested).items()
    }


def group_by_arm(runs: Sequence[RunFacts]) -> dict[str, list[RunFacts]]:
    """Group runs that differ only in their seed; an arm of several runs is named by its options."""
    groups: dict[str, list[RunFacts]] = {}
    for run in runs:
        options = {k: v for k, v in run.options.items() if k not in ("seed", "threads")}
        groups.setdefault(repr(sorted(options.items(), key=lambda pair: pair[0])), []).append(run)
    names = [name for name in find_differing_options(runs) if name != "seed"]

    def arm_name(arm: Sequence[RunFacts]) -> str:
        if len(arm) == 1:
            return arm[0].name
        return ", ".join(f"{name.replace('_', ' ')} {arm[0].options.get(name)}" for name in names)

    return {arm_name(arm): arm for arm in groups.values()}


def find_differing_options(runs: Sequence[RunFacts]) -> list[str]:
    """Return the names of options in which runs differ, except those that only the machine decides."""
    names = dict.fromkeys(name for run in runs for name in run.options if name not in ("threads", "out"))
    return [name for name in names if len({repr(run.options.get(name)) for run in runs}) > 1]


def sort_best_first(runs: Sequence[RunFacts]) -> list[RunFacts]:
    """Sort runs by their score on dev; those without one come last."""

    def sort_key(run: RunFacts) -> tuple[bool, float]:
        result = run.split("dev")
        value = result.value if result else None
        sign = 1 if run.best_is == "min" else -1
        return value is None, sign * (value or 0.0)

    return sorted(runs, key=sort_key)


def add_comparison(page: Page, runs: Sequence[RunFacts], prefix: str = "", *, is_page: bool = False) -> None:
    note = "; ".join(dict.fromkeys(run.note for run in runs if run.note))

    def add_figure(chart: Chart | None, name: str, *, lead: bool = False) -> None:
        if chart is not None:
            page.figure(add_title_note(chart, note), name=f"{prefix} {name}", lead=lead)

    finished = [run for run in runs if run.results is not None]
    if finished:
        add_figure(run_figures.draw_run_scores(runs), "scores", lead=is_page)
    page.table(*make_comparison_table(runs))
    if with_curves := [run for run in runs if run.metrics]:
        add_figure(run_figures.draw_run_curves(with_curves, "dev"), "dev")
        has_train_eval = all(any(row.split == "train_eval" for row in run.metrics) for run in with_curves)
        train = "train_eval" if has_train_eval else "train"
        add_figure(run_figures.draw_run_curves(with_curves, train), "train")
    if len(finished) > 1:
        add_figure(run_figures.draw_cost(finished), "cost")


def make_comparison_table(runs: Sequence[RunFacts]) -> Columns:
    options = find_differing_options(runs)
    splits = [s for s in ("dev", "test") if any(run.split(s) is not None for run in runs)]
    baselines = {split: find_differing_baselines(runs, split) for split in splits}
    headings = ["run", *(name.replace("_", " ") for name in options)]
    for split in splits:
        headings += [f"{split} {runs[0].metric}", "95 % interval"]
        headings += [f"{split}, {name}" for name in baselines[split]]
    headings += ["best epoch", "parameters trained", "time", "memory, GB", "checks"]
    rows: list[list[Any]] = []
    for run in runs:
        r = run.results
        row: list[Any] = [run.name, *(make_option_cell(run.options.get(name)) for name in options)]
        for split in splits:
            result = run.split(split)
            values = run_figures.name_baselines(result.baselines if result else None)
            row += [make_value_cell(result), make_interval_cell(result)]
            row += [values.get(name) for name in baselines[split]]
        kinds = list(KINDS)
        worst = min((c.status for c in run.checks), key=kinds.index, default=None)
        worst_status = worst and Cell(SEVERITIES[KINDS[worst]], str(kinds.index(worst)), KINDS[worst])
        if r is None:
            rows.append([*row, None, None, Cell(run.missing_reason or "", ""), None, worst_status])
            continue
        epoch = None if r.best_epoch is None else round(r.best_epoch, 2)
        memory = None if r.memory_gb is None else round(r.memory_gb, 1)
        time = Cell(format_duration(r.seconds), r.seconds)
        rows.append([*row, epoch, r.trainable_parameters, time, memory, worst_status])
    return headings, rows


def find_differing_baselines(runs: Sequence[RunFacts], split: str) -> list[str]:
    """Return the names of baselines that are not the same for all runs, so that no figure draws them."""
    results = [run.split(split) for run in runs]
    names = dict.fromkeys(name for r in results if r for name in run_figures.name_baselines(r.baselines))
    return [name for name in names if name not in run_figures.shared_baselines(results)]


def make_option_cell(value: Any) -> Any:
    """Format an option's value: numbers as they were typed, lists as words."""
    if is_number(value):
        return Cell(f"{value:g}" if isinstance(value, float) else str(value), float(value))
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else value
