"""The figures of runs: curves, scores beside baselines, confusion, confidence, cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heedful.errors import shorten
from heedful.report.charts import bars, heat_map, lines, scatter
from heedful.report.parts import Chart
from heedful.report.reading import SHARES, RunFacts
from heedful.runs.schemas import Metrics, Prediction, SplitResult
from heedful.statistics.proportions import widest_interval, wilson

Points = list[tuple[float | None, ...]]
CURVES = {"train": "train, while training", "train_eval": "train", "dev": "dev", "test": "test"}
"""What the splits of metrics.jsonl are called: of train in evaluation mode nothing needs to be said."""
BASELINES = {"chance": "chance", "majority": "most frequent label", "bag_of_words": "bag of words"}
LABELS_DRAWN = 60
WIDE_RANGE = 8.0
"""From so many times the smallest value on an axis is logarithmic."""


def metric_name(metric: str) -> str:
    """Write a metric's name in words."""
    return metric.replace("_", " ")


def by_step(run: RunFacts) -> bool:
    """Language models are watched by step; epochs say more about a task's labels."""
    return run.metric == "perplexity" or max((row.epoch for row in run.metrics), default=0) < 2


def points(
    run: RunFacts, split: str, field: Callable[[Metrics], float | None], *, steps: bool, band: bool = False
) -> Points:
    """Give one curve, by step or by epoch; with `band`, a share has its interval."""
    found: Points = []
    for row in run.metrics:
        y = field(row)
        if row.split != split or y is None:
            continue
        x = row.step if steps else row.epoch
        inside = band and row.n and 0 <= y <= 1
        found.append((x, y, *wilson(y * (row.n or 1), row.n or 1)) if inside else (x, y))
    return found


def score_curves(run: RunFacts) -> Chart | None:
    """Draw a run's score on train and dev: each curve's best marked, baselines, where dev fell."""
    share = run.metric in SHARES
    splits = ["train_eval", "dev"]
    if not any(row.split == "train_eval" and row.value is not None for row in run.metrics):
        splits = ["train", "dev"]
    series = {
        CURVES[s]: points(run, s, lambda row: row.value, steps=by_step(run), band=share and s == "dev")
        for s in splits
    }
    series = {name: curve for name, curve in series.items() if curve}
    if not series:
        return None
    name = metric_name(run.metric)
    values = [p[1] for curve in series.values() for p in curve if p[1] is not None]
    dev = run.split("dev")
    falls = run.check("dev_falls_while_train_rises")
    note: dict[str, float] = {}
    if falls is not None and falls.status in ("warning", "failed") and series.get("dev"):
        best = (max if run.better == "max" else min)(series["dev"], key=lambda p: p[1] or 0.0)
        note = {"dev falls from here": best[0] or 0.0}
    if run.better == "min" and note:
        note = {"dev worsens from here": next(iter(note.values()))}
    return lines(
        series,
        title=f"{name.capitalize()} by {'step' if by_step(run) else 'epoch'}",
        subtitle="large dot: a curve's best" + ("; band: 95 % interval of dev" if share else ""),
        x_title="step" if by_step(run) else "epoch",
        y_title=name,
        log_y=not share and wide(values),
        mark_best=run.better,
        rules=note,
        levels=baseline_levels(dev.baselines if dev else None),
    )


def loss_curves(run: RunFacts) -> Chart | None:
    """Draw a run's loss while training, and on train and dev in evaluation mode."""
    series = {
        name: points(run, split, lambda row: row.loss, steps=by_step(run)) for split, name in CURVES.items()
    }
    series = {name: curve for name, curve in series.items() if curve}
    if not series:
        return None
    return lines(
        series,
        title=f"Loss by {'step' if by_step(run) else 'epoch'}",
        subtitle="large dot: a curve's best" + part_names(run),
        x_title="step" if by_step(run) else "epoch",
        y_title="loss",
        mark_best="min",
    )


def part_names(run: RunFacts) -> str:
    """Say of what a loss is the sum."""
    parts = next((row.losses for row in run.metrics if row.losses), None)
    return f"; while training it is the sum of {' and '.join(parts)}" if parts and len(parts) > 1 else ""


def wide(values: Sequence[float]) -> bool:
    """Tell whether values need a logarithmic axis."""
    positive = [v for v in values if v > 0]
    return bool(positive) and max(positive) / min(positive) >= WIDE_RANGE


def baseline_levels(baselines: Mapping[str, float] | None) -> dict[str, float]:
    """Name baselines in words."""
    return {BASELINES.get(name, name.replace("_", " ")): value for name, value in (baselines or {}).items()}


def agreed(found: Sequence[SplitResult | None]) -> dict[str, float]:
    """The baselines that all scored runs have alike; one of a run alone would be read as everybody's."""
    each = [baseline_levels(split.baselines) for split in found if split is not None]
    return (
        {name: value for name, value in each[0].items() if all(e.get(name) == value for e in each)}
        if each
        else {}
    )


def score_bars(run: RunFacts) -> Chart | None:
    """Draw a run's scores beside what simple classifiers have on the same examples."""
    rows: list[dict[str, Any]] = []
    splits = run.results.splits if run.results else {}
    for split, found in splits.items():
        low, high = found.ci95 or (None, None)
        row = {"label": "this model", "group": split, "value": found.value, "low": low, "high": high}
        rows.append(row if found.value is not None else {**row, "note": "not a number"})
    for split, found in splits.items():
        for name, value in baseline_levels(found.baselines).items():
            rows.append({"label": name, "group": split, "value": value})
    if len(rows) == len(splits):
        return None
    name = metric_name(run.metric)
    return bars(
        rows,
        title=f"{name.capitalize()} beside simple baselines",
        subtitle="with 95 % intervals" if any(found.ci95 for found in splits.values()) else "",
        y_title=name,
        y_domain=(0, 1) if run.metric in SHARES else None,
    )


def confusion_map(run: RunFacts) -> Chart | None:
    """Draw which label was taken for which, as shares of each true label."""
    found = run.split(run.scored) if run.scored else None
    labels = run.results.labels if run.results else None
    if found is None or found.confusion is None or not labels or len(labels) > LABELS_DRAWN:
        return None
    totals = [sum(row) for row in found.confusion]
    shares = [[c / n if n else None for c in row] for row, n in zip(found.confusion, totals, strict=True)]
    cells = [(i, j) for i in range(len(labels)) for j in range(len(labels))]
    counts = {(i, j): f"{found.confusion[i][j]:,} of {totals[i]:,}" for i, j in cells if totals[i]}
    names = [shorten(label, 24) for label in labels]
    return heat_map(
        shares,
        x_labels=names,
        y_labels=names,
        title=f"Which label was taken for which, on {run.scored}",
        subtitle="share of each true label; a row adds up to 100 %",
        x_title="predicted label",
        y_title="true label",
        value_title="share",
        domain=(0, 1),
        form=".0%",
        notes={cell: "this label does not occur" for cell in cells if cell not in counts},
        hover=counts,
    )


def confidence(prediction: Prediction) -> float | None:
    """How sure the model was of what it said."""
    given = prediction.probabilities
    return given.get(prediction.predicted, max(given.values(), default=0.0)) if given else None


def right(prediction: Prediction) -> bool:
    """Tell whether an answer is right; runs of white space count as one."""
    return prediction.label is not None and prediction.predicted.split() == prediction.label.split()


def reliability(run: RunFacts, bins: int = 10) -> Chart | None:
    """Draw how sure the model was against how often it was right, in groups of equal size."""
    known = sorted(
        (sure, right(p))
        for p in run.predictions
        if (sure := confidence(p)) is not None and p.label is not None
    )
    groups = min(bins, len(known) // 20)
    if groups < 2:
        return None
    curve: Points = []
    for i in range(groups):
        group = known[i * len(known) // groups : (i + 1) * len(known) // groups]
        hits = sum(hit for _, hit in group)
        sure, share = sum(sure for sure, _ in group) / len(group), hits / len(group)
        curve.append((sure, share, *wilson(hits, len(group))))
    low = math.floor(10 * min(p[0] for p in curve if p[0] is not None)) / 10
    return lines(
        {"this model": curve},
        title=f"How sure it was, and how often right, on {run.scored}",
        subtitle=f"{len(known):,} examples in {groups} groups of equal size; band: 95 % interval; "
        "dashed: ideal",
        x_title="mean confidence of a group",
        y_title="share right",
        x_domain=(low, 1),
        y_domain=(0, 1),
        guide=[(low, low), (1, 1)],
    )


def overlaid(runs: Sequence[RunFacts], split: str) -> Chart | None:
    """Draw one curve a run on the same axes."""
    first = runs[0]
    share = first.metric in SHARES
    short = [by_step(run) for run in runs]
    epochs = [max((row.epoch for row in run.metrics), default=0.0) for run in runs]
    steps = all(short) or (any(short) and wide(epochs))
    series = {run.name: points(run, split, lambda row: row.value, steps=steps) for run in runs}
    series = {name: curve for name, curve in series.items() if curve}
    if not series:
        return None
    known = [p[1] for curve in series.values() for p in curve if p[1] is not None]
    name = metric_name(first.metric)
    drawn = [row for run in runs for row in run.metrics if row.split == split]
    return lines(
        series,
        title=f"{name.capitalize()} on {'train' if split.startswith('train') else split}, all runs",
        subtitle="large dot: a run's best",
        x_title="step" if steps else "epoch",
        y_title=name,
        log_y=not share and wide(known),
        y_least=widest_interval((row.value, row.n) for row in drawn) if share else None,
        mark_best=first.better,
        levels=agreed([run.split("dev") for run in runs]) if split == "dev" else None,
    )


def compared_bars(runs: Sequence[RunFacts]) -> Chart | None:
    """Draw the scores of several runs with their intervals and the baselines."""
    rows: list[dict[str, Any]] = []
    for split in ("dev", "test"):
        for run in runs:
            found = run.split(split)
            if found is not None:
                low, high = found.ci95 or (None, None)
                rows.append(
                    {"label": run.name, "group": split, "value": found.value, "low": low, "high": high}
                )
    unfinished = [run for run in runs if run.results is None]
    groups = list(dict.fromkeys(row["group"] for row in rows))
    rows += [
        {"label": run.name, "group": group, "value": None, "note": run.lacking}
        for run in unfinished
        for group in groups
    ]
    if not rows:
        return None
    first = next(run for run in runs if run.results)
    name = metric_name(first.metric)
    per_split = {split: agreed([run.split(split) for run in runs]) for split in groups}
    own = per_split[groups[-1]]
    same = all(found == own for found in per_split.values())
    return bars(
        rows,
        title=f"{name.capitalize()} of each run",
        subtitle="with 95 % intervals" if any(row.get("low") is not None for row in rows) else "",
        y_title=name,
        y_domain=(0, 1) if first.metric in SHARES else None,
        rules=own if same else {f"{known}, {groups[-1]}": value for known, value in own.items()},
    )


def cost_scatter(runs: Sequence[RunFacts]) -> Chart | None:
    """Draw the score against the time it took."""
    split = next((s for s in ("test", "dev") if sum(run.split(s) is not None for run in runs) > 1), None)
    if split is None:
        return None
    rows = []
    for run in runs:
        found = run.split(split)
        if found is not None and run.results is not None:
            low, high = found.ci95 or (None, None)
            row = {"x": run.results.seconds / 60, "y": found.value, "low": low, "high": high}
            rows.append({**row, "label": run.name, "group": run.method or run.command})
    times = [row["x"] for row in rows]
    name = metric_name(runs[0].metric)
    return scatter(
        rows,
        title=f"{name.capitalize()} on {split} against time",
        subtitle="with 95 % intervals" if any(row["low"] is not None for row in rows) else "",
        x_title="minutes of training",
        y_title=name,
        log_x=wide([float(t) for t in times if t is not None]),
    )
