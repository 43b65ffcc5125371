"""Scores of a study's runs: their metric, which runs learned nothing, and which are as good as the best."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from heedful.evaluation.metrics import Array, Metric
from heedful.evaluation.metrics import find_metric as find_metric_of_labels
from heedful.report.run_figures import shared_baselines
from heedful.runs.answers import Figure, Note
from heedful.runs.directory import CHECKS, Run
from heedful.runs.json_files import read_jsonl
from heedful.runs.schemas import SplitResult
from heedful.runs.studies import Outcome
from heedful.statistics.comparison import ALPHA, holm
from heedful.statistics.proportions import widest_interval
from heedful.studies.shared import sentences

CONSTANT = "constant_answer"


def find_metric(outcomes: Iterable[Outcome]) -> Metric | None:
    """Return the metric that the runs are compared by; None while no run has a score."""
    for outcome in outcomes:
        if (dev := dev_result(outcome)) is not None and outcome.dev is not None:
            labels = outcome.results.labels if outcome.results is not None else None
            return find_metric_of_labels(dev.metric, labels or ())
    return None


def metric_title(outcomes: Iterable[Outcome]) -> str:
    metric = find_metric(outcomes)
    return "score" if metric is None else metric.title


def dev_result(outcome: Outcome) -> SplitResult | None:
    return outcome.results.splits.get("dev") if outcome.results is not None else None


def dev_interval(outcome: Outcome) -> dict[str, float | None]:
    dev = dev_result(outcome)
    low, high = (dev.ci95 if dev is not None else None) or (None, None)
    return {"low": low, "high": high}


def describe_outcome(outcome: Outcome) -> str:
    """Return why a run has no score, or that it learned nothing that shows."""
    if outcome.ended is not None:
        return f"{outcome.state}: {outcome.ended.reason}"
    return describe_low([outcome])


def describe_low(runs: Sequence[Outcome]) -> str:
    """Return that all runs collapsed, or that none is above the most frequent label; empty otherwise."""
    if not runs:
        return ""
    if all(has_collapsed(o) for o in runs):
        return sentences.COLLAPSED
    if any(is_above_baseline(o) for o in runs):
        return ""
    return sentences.NO_ANSWER if all(CONSTANT in dev_baselines(o) for o in runs) else sentences.NOT_ABOVE


def describe_partly_low(runs: Sequence[Outcome]) -> str:
    """Return what `describe_low` returns, or that some of these seeds collapsed."""
    lost = sum(has_collapsed(o) for o in runs)
    some = sentences.SOME_COLLAPSED.format(lost=lost, runs=len(runs)) if lost else ""
    return describe_low(runs) or some


def dev_baselines(outcome: Outcome) -> Mapping[str, float]:
    dev = dev_result(outcome)
    return (dev.baselines if dev is not None else None) or {}


def find_baselines(outcomes: Iterable[Outcome], split: str = "dev") -> dict[str, float]:
    """Return the baselines on a split that all finished runs share, by the names that figures show."""
    return shared_baselines([o.results.splits.get(split) for o in outcomes if o.results is not None])


def is_above_baseline(outcome: Outcome) -> bool:
    """Whether the whole interval on dev is better than one label, or one answer, for everything."""
    dev, baselines = dev_result(outcome), dev_baselines(outcome)
    baseline = baselines.get("majority", baselines.get(CONSTANT))
    if dev is None or dev.ci95 is None or baseline is None:
        return True
    low, high = dev.ci95
    near, sign = (low, 1) if dev.higher_is_better else (high, -1)
    return near is None or sign * near > sign * baseline


def has_collapsed(outcome: Outcome) -> bool:
    """Whether a finished run gives one answer to everything, by its own check."""
    if outcome.results is None or not (outcome.folder / CHECKS).is_file():
        return False
    checks = Run(outcome.folder).read_checks().checks
    return any(c.name == "collapse" and c.status in ("failed", "warning") for c in checks)


def collapse_notes(outcomes: Sequence[Outcome]) -> list[Note]:
    finished = [o for o in outcomes if o.results is not None]
    lost = sum(has_collapsed(o) for o in finished)
    if 2 * lost <= len(finished):
        return []
    return [Note(sentences.MOST_COLLAPSED.format(lost=lost, finished=len(finished)), "warning")]


def read_examples(outcome: Outcome, split: str = "dev") -> tuple[Array, Array]:
    """Return what the run's metric is computed from: the targets of a split's examples and the outputs."""
    path, metric = outcome.folder / f"predictions_{split}.jsonl", find_metric([outcome])
    labels = outcome.results.labels if outcome.results is not None else None
    reads = "predictions" if metric is None else metric.reads
    return read_predictions(path, path.stat().st_mtime_ns, reads, tuple(labels or ()))


@lru_cache(maxsize=512)
def read_predictions(path: Path, written: int, reads: str, labels: tuple[str, ...]) -> tuple[Array, Array]:
    """Read a file of predictions once; a study needs the same files again and again.

    Labels are numbered as while training, several labels per text are 0 or 1 each, numbers are numbers, and
    free answers stay texts.
    """
    rows = list(read_jsonl(path))
    if reads == "losses":
        return np.array([row["tokens"] for row in rows]), np.array([row["loss"] for row in rows])
    if rows and rows[0].get("value") is not None:
        numbers = np.array([(row["value"], row["predicted_value"]) for row in rows], np.float64)
        return numbers[:, 0], numbers[:, 1]
    if rows and rows[0].get("labels") is not None:
        sets, predicted = (
            np.array([[label in row[key] for label in labels] for row in rows], np.uint8)
            for key in ("labels", "predicted_labels")
        )
        if reads == "predictions":
            return sets, predicted
        return sets, np.array([[row["probabilities"][label] for label in labels] for row in rows])
    number = {label: i for i, label in enumerate(labels)}
    kind = np.int64 if labels else object
    targets = np.array([number.get(row["label"], row["label"]) for row in rows], kind)
    if reads == "probabilities":
        return targets, np.array([[row["probabilities"][label] for label in labels] for row in rows])
    return targets, np.array([number.get(row["predicted"], row["predicted"]) for row in rows], kind)


def find_tied(best: Outcome, outcomes: Sequence[Outcome], split: str = "dev") -> list[Outcome]:
    """Return the finished runs that cannot be told apart from the best, corrected for all tests."""
    finished = [best, *(o for o in outcomes if o.results is not None and o.name != best.name)]
    metric = find_metric(finished)
    targets, _ = read_examples(best, split)
    if metric is None or len(targets) < 2:
        return []
    # Any of them could have been the best: every pair counts as a test.
    pairs = list(combinations(finished, 2))
    outputs = {o.name: read_examples(o, split)[1] for o in finished}
    corrected = holm([metric.p_value(targets, outputs[a.name], outputs[b.name]) for a, b in pairs])
    return [b for (a, b), p in zip(pairs, corrected, strict=True) if a is best and p >= ALPHA]


def draw_curves(outcomes: Mapping[str, Outcome], title: str, split: str = "dev") -> Figure:
    rows = {name: [row for row in o.find_metrics() if row.split == split] for name, o in outcomes.items()}
    metric = find_metric(outcomes.values())
    options: dict[str, Any] = {
        "title": title,
        "x_title": "epoch",
        "y_title": f"{metric_title(outcomes.values())} on {split.removesuffix('_eval')}",
        "mark_best": "max" if metric is None or metric.higher_is_better else "min",
    }
    if split == "dev":
        options["levels"] = find_baselines(outcomes.values())
    # An axis of shares is at least as high as one interval, so that chance does not look like much.
    height = widest_interval((row.value, row.n) for curve in rows.values() for row in curve)
    if height is not None:
        options["y_least"] = height
    curves = {name: [[row.epoch, row.value] for row in curve] for name, curve in rows.items()}
    return Figure(f"{split}-curves", "lines", curves, options)
