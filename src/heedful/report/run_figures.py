"""The figures of runs: curves, scores beside baselines, confusion, confidence, cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from heedful.errors import shorten
from heedful.report.charts import Chart, bars, heat_map, lines, scatter
from heedful.report.charts.vega import WHILE_TRAINING
from heedful.report.facts import RunFacts
from heedful.report.formats import capitalize
from heedful.runs.schemas import Prediction, SplitResult
from heedful.statistics.calibration import reliability
from heedful.statistics.proportions import widest_interval, wilson

Points = list[tuple[float | None, ...]]
CURVES = {"train": f"train{WHILE_TRAINING}", "train_eval": "train", "dev": "dev", "test": "test"}
"""The names of the splits in metrics.jsonl; `train_eval` is train in evaluation mode."""
BASELINES = {"chance": "chance", "majority": "most frequent label", "bag_of_words": "bag of words"}
LABELS_MOST = 20
"""With more labels than this, the confusion matrix has only those that are confused most."""
CONFUSED_MOST = 12
WIDE_RANGE = 8.0
"""If the largest value is this many times the smallest, the axis is logarithmic."""
BINS, BIN_EXAMPLES = 10, 20
WITH_INTERVALS = "with 95 % intervals"


def is_followed_by_step(run: RunFacts) -> bool:
    """Whether the curves of a run are drawn by step: for language models, and for less than two epochs."""
    return run.is_language_model or max((row.epoch for row in run.metrics), default=0) < 2


def make_curve(
    run: RunFacts, split: str, field: Literal["value", "loss"], *, by_step: bool, band: bool = False
) -> Points:
    """Return the points of one curve; with `band`, shares have their 95 % interval."""
    points: Points = []
    for row in run.metrics:
        y: float | None = getattr(row, field)
        if row.split != split or y is None:
            continue
        x = row.step if by_step else row.epoch
        has_interval = band and row.n and 0 <= y <= 1
        points.append((x, y, *wilson(y * (row.n or 1), row.n or 1)) if has_interval else (x, y))
    return points


def kept_at(run: RunFacts, *, by_step: bool) -> float | None:
    """Return the step or the epoch of the model that the run kept; None if it is not finished."""
    best = None if run.results is None else run.results.best_step
    row = next((row for row in run.metrics if row.split == "dev" and row.step == best), None)
    return None if row is None else row.step if by_step else row.epoch


def draw_score_curves(run: RunFacts) -> Chart | None:
    """Draw a run's score on train and dev, with baselines and the point from which dev falls."""
    by_step, is_share = is_followed_by_step(run), run.metric_is_share
    has_train_eval = any(row.split == "train_eval" and row.value is not None for row in run.metrics)
    curves = {
        CURVES[s]: curve
        for s in ("train_eval" if has_train_eval else "train", "dev")
        if (curve := make_curve(run, s, "value", by_step=by_step, band=is_share and s == "dev"))
    }
    if not curves:
        return None
    dev = run.split("dev")
    falls = run.check("dev_falls_while_train_rises")
    rules: dict[str, float] = {}
    kept = kept_at(run, by_step=by_step) if curves.get("dev") else None
    if falls is not None and falls.status in ("warning", "failed") and kept is not None:
        rules[f"dev {'falls' if run.best_is == 'max' else 'worsens'} from here"] = kept
    x_title = "step" if by_step else "epoch"
    return lines(
        curves,
        title=f"{capitalize(run.metric)} by {x_title}",
        subtitle="large dot: best on train, kept on dev" + ("; band: 95 % interval" if is_share else ""),
        x_title=x_title,
        y_title=run.metric,
        log_y=not is_share and needs_log_axis([p[1] for curve in curves.values() for p in curve]),
        mark_best=run.best_is,
        marks={} if kept is None else {"dev": kept},
        rules=rules,
        levels=name_baselines(dev.baselines if dev else None),
    )


def draw_loss_curves(run: RunFacts) -> Chart | None:
    by_step = is_followed_by_step(run)
    curves = {
        name: curve
        for split, name in CURVES.items()
        if (curve := make_curve(run, split, "loss", by_step=by_step))
    }
    if not curves:
        return None
    parts = next((row.losses for row in run.metrics if row.losses), {})
    is_sum = f"; while training it is the sum of {' and '.join(parts)}" if len(parts) > 1 else ""
    x_title = "step" if by_step else "epoch"
    return lines(
        curves,
        title=f"Loss by {x_title}",
        subtitle="large dot: a curve's best" + is_sum,
        x_title=x_title,
        y_title="loss",
        mark_best="min",
    )


def needs_log_axis(values: Sequence[float | None]) -> bool:
    positive = [v for v in values if v is not None and v > 0]
    return bool(positive) and max(positive) / min(positive) >= WIDE_RANGE


def name_baselines(baselines: Mapping[str, float] | None) -> dict[str, float]:
    return {BASELINES.get(name, name.replace("_", " ")): value for name, value in (baselines or {}).items()}


def shared_baselines(results: Sequence[SplitResult | None]) -> dict[str, float]:
    """Return the baselines that are the same for all scored runs; others would be read as everybody's."""
    each = [name_baselines(result.baselines) for result in results if result is not None]
    first = each[0] if each else {}
    return {name: value for name, value in first.items() if all(e.get(name) == value for e in each)}


def make_score_row(label: str, split: str, result: SplitResult) -> dict[str, Any]:
    low, high = result.ci95 or (None, None)
    row = {"label": label, "group": split, "value": result.value, "low": low, "high": high}
    return row if result.value is not None else {**row, "note": "not a number"}


def draw_scores(run: RunFacts) -> Chart | None:
    splits = run.results.splits if run.results else {}
    rows = [make_score_row("this model", split, result) for split, result in splits.items()]
    baselines = [
        {"label": name, "group": split, "value": value, "weak": True}
        for split, result in splits.items()
        for name, value in name_baselines(result.baselines).items()
    ]
    if not baselines:
        return None
    detail = run.detail_result
    low, high = (detail.ci95 if detail else None) or (None, None)
    band = {"low": low, "high": high, "group": run.detail_split} if low is not None else None
    shaded = f"; shaded: that of this model on {run.detail_split}" if band else ""
    return bars(
        rows + baselines,
        title=f"{capitalize(run.metric)} beside simple baselines",
        subtitle=WITH_INTERVALS + shaded if any(result.ci95 for result in splits.values()) else "",
        y_title=run.metric,
        y_domain=(0, 1) if run.metric_is_share else None,
        band=band,
    )


def draw_confusion(labels: Sequence[str], confusion: Sequence[Sequence[int]], split: str) -> Chart:
    """Draw the confusion matrix with its counts; of very many labels, those that are confused most."""
    totals = [sum(row) for row in confusion]
    shown = choose_labels(confusion)
    n = len(shown)
    counts = [[confusion[i][j] for j in shown] for i in shown]
    shares = [
        [c / totals[i] if totals[i] else None for c in row] for i, row in zip(shown, counts, strict=True)
    ]
    cells = {(a, b): totals[i] for a, i in enumerate(shown) for b in range(n)}
    shares_of = {(a, b): f"{counts[a][b] / of:.1%} of {of:,}" for (a, b), of in cells.items() if of}
    names = [shorten(labels[i], 32) for i in shown]
    subtitle = "number of examples; the color is their share of the true label"
    if n < len(labels):
        subtitle = f"the {n} labels of {len(labels)} that are confused most; {subtitle}"
    return heat_map(
        shares,
        x_labels=names,
        y_labels=names,
        title=f"Confusion matrix on {split}",
        subtitle=subtitle,
        x_title="predicted label",
        y_title="true label",
        value_title="share",
        domain=(0, 1),
        form=".0%",
        numbers=True,
        notes={cell: "this label does not occur" for cell, of in cells.items() if not of},
        hover=shares_of,
        written={(a, b): f"{counts[a][b]:,}" if counts[a][b] else "" for a, b in shares_of},
    )


def choose_labels(confusion: Sequence[Sequence[int]]) -> list[int]:
    """Return the positions of all labels, or, of very many, of those in the most frequent confusions."""
    if len(confusion) <= LABELS_MOST:
        return list(range(len(confusion)))
    pairs = [
        (count, i, j) for i, row in enumerate(confusion) for j, count in enumerate(row) if count and i != j
    ]
    pairs.sort(key=lambda pair: (-pair[0], *pair[1:]))
    shown = list(dict.fromkeys(label for _, i, j in pairs for label in (i, j)))
    return sorted((shown or list(range(len(confusion))))[:CONFUSED_MOST])


def get_confidence(prediction: Prediction) -> float | None:
    probabilities = prediction.probabilities
    if not probabilities:
        return None
    return probabilities.get(prediction.predicted, max(probabilities.values()))


def is_right(prediction: Prediction) -> bool:
    """Whether a prediction equals its label; runs of white space count as one."""
    return prediction.label is not None and prediction.predicted.split() == prediction.label.split()


def draw_reliability(run: RunFacts) -> Chart | None:
    answers = [
        (confidence, is_right(p))
        for p in run.predictions
        if (confidence := get_confidence(p)) is not None and p.label is not None
    ]
    n_groups = min(BINS, len(answers) // BIN_EXAMPLES)
    if n_groups < 2:
        return None
    groups = reliability([c for c, _ in answers], [right for _, right in answers], n_groups)
    lowest = min(value for group in groups for value in (group.confidence, group.interval[0]))
    low = math.floor(10 * max(0.0, lowest)) / 10
    return lines(
        {str(run.detail_split): [(group.confidence, group.accuracy, *group.interval) for group in groups]},
        title=f"Confidence and accuracy on {run.detail_split}",
        subtitle=f"{len(answers):,} examples in {n_groups} groups of equal size; band: 95 % interval; "
        "dashed: perfect calibration",
        x_title="mean confidence of a group",
        y_title="share right",
        x_domain=(low, 1),
        y_domain=(low, 1),
        guide=[(low, low), (1, 1)],
        square=True,
    )


def draw_run_curves(runs: Sequence[RunFacts], split: str) -> Chart | None:
    first = runs[0]
    is_share = first.metric_is_share
    followed_by_step = [is_followed_by_step(run) for run in runs]
    epochs = [max((row.epoch for row in run.metrics), default=0.0) for run in runs]
    by_step = all(followed_by_step) or (any(followed_by_step) and needs_log_axis(epochs))
    curves = {run.name: curve for run in runs if (curve := make_curve(run, split, "value", by_step=by_step))}
    if not curves:
        return None
    rows = [row for run in runs for row in run.metrics if row.split == split]
    return lines(
        curves,
        title=f"{capitalize(first.metric)} on {'train' if split.startswith('train') else split}, all runs",
        subtitle="large dot: the model that was kept",
        x_title="step" if by_step else "epoch",
        y_title=first.metric,
        log_y=not is_share and needs_log_axis([p[1] for curve in curves.values() for p in curve]),
        y_least=widest_interval((row.value, row.n) for row in rows) if is_share else None,
        mark_best=first.best_is,
        marks={run.name: at for run in runs if (at := kept_at(run, by_step=by_step)) is not None},
        levels=shared_baselines([run.split("dev") for run in runs]) if split == "dev" else None,
    )


def draw_run_scores(runs: Sequence[RunFacts]) -> Chart | None:
    rows = [
        make_score_row(run.name, split, result)
        for split in ("dev", "test")
        for run in runs
        if (result := run.split(split)) is not None
    ]
    if not rows:
        return None
    groups = list(dict.fromkeys(row["group"] for row in rows))
    rows += [
        {"label": run.name, "group": group, "value": None, "note": run.missing_reason}
        for run in runs
        if run.results is None
        for group in groups
    ]
    first = next(run for run in runs if run.results)
    by_split = [shared_baselines([run.split(split) for run in runs]) for split in groups]
    baselines = by_split[-1]
    if any(other != baselines for other in by_split):
        baselines = {f"{name}, {groups[-1]}": value for name, value in baselines.items()}
    return bars(
        rows,
        title=f"{capitalize(first.metric)} of each run",
        subtitle=WITH_INTERVALS if any(row.get("low") is not None for row in rows) else "",
        y_title=first.metric,
        y_domain=(0, 1) if first.metric_is_share else None,
        rules=baselines,
    )


def draw_cost(runs: Sequence[RunFacts]) -> Chart | None:
    split = next((s for s in ("test", "dev") if sum(run.split(s) is not None for run in runs) > 1), None)
    if split is None:
        return None
    rows: list[dict[str, Any]] = []
    for run in runs:
        result = run.split(split)
        if result is not None and run.results is not None:
            low, high = result.ci95 or (None, None)
            point = {"x": run.results.seconds / 60, "y": result.value, "low": low, "high": high}
            rows.append({**point, "label": run.name, "group": run.method or run.command})
    return scatter(
        rows,
        title=f"{capitalize(runs[0].metric)} on {split} against training time",
        subtitle=WITH_INTERVALS if any(row["low"] is not None for row in rows) else "",
        x_title="minutes of training",
        y_title=runs[0].metric,
        log_x=needs_log_axis([row["x"] for row in rows]),
        levels=shared_baselines([run.split(split) for run in runs]),
    )
