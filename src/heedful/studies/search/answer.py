"""What a search says: the best cell, how it does on test, and what the grid did not tell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.runs.answers import Answer, Figure, Note, Table
from heedful.runs.directory import CONFIG, Run
from heedful.runs.studies import Outcome, StudyRecord
from heedful.statistics.proportions import widest_interval
from heedful.studies.base import best, failures
from heedful.studies.shared import scores, search_space
from heedful.studies.shared.search_space import Range

EDGES = {
    "lr": ("is the lowest that was tried; a lower one", "is the highest that was tried; a higher one"),
    "epochs": ("are the fewest that were tried; fewer", "are the most that were tried; more"),
}
"""Axes whose end, when it is best, says that the grid is too small."""


def answer(record: StudyRecord, outcomes: Sequence[Outcome]) -> Answer:
    """From the run directories."""
    names = shown(record, outcomes)
    chosen = best(outcomes)
    warnings = [*edges(record, outcomes, chosen), *scores.mostly_collapsed(outcomes), *failures(outcomes)]
    saving = saved(outcomes)
    summary = sentences(outcomes, chosen, names)
    if saving["trained"] < saving["asked"]:
        summary.append(
            f"Runs that differ in epochs shared their beginning: {saving['trained']} epochs were trained "
            f"instead of {saving['asked']}."
        )
    if saving["heads"] > 1:
        summary.append(f"{saving['heads']} heads were trained at once on features computed once.")
    test = chosen.results.splits.get("test") if chosen is not None and chosen.results is not None else None
    others = [f"runs/{o.name}" for o in outcomes if o is not chosen and o.results is not None]
    return Answer(
        study=record.kind,
        title=record.question,
        summary=tuple(summary),
        notes=tuple(warnings),
        figures=tuple(figures(record, outcomes, names)),
        tables=(table(outcomes, names),),
        runs=(*([f"runs/{chosen.name}"] if chosen is not None else []), *others),
        facts={
            "chosen": chosen.name if chosen is not None else None,
            "settings": chosen.configuration.settings if chosen is not None else None,
            "dev": chosen.dev if chosen is not None else None,
            "test": test,
            "epochs": saving,
            "failed": {o.name: o.ended.reason for o in outcomes if o.state == "failed" and o.ended},
            "warnings": [note.text for note in warnings],
        },
    )


def shown(record: StudyRecord, outcomes: Sequence[Outcome]) -> list[str]:
    """The settings that were searched, though all draws may have the same."""
    space = search_space.read_space(record.options, ranges=True)
    told = {*search_space.varied([o.configuration.settings for o in outcomes]), *search_space.offered(space)}
    return [name for name in search_space.KINDS if name in told]


def sentences(outcomes: Sequence[Outcome], chosen: Outcome | None, names: Sequence[str]) -> list[str]:
    """The best, whether it stands out, and its score on test."""
    if chosen is None or chosen.results is None:
        return ["No run has finished yet."]
    metric = scores.metric_of([chosen])
    what = scores.settings(chosen.configuration.settings, names)
    said = f"Best on dev: {what}, with {metric} {scores.scored(chosen.results.splits['dev'])}."
    if scores.collapsed(chosen):
        said += " It gives nearly one answer to everything: no setting that was tried is worth having."
    elif scores.fallen([chosen]):
        said += f" It is {scores.fallen([chosen])}, within chance."
    found = [said]
    equal = scores.as_good(chosen, outcomes)
    finished = sum(o.results is not None for o in outcomes)
    if equal and finished > 1:
        none = len(equal) == finished - 1
        of = "None of the others can" if none else f"{len(equal)} of the other {finished - 1} cannot"
        found.append(f"{of} be told apart from it on dev.")
    elif finished > 1 and len(scores.read_examples(chosen)[0]) > 1:
        found.append("It beats each of the others on dev, beyond chance.")
    test = chosen.results.splits.get("test")
    if test is not None:
        simple = (test.baselines or {}).get("bag_of_words")
        beside = f"; a bag of words has {simple:.3f}" if simple is not None else ""
        found.append(f"On test, looked at once, for this run alone: {metric} {scores.scored(test)}{beside}.")
    return found


def table(outcomes: Sequence[Outcome], names: Sequence[str]) -> Table:
    """A line a run."""
    metric = scores.metric_of(outcomes)
    rows = []
    for o in outcomes:
        dev = o.results.splits.get("dev") if o.results is not None else None
        values = [o.configuration.settings[name] for name in names]
        seconds = round(o.results.seconds, 1) if o.results is not None else None
        rows.append((*values, o.dev, scores.interval(dev), seconds, scores.note_of(o)))
    columns = (*(scores.named(name) for name in names), f"dev {metric}", "95 % interval", "seconds", "note")
    return Table(columns, tuple(rows), "")


def edges(record: StudyRecord, outcomes: Sequence[Outcome], chosen: Outcome | None) -> list[Note]:
    """Warn when the best lies on the edge of the grid."""
    if chosen is None or scores.collapsed(chosen):
        return []
    found = []
    for name in EDGES:
        text = record.options.get(name)
        axis = search_space.read_axis(name, text) if text else ()
        alike = [o for o in outcomes if name != "lr" or method_of(o) == method_of(chosen)]
        tried = sorted({float(o.configuration.settings[name]) for o in alike})
        if isinstance(axis, Range) or len(tried) < 2:
            continue
        value = chosen.configuration.settings[name]
        least, most = EDGES[name]
        end = {tried[0]: least, tried[-1]: most}.get(float(value))
        if end is not None:
            what = scores.setting(name, value)
            found.append(
                Note(f"The best lies on the edge of the grid: {what} {end} may be better.", "warning")
            )
    return found


def method_of(outcome: Outcome) -> Any:
    """The method where several are searched; each has learning rates of its own."""
    return outcome.configuration.settings.get("method")


def saved(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """How many epochs were asked for, how many were trained, and how many heads at once."""
    chains: dict[str, int] = {}
    asked = 0
    for o in outcomes:
        chain, epochs = o.configuration.chain, int(o.configuration.settings["epochs"])
        asked += epochs
        chains[chain] = max(chains.get(chain, 0), epochs)
    heads = {
        (o.configuration.settings["lr"], o.configuration.settings["batch_size"])
        for o in outcomes
        if o.configuration.job == "heads" and together(o)
    }
    return {"asked": asked, "trained": sum(chains.values()), "heads": len(heads)}


def together(outcome: Outcome) -> bool:
    """Whether a head was trained with others, as `heads.work_heads` decides it."""
    from heedful.training.build.model import starts_from_scratch

    if not (outcome.folder / CONFIG).is_file():
        return False
    told = Run(outcome.folder).config().get("adapt", {})
    linear = told.get("head", "auto") in ("auto", "linear")
    return (
        linear and told.get("precision") == "float32" and not starts_from_scratch(str(told.get("model", "")))
    )


def figures(record: StudyRecord, outcomes: Sequence[Outcome], names: Sequence[str]) -> list[Figure]:
    """A heat map of a grid, or the draws as points; and the curves of all runs."""
    metric = scores.metric_of(outcomes)
    found = []
    drawn = record.options.get("random") is not None or record.options.get("tpe") is not None
    if not drawn and len(names) > 1:
        found.append(heat(outcomes, names, metric))
    if drawn:
        points = [
            {
                "x": o.configuration.settings["lr"],
                "y": o.dev,
                **scores.ends(o),
                "label": o.name,
                "group": scores.settings(
                    o.configuration.settings, [name for name in names if name not in ("lr",)]
                ),
            }
            for o in outcomes
            if o.dev is not None
        ]
        options = {
            "title": "All draws",
            "subtitle": "with 95 % intervals",
            "x_title": "learning rate",
            "y_title": f"dev {metric}",
            "log_x": True,
        }
        found.append(Figure("draws", "scatter", points, options))
    return [*found, scores.curves(longest(outcomes), "All runs", metric)]


def longest(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """Of runs that share their beginning the longest, whose curve has all of theirs."""
    begun = [o for o in outcomes if o.state != "waiting"]
    in_order = sorted(begun, key=lambda o: int(o.configuration.settings["epochs"]))
    last = {o.configuration.chain: o.name for o in in_order}.values()
    return {o.name: o for o in begun if o.name in last}


def heat(outcomes: Sequence[Outcome], names: Sequence[str], metric: str) -> Figure:
    """Two axes of a grid as a map; a third and a fourth as panels."""
    order = [name for name in ("epochs", "lr", "batch_size", "method") if name in names]
    x, y, rest = order[0], order[1], order[2:]
    columns = sorted({o.configuration.settings[x] for o in outcomes})
    lines = sorted({o.configuration.settings[y] for o in outcomes})
    panels: dict[str, list[list[float | None]]] = {}
    notes: dict[str, list[list[Any]]] = {}
    for o in outcomes:
        s: Mapping[str, Any] = o.configuration.settings
        name = scores.settings(s, rest)
        panel = panels.setdefault(name, [[None] * len(columns) for _ in lines])
        i, j = lines.index(s[y]), columns.index(s[x])
        panel[i][j] = o.dev
        if scores.note_of(o):
            notes.setdefault(name, []).append([i, j, scores.note_of(o)])
    options = {
        "x_labels": [str(v) for v in columns],
        "y_labels": [f"{v:g}" if isinstance(v, float) else str(v) for v in lines],
        "title": f"{metric.capitalize()} on dev after the last epoch",
        "x_title": scores.named(x),
        "y_title": scores.named(y),
        "value_title": f"dev {metric}",
        "least": widest_interval((o.dev, scores.size_of(o)) for o in outcomes),
    }
    if len(panels) == 1:
        (name,) = panels
        return Figure("heat-map", "heat_map", panels[name], {**options, "notes": notes.get(name, [])})
    return Figure("heat-maps", "small_multiples", panels, {**options, "notes": notes, "numbers": True})
