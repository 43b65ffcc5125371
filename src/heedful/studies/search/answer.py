"""The answer of a search: the best cell, its score on test, and what the grid leaves open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from heedful.report.formats import capitalize
from heedful.runs.answers import Answer, Figure, Note, Table
from heedful.runs.studies import Outcome, StudyRecord
from heedful.statistics.proportions import widest_interval
from heedful.studies.base import failure_notes, failure_reasons, find_best
from heedful.studies.search.study import HEADS
from heedful.studies.shared import scores, search_space, sentences
from heedful.studies.shared.search_space import Range


def write_answer(record: StudyRecord, outcomes: Sequence[Outcome]) -> Answer:
    names = find_searched(record, outcomes)
    best = find_best(outcomes)
    notes = [*edge_notes(record, outcomes, best), *scores.collapse_notes(outcomes), *failure_notes(outcomes)]
    epochs = count_epochs(outcomes)
    summary = describe_best(outcomes, best, names)
    if epochs["trained"] < epochs["asked"]:
        summary.append(sentences.SEARCH_EPOCHS.format(**epochs))
    if epochs["heads"] > 1:
        summary.append(sentences.SEARCH_HEADS.format(heads=epochs["heads"]))
    test = best.results.splits.get("test") if best is not None and best.results is not None else None
    others = [f"runs/{o.name}" for o in outcomes if o is not best and o.results is not None]
    return Answer(
        study=record.kind,
        title=record.question,
        summary=tuple(summary),
        notes=tuple(notes),
        figures=tuple(draw_figures(record, outcomes, names)),
        tables=(make_table(outcomes, names),),
        runs=(*([f"runs/{best.name}"] if best is not None else []), *others),
        facts={
            "chosen": best and best.name,
            "settings": best and best.configuration.settings,
            "dev": best and best.dev,
            "test": test,
            "epochs": epochs,
            "failed": failure_reasons(outcomes),
            "warnings": [note.text for note in notes],
        },
    )


def find_searched(record: StudyRecord, outcomes: Sequence[Outcome]) -> list[str]:
    """Return the names of the settings that were searched, though all draws may have the same value."""
    space = search_space.read_space(record.options, ranges=True)
    varied = search_space.varied_names([o.configuration.settings for o in outcomes])
    searched = {*varied, *search_space.searched_names(space)}
    return [name for name in search_space.KINDS if name in searched]


def describe_best(outcomes: Sequence[Outcome], best: Outcome | None, names: Sequence[str]) -> list[str]:
    if best is None or best.results is None:
        return [sentences.SEARCH_WAITING]
    metric = scores.metric_title([best])
    settings = sentences.describe_settings(best.configuration.settings, names)
    score = sentences.describe_score(best.results.splits["dev"])
    text = sentences.SEARCH_BEST.format(settings=settings, metric=metric, score=score)
    low = scores.describe_low([best])
    if low == sentences.COLLAPSED:
        text += sentences.SEARCH_BEST_COLLAPSED
    elif low:
        text += sentences.SEARCH_BEST_LOW.format(how=low)
    summary = [text]
    tied = len(scores.find_tied(best, outcomes))
    others = sum(o.results is not None for o in outcomes) - 1
    if tied and tied == others:
        summary.append(sentences.SEARCH_ALL_TIED)
    elif tied:
        summary.append(sentences.SEARCH_SOME_TIED.format(tied=tied, others=others))
    elif others and len(scores.read_examples(best)[0]) > 1:
        summary.append(sentences.SEARCH_BEATS_ALL)
    test = best.results.splits.get("test")
    if test is not None:
        bag_of_words = (test.baselines or {}).get("bag_of_words")
        baseline = "" if bag_of_words is None else sentences.SEARCH_TEST_BASELINE.format(value=bag_of_words)
        score = sentences.describe_score(test)
        summary.append(sentences.SEARCH_TEST.format(metric=metric, score=score, baseline=baseline))
    return summary


def make_table(outcomes: Sequence[Outcome], names: Sequence[str]) -> Table:
    rows = []
    for o in outcomes:
        values = [o.configuration.settings[name] for name in names]
        seconds = round(o.results.seconds, 1) if o.results is not None else None
        interval = sentences.split_interval(scores.dev_result(o))
        rows.append((*values, o.dev, interval, seconds, scores.describe_outcome(o)))
    titles = [sentences.option_title(name) for name in names]
    metric = scores.metric_title(outcomes)
    return Table((*titles, f"dev {metric}", "95 % interval", "seconds", "note"), tuple(rows), "")


def edge_notes(record: StudyRecord, outcomes: Sequence[Outcome], best: Outcome | None) -> list[Note]:
    """Warn when the best is on the edge of the grid."""
    if best is None or scores.has_collapsed(best):
        return []
    notes, method = [], best.configuration.settings.get("method")
    for name, (lowest, highest) in sentences.SEARCH_ENDS.items():
        text = record.options.get(name)
        axis = search_space.read_axis(name, text) if text else ()
        # Each method has its own learning rates.
        similar = [o for o in outcomes if name != "lr" or o.configuration.settings.get("method") == method]
        tried = sorted({float(o.configuration.settings[name]) for o in similar})
        if isinstance(axis, Range) or len(tried) < 2:
            continue
        value = best.configuration.settings[name]
        end = {tried[0]: lowest, tried[-1]: highest}.get(float(value))
        if end is not None:
            setting = sentences.describe_setting(name, value)
            notes.append(Note(sentences.SEARCH_EDGE.format(setting=setting, end=end), "warning"))
    return notes


def count_epochs(outcomes: Sequence[Outcome]) -> dict[str, int]:
    """Count the epochs asked for, the epochs trained, and the heads that shared features."""
    chains: dict[str, list[int]] = {}
    heads = set()
    for c in (o.configuration for o in outcomes):
        chains.setdefault(c.chain, []).append(int(c.settings["epochs"]))
        if c.job == HEADS:
            heads.add((c.settings["lr"], c.settings["batch_size"]))
    asked, trained = sum(map(sum, chains.values())), sum(map(max, chains.values()))
    return {"asked": asked, "trained": trained, "heads": len(heads)}


def draw_figures(record: StudyRecord, outcomes: Sequence[Outcome], names: Sequence[str]) -> list[Figure]:
    """Return a heat map of a grid, or the draws as points; and the curves of all runs."""
    figures = []
    if record.options.get("random") is not None or record.options.get("tpe") is not None:
        others = [name for name in names if name != "lr"]
        points = []
        for o in outcomes:
            if o.dev is not None:
                point = {"x": o.configuration.settings["lr"], "y": o.dev, **scores.dev_interval(o)}
                group = sentences.describe_settings(o.configuration.settings, others)
                points.append({**point, "label": o.name, "group": group})
        titles = {"title": "All draws", "subtitle": "with 95 % intervals", "x_title": "learning rate"}
        options: dict[str, Any] = {**titles, "y_title": f"dev {scores.metric_title(outcomes)}", "log_x": True}
        options["levels"] = scores.find_baselines(outcomes)
        figures.append(Figure("draws", "scatter", points, options))
    elif len(names) > 1:
        figures.append(draw_heat_map(outcomes, names))
    return [*figures, scores.draw_curves(find_longest(outcomes), "All runs")]


def find_longest(outcomes: Sequence[Outcome]) -> dict[str, Outcome]:
    """Return the longest of the runs that share epochs; its curve contains theirs."""
    begun = [o for o in outcomes if o.state != "waiting"]
    in_order = sorted(begun, key=lambda o: int(o.configuration.settings["epochs"]))
    longest = {o.configuration.chain: o.name for o in in_order}.values()
    return {o.name: o for o in begun if o.name in longest}


def draw_heat_map(outcomes: Sequence[Outcome], names: Sequence[str]) -> Figure:
    x, y, *rest = [name for name in ("epochs", "lr", "batch_size", "method") if name in names]
    columns = sorted({o.configuration.settings[x] for o in outcomes})
    lines = sorted({o.configuration.settings[y] for o in outcomes})
    panels: dict[str, list[list[float | None]]] = {}
    notes: dict[str, list[list[Any]]] = {}
    for o in outcomes:
        settings: Mapping[str, Any] = o.configuration.settings
        name = sentences.describe_settings(settings, rest)
        panel = panels.setdefault(name, [[None] * len(columns) for _ in lines])
        i, j = lines.index(settings[y]), columns.index(settings[x])
        panel[i][j] = o.dev
        if note := scores.describe_outcome(o):
            notes.setdefault(name, []).append([i, j, note])
    metric = scores.metric_title(outcomes)
    sizes = [(o.dev, dev.n if (dev := scores.dev_result(o)) is not None else None) for o in outcomes]
    baselines = ", ".join(f"{name} {value:.3g}" for name, value in scores.find_baselines(outcomes).items())
    options = {
        "subtitle": f"baselines: {baselines}" if baselines else "",
        "x_labels": [str(v) for v in columns],
        "y_labels": [f"{v:g}" if isinstance(v, float) else str(v) for v in lines],
        "title": f"{capitalize(metric)} on dev after the last epoch",
        "x_title": sentences.option_title(x),
        "y_title": sentences.option_title(y),
        "value_title": f"dev {metric}",
        "least": widest_interval(sizes),
    }
    if len(panels) == 1:
        (name,) = panels
        return Figure("heat-map", "heat_map", panels[name], {**options, "notes": notes.get(name, [])})
    return Figure("heat-maps", "small_multiples", panels, {**options, "notes": notes, "numbers": True})
