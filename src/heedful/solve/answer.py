"""What is said at the end: the chosen model, its score, the candidates, confused labels, further commands."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.evaluation.checks import metric_fits
from heedful.evaluation.metrics import Metric
from heedful.evaluation.selection import TOLERANCE, Selection
from heedful.options.model_names import MAJORITY
from heedful.options.solve import SolveOptions
from heedful.report.formats import capitalize
from heedful.runs.answers import Answer, Figure, Note, Table
from heedful.runs.directory import REFITTED, Run
from heedful.runs.schemas import Results
from heedful.runs.studies import StudyFolder
from heedful.solve.candidates import DataFacts, name_whole
from heedful.solve.choice import ScoredCandidate, ScoredCandidates, choose
from heedful.solve.held_out import count_common_folds, read_held_out
from heedful.solve.insight import (
    Insight,
    describe_rows_to_label,
    draw_curve,
    examine_labels,
    list_rows_to_label,
    rank_helps,
    suggest_labels,
    suggest_reading,
)
from heedful.solve.plan import format_minutes
from heedful.solve.request import find_final_run
from heedful.solve.state import SolveState

CONFUSED = 3
"""Number of confused pairs of labels that are named."""
LEAST_SHARE = 0.05
"""A pair of labels is named if at least this share of the first label's rows is taken for the second."""


def make_answer(
    folder: StudyFolder,
    options: SolveOptions,
    scored: ScoredCandidates,
    state: SolveState,
    facts: DataFacts,
    insight: Insight,
    finished: bool,
) -> Answer:
    """Return the answer so far: sentences, the table of candidates and the picture of score against cost."""
    choice = choose(scored, options.prefer)
    by_name = {candidate.name: candidate for candidate in scored.candidates}
    results = read_chosen_results(folder, state, choice.chosen)
    rows = read_held_out(folder, choice.chosen, count_common_folds(state))
    scored_rows = describe_rows(scored, state, facts)
    shortened = describe_shortening(folder, state, facts)
    useful = is_shown_useful(choice, results)
    labels = Insight()
    if facts.one_label:
        labels = examine_labels(rows, results.labels or (), scored.metric, useful=useful)
    curves = [] if state.curve is None else [state.curve]
    reading = [] if state.long_texts is None else suggest_reading(state.long_texts)
    to_label = state.label_next if state.label_next is not None and state.label_next.rows else None
    summary = [
        describe_choice(scored, choice, results, scored_rows),
        *explain_choice(scored, choice, options.prefer),
        *describe_refit(state, facts, choice.chosen),
        *suggest_rows(by_name[choice.chosen], scored.metric, facts),
        *describe_confusions(results),
        *rank_helps([*map(suggest_labels, curves), *labels.helps, *reading]),
        *describe_commands(folder.path, by_name[choice.chosen], pairs=rows[0].pair is not None),
        *([describe_rows_to_label(folder.path)] if to_label else []),
    ]
    return Answer(
        study="solve",
        title=f"{facts.name} in {format_minutes(options.minutes)}",
        summary=tuple(summary),
        finished=finished,
        notes=(
            *list_notes(choice, results, state, shortened, facts),
            *(list_metric_notes(scored) if facts.one_label else ()),
            *list_split_notes(facts),
            *labels.notes,
            *insight.notes,
        ),
        figures=(
            draw_costs(scored, choice, results, facts),
            *map(draw_curve, curves),
        ),
        tables=(
            list_candidates(scored, choice, state, scored_rows, shortened),
            *labels.tables,
            *([list_rows_to_label(to_label)] if to_label else []),
            *insight.tables,
        ),
        runs=list_runs(state, by_name, choice.chosen),
        command=folder.read().command,
        facts={
            "chosen": choice.chosen,
            "best": choice.best,
            "dev": choice.scores,
            "titles": {name: candidate.title for name, candidate in by_name.items()},
            "test": results.splits["test"].value if "test" in results.splits else None,
            "left_out": state.left_out,
            "seconds": state.spent,
        },
    )


def list_runs(state: SolveState, names: Iterable[str], chosen: str) -> tuple[str, ...]:
    """Return the runs of the answer, that with the model to use first."""
    ordered = sorted(names, key=lambda name: name != chosen)
    refitted = [f"{chosen}{REFITTED}"] if state.refitted.get(chosen) == "" else []
    return tuple(f"runs/{name}" for name in (*refitted, *ordered))


def read_chosen_results(folder: StudyFolder, state: SolveState, name: str) -> Results:
    """Read the results of the chosen run; the score of test is that of the model to use."""
    results = Run.open(folder.run(name)).read_results()
    final = Run.open(find_final_run(folder, state, name)).read_results()
    return replace(results, splits={**results.splits, **final.splits})


def describe_refit(state: SolveState, facts: DataFacts, chosen: str) -> Iterator[str]:
    """Say whether the chosen model was fitted again on train and dev after it was selected."""
    if chosen not in state.refitted:
        return
    if reason := state.refitted[chosen]:
        yield f"It was not fitted again on train and dev: {reason}."
    else:
        rows = f"{facts.train + facts.dev:,} rows"
        yield f"After its selection it was fitted again on train and dev ({rows}); test scores that model."


def describe_rows(scored: ScoredCandidates, state: SolveState, facts: DataFacts) -> str:
    """Return how many rows the candidates were scored on, and of how many if dev was sampled."""
    sampled = state.dev_rows is not None and state.dev_rows < facts.dev and not count_common_folds(state)
    of = f" of {facts.dev:,}" if sampled else ""
    return f"{len(scored.labels):,}{of} rows of {scored.held_out}"


def describe_shortening(folder: StudyFolder, state: SolveState, facts: DataFacts) -> dict[str, str]:
    """Return what each candidate lacks that was trained on fewer rows or for fewer epochs than usual."""
    settings = {c.name: c.settings for c in folder.read().configurations if c.name in state.costs}
    usual = None if state.speed is None else state.speed.epochs
    shortened = {}
    for name, cost in state.costs.items():
        rows, epochs = (settings.get(name, {}).get(key) for key in ("train_rows", "epochs"))
        parts = []
        if rows is not None and rows < facts.train:
            parts.append(f"only {rows:,} of {facts.train:,} training rows")
        if epochs is not None and usual is not None and epochs < usual:
            parts.append(f"only {epochs} of {usual} epochs")
        if cost.cut:
            parts.append("cut short")
        if parts:
            shortened[name] = ", ".join(parts)
    return shortened


def describe_choice(scored: ScoredCandidates, choice: Selection, results: Results, scored_rows: str) -> str:
    metric = scored.metric
    title = next(capitalize(c.title) for c in scored.candidates if c.name == choice.chosen)
    if (test := results.splits.get("test")) is not None:
        rows = f"{test.n:,} of {test.of:,}" if test.of else f"{test.n:,}"
        return f"{title}: {metric.title} {format_score(test.value, test.ci95)} on {rows} rows of test."
    score = format_score(choice.value, choice.interval)
    return (
        f"{title}: {metric.title} {score} on {scored_rows}, corrected for having selected it there; "
        "test has not been scored."
    )


def explain_choice(scored: ScoredCandidates, choice: Selection, prefer: str | None) -> Iterator[str]:
    """Say why a candidate other than the best was chosen, and what it was chosen from."""
    by_name = {candidate.name: candidate for candidate in scored.candidates}
    chosen, best = by_name[choice.chosen], by_name[choice.best]
    scores = f"{choice.scores[best.name]:.3f} against {choice.scores[chosen.name]:.3f} on held-out rows"
    gain = scored.metric.improvement(choice.expected[best.name], choice.expected[chosen.name])
    if gain > 0:
        same = choice.scores[best.name] == choice.scores[chosen.name]
        compared = "the same score (on held-out rows)" if same else f"a better score ({scores})"
        yield (
            f"{capitalize(best.title)} has {compared}, but so few rows tell little. Together "
            f"with what is known from other tasks of this size, {chosen.title} is expected to be better, by "
            f"{gain:.3f}."
        )
        return
    if chosen is best:
        undecided = [c.b for c in choice.comparisons.values() if not c.differs]
        if undecided and not chosen.baseline:  # of a baseline, a warning says the same
            names = ", ".join(by_name[name].title for name in undecided)
            yield f"It has the best score on held-out rows, but is not shown to be better than {names}."
        return
    comparison = choice.comparisons[choice.chosen]
    factors = {
        "time per text": best.cost.ms_per_text / max(chosen.cost.ms_per_text, 1e-9),
        "memory": best.cost.megabytes / max(chosen.cost.megabytes, 1e-9),
    }
    what = "memory" if prefer == "small" else "time per text"
    if factors[what] < 1.05:  # they take the same; the other cost decided
        what = max(factors, key=lambda name: factors[name])
    shown = (
        f"is better, but not shown to be by more than {TOLERANCE} ({scores})"
        if comparison.differs
        else f"is not shown to be better ({scores}, p = {comparison.p:.2g})"
    )
    yield f"{capitalize(best.title)} {shown} and takes {format_factor(factors[what])} {what}."


def suggest_rows(chosen: ScoredCandidate, metric: Metric, facts: DataFacts) -> Iterator[str]:
    """Say what would help where a constant answer was chosen."""
    if chosen.baseline and not facts.one_label:
        yield "More labeled rows may show that another candidate is better."
    elif chosen.baseline:
        rare = (
            "" if metric.name == "macro_f1" else ", or --metric macro_f1, by which all labels count the same,"
        )
        yield f"More labeled rows{rare} may show that another candidate is better."


def format_factor(factor: float) -> str:
    if 0.95 <= factor < 1.05:
        return "about the same"
    return f"{factor:.0f} times the" if factor >= 1.95 else f"{factor:.2g} times the"


def describe_confusions(results: Results) -> Iterator[str]:
    """Name the pairs of labels that are confused most often."""
    result = results.splits.get("test") or results.splits["dev"]
    labels, cells = results.labels or (), result.confusion or ()
    pairs = [
        (count / max(1, sum(row)), count, labels[i], labels[j])
        for i, row in enumerate(cells)
        for j, count in enumerate(row)
        if i != j and count > 1 and count >= LEAST_SHARE * sum(row)
    ]
    if pairs:
        named = [
            f"{a} for {b} ({count} rows, {share:.0%})"
            for share, count, a, b in sorted(pairs)[::-1][:CONFUSED]
        ]
        yield f"Most often taken for another label: {'; '.join(named)}."


def describe_commands(folder: Path, chosen: ScoredCandidate, *, pairs: bool) -> Iterator[str]:
    path, text = shlex.quote(str(folder)), '"a text" "its second text"' if pairs else '"a text"'
    yield f"The model has {chosen.cost.disk_megabytes:.1f} MB on disk. To use it:"
    yield f"  heedful predict {path} --in texts.csv --out labeled.csv"
    yield f"  heedful serve {path}"
    yield f"  heedful export {path} my-model"
    yield "To look closer:"
    yield f"  heedful explain {path} {text}"
    yield f"  heedful check {path}"
    yield f"  heedful report {path} --out report.html"


def find_majority(choice: Selection, results: Results) -> float | None:
    """Return the score of always answering the most frequent label on the held-out rows, or on dev."""
    return choice.scores.get(MAJORITY, (results.splits["dev"].baselines or {}).get(MAJORITY))


def is_shown_useful(choice: Selection, results: Results) -> bool:
    """Whether the best candidate is shown to be better than always answering the most frequent label."""
    if MAJORITY in choice.scores:
        return MAJORITY in choice.comparisons and choice.comparisons[MAJORITY].differs
    majority, interval = find_majority(choice, results), choice.interval
    if majority is None or interval is None:
        return True
    higher = results.splits["dev"].higher_is_better
    return interval.low > majority if higher else interval.high < majority


def list_notes(
    choice: Selection, results: Results, state: SolveState, shortened: dict[str, str], facts: DataFacts
) -> Iterator[Note]:
    if not is_shown_useful(choice, results):
        always = f"always answering {facts.constant} ({find_majority(choice, results):.3f})"
        yield Note(f"no candidate is shown to be better than {always}", "warning")
    if len(state.tested) > 1:
        yield Note(
            f"test was scored for {len(state.tested)} candidates: {', '.join(state.tested)}", "warning"
        )
    for name, cost in state.costs.items():
        if cost.cut:
            yield Note(f"{name} was cut short: the machine was slower than measured", "warning")
    waiting = {name: what for name, what in shortened.items() if name_whole(name) not in state.costs}
    if waiting:
        less = "; ".join(f"{name} ({what})" for name, what in waiting.items())
        yield Note(
            f"trained less than usual, to fit in the time: {less}. The same command with more minutes trains "
            "again, as a whole, what then fits"
        )


def list_metric_notes(scored: ScoredCandidates) -> Iterator[Note]:
    """Warn where accuracy was selected by and says little, because nearly all rows have one label."""
    check = metric_fits(scored.metric, Counter(scored.labels.tolist()))
    if check.status == "warning":
        yield Note(check.message, "warning")


def list_split_notes(facts: DataFacts) -> Iterator[Note]:
    """Say how rows were split by a column, and which groups are on both sides."""
    for place, text in enumerate(facts.split_notes):
        yield Note(text, "warning" if place else "plain")
    if facts.units is not None and facts.units < facts.train and not facts.timed:
        alike = "rows of a group may be alike, and then they are too narrow"
        yield Note(f"the intervals treat rows as independent; {alike}")


def list_candidates(
    scored: ScoredCandidates,
    choice: Selection,
    state: SolveState,
    scored_rows: str,
    shortened: dict[str, str],
) -> Table:
    columns = (
        "candidate", scored.metric.title, "95 % interval", "minutes to train", "ms per text", "MB", "remark",
    )  # fmt: skip
    rows: list[tuple[Any, ...]] = []
    for c in sorted(scored.candidates, key=lambda c: scored.metric.sort_key(choice.scores[c.name]))[::-1]:
        interval = scored.interval(c.name)
        between = "" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"
        numbers = (f"{c.cost.seconds / 60:.1f}", f"{c.cost.ms_per_text:.2g}", f"{c.cost.megabytes:.0f}")
        remarks = [remark(c, choice, shortened)]
        if c.cost.folds < (state.folds or 0):
            remarks.append(f"only {c.cost.folds} of {state.folds} folds" if c.cost.folds else "without folds")
        rows.append((c.name, choice.scores[c.name], between, *numbers, ", ".join(remarks)))
    rows += [(name, None, "", "", "", "", f"left out: {why}") for name, why in state.left_out.items()]
    return Table(columns, tuple(rows), f"candidates, scored on {scored_rows}")


def remark(candidate: ScoredCandidate, choice: Selection, shortened: dict[str, str]) -> str:
    parts = [candidate.title]
    if candidate.name in shortened:
        parts.append(shortened[candidate.name])
    if candidate.name == choice.chosen:
        parts.append("chosen")
    elif candidate.name in choice.comparisons:
        comparison = choice.comparisons[candidate.name]
        parts.append(
            f"worse than {comparison.a}" if comparison.differs else f"not shown to differ from {comparison.a}"
        )
    return ", ".join(parts)


def draw_costs(scored: ScoredCandidates, choice: Selection, results: Results, facts: DataFacts) -> Figure:
    rows = []
    for c in scored.candidates:
        if c.name == MAJORITY != choice.chosen:
            continue  # a line across the picture
        interval = scored.interval(c.name)
        ends = {} if interval is None else {"low": interval.low, "high": interval.high}
        group = "chosen" if c.name == choice.chosen else "other candidates"
        point = {"x": c.cost.ms_per_text, "y": choice.scores[c.name], "label": c.name, "group": group}
        rows.append(point | ends)
    majority = find_majority(choice, results)
    return Figure(
        "score-against-cost",
        "scatter",
        rows,
        {
            "title": "What each candidate gives, and what an answer costs",
            "x_title": "milliseconds per text",
            "y_title": f"{scored.metric.title} on {scored.held_out}",
            "log_x": True,
            "levels": {} if majority is None else {facts.constant.removeprefix("the "): majority},
        },
        "Each point is a candidate; the lines are 95 % intervals.",
    )


def format_score(value: float | None, interval: Sequence[float | None] | None) -> str:
    if value is None:
        return "not a number"
    if interval is None or None in interval:
        return f"{value:.3f}"
    return f"{value:.3f} (95 % interval {interval[0]:.3f} to {interval[1]:.3f})"
