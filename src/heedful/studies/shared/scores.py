"""What studies say alike: intervals, tables of runs, curves, warnings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from heedful.evaluation.metrics import METRICS, Array, Metric
from heedful.report.formats import join_names
from heedful.runs.answers import Figure, Note
from heedful.runs.directory import CHECKS, Run
from heedful.runs.json_files import read_jsonl
from heedful.runs.schemas import Metrics, SplitResult
from heedful.runs.studies import Outcome
from heedful.statistics.comparison import holm
from heedful.statistics.proportions import widest_interval

ALPHA = 0.05
COLLAPSED, NOT_ABOVE = "collapsed", "no better than the most frequent label"
CONSTANT = "constant_answer"
NO_ANSWER = "no better than one answer to everything"
WORDS = {"lr": "learning rate", "epochs": "epochs", "batch_size": "batch size"}


def named(option: str) -> str:
    """An option in words."""
    return WORDS.get(option, option.replace("_", " "))


def setting(option: str, value: Any) -> str:
    """One setting in words."""
    if option == "epochs":
        return f"{value} epoch{'s' if value != 1 else ''}"
    return f"{named(option)} {value:g}" if isinstance(value, float) else f"{named(option)} {value}"


def settings(chosen: Mapping[str, Any], names: Sequence[str]) -> str:
    """Settings in words."""
    return join_names([setting(name, chosen[name]) for name in names]) if names else "these settings"


def find_metric(outcomes: Iterable[Outcome]) -> Metric | None:
    """Return the metric that runs are scored by; None if none of them is."""
    names = (o.results.splits["dev"].metric for o in outcomes if o.dev is not None and o.results)
    name = next(names, None)
    return None if name is None else METRICS.find(name)


def metric_of(outcomes: Iterable[Outcome]) -> str:
    """Return the name of the metric in words."""
    metric = find_metric(outcomes)
    return "score" if metric is None else metric.title


def interval(split: SplitResult | None) -> str:
    """A 95 % interval as text."""
    if split is None or split.ci95 is None or None in split.ci95:
        return ""
    return f"{split.ci95[0]:.3f} to {split.ci95[1]:.3f}"


def ends(outcome: Outcome) -> dict[str, float | None]:
    """The interval on dev, for a figure."""
    dev = outcome.results.splits.get("dev") if outcome.results is not None else None
    low, high = (dev.ci95 if dev is not None else None) or (None, None)
    return {"low": low, "high": high}


def size_of(outcome: Outcome) -> int | None:
    """How many examples dev has."""
    dev = outcome.results.splits.get("dev") if outcome.results is not None else None
    return dev.n if dev is not None else None


def scored(split: SplitResult) -> str:
    """A score with its interval, in a sentence."""
    return f"{split.value:.3f} (95 % interval {interval(split)})"


def note_of(outcome: Outcome) -> str:
    """Why a run has no score, or that it learnt nothing that shows."""
    if outcome.ended is not None:
        return f"{outcome.state}: {outcome.ended.reason}"
    return fallen([outcome])


def fallen(runs: Sequence[Outcome]) -> str:
    """That all of these runs collapsed, or that none is above the most frequent label; else nothing."""
    if not runs:
        return ""
    if all(collapsed(o) for o in runs):
        return COLLAPSED
    if any(above_majority(o) for o in runs):
        return ""
    return NO_ANSWER if all(CONSTANT in simple_of(o) for o in runs) else NOT_ABOVE


def partly_fallen(runs: Sequence[Outcome]) -> str:
    """What `fallen` says, or that some of these seeds collapsed."""
    lost = sum(collapsed(o) for o in runs)
    return fallen(runs) or (f"{lost} of {len(runs)} seeds collapsed" if lost else "")


def simple_of(outcome: Outcome) -> dict[str, float]:
    """What simple baselines have on dev."""
    dev = outcome.results.splits.get("dev") if outcome.results is not None else None
    return dict((dev.baselines if dev is not None else None) or {})


def above_majority(outcome: Outcome) -> bool:
    """Whether dev's whole interval lies above what one label or answer to all reaches, where it is known."""
    dev = outcome.results.splits.get("dev") if outcome.results is not None else None
    known = simple_of(outcome)
    simple = known.get("majority", known.get(CONSTANT))
    low = dev.ci95[0] if dev is not None and dev.ci95 is not None else None
    return low is None or simple is None or low > simple


def collapsed(outcome: Outcome) -> bool:
    """Whether a finished run gives one answer to everything, by its own check."""
    if outcome.results is None or not (outcome.folder / CHECKS).is_file():
        return False
    found = Run(outcome.folder).checks().checks
    return any(c.name == "collapse" and c.status in ("failed", "warning") for c in found)


def mostly_collapsed(outcomes: Sequence[Outcome]) -> list[Note]:
    """Warn when most runs learnt nothing."""
    finished = [o for o in outcomes if o.results is not None]
    fallen = [o for o in finished if collapsed(o)]
    if 2 * len(fallen) <= len(finished):
        return []
    text = (
        f"Most runs collapsed: {len(fallen)} of {len(finished)} give nearly one answer to everything; their "
        "learning rates are too high or too low, or they are too short."
    )
    return [Note(text, "warning")]


def read_examples(outcome: Outcome, split: str = "dev") -> tuple[Array, Array]:
    """Return what the run's metric is computed from: the targets of a split's examples and the outputs."""
    path, metric = outcome.folder / f"predictions_{split}.jsonl", find_metric([outcome])
    labels = outcome.results.labels if outcome.results is not None else None
    reads = "predictions" if metric is None else metric.reads
    return read_predictions(path, path.stat().st_mtime_ns, reads, tuple(labels or ()))


@lru_cache(maxsize=512)
def read_predictions(path: Path, written: int, reads: str, labels: tuple[str, ...]) -> tuple[Array, Array]:
    """Read a file of predictions once; a study needs the same files again and again.

    Labels are numbered as while training; free answers stay texts.
    """
    rows = list(read_jsonl(path))
    if reads == "losses":
        return np.array([row["tokens"] for row in rows]), np.array([row["loss"] for row in rows])
    number = {label: i for i, label in enumerate(labels)}
    kind = np.int64 if labels else object
    targets = np.array([number.get(row["label"], row["label"]) for row in rows], kind)
    if reads == "probabilities":
        return targets, np.array([[row["probabilities"][label] for label in labels] for row in rows])
    return targets, np.array([number.get(row["predicted"], row["predicted"]) for row in rows], kind)


def as_good(chosen: Outcome, outcomes: Sequence[Outcome], split: str = "dev") -> list[Outcome]:
    """The finished runs that cannot be told apart from the chosen one, all tests taken together."""
    finished = [chosen, *(o for o in outcomes if o.results is not None and o.name != chosen.name)]
    metric = find_metric(finished)
    targets, _ = read_examples(chosen, split)
    if metric is None or len(targets) < 2:
        return []
    # Any of them could have been chosen: every pair counts as a test.
    pairs = list(combinations(finished, 2))
    outputs = {o.name: read_examples(o, split)[1] for o in finished}
    corrected = holm([metric.p_value(targets, outputs[a.name], outputs[b.name]) for a, b in pairs])
    return [b for (a, b), p in zip(pairs, corrected, strict=True) if a is chosen and p >= ALPHA]


def curves(outcomes: Mapping[str, Outcome], title: str, metric: str, split: str = "dev") -> Figure:
    """All runs overlaid."""
    return Figure(
        f"{split}-curves",
        "lines",
        {
            name: [[row.epoch, row.value] for row in o.metrics() if row.split == split]
            for name, o in outcomes.items()
        },
        {
            "title": title,
            "x_title": "epoch",
            "y_title": f"{metric} on {split.replace('_eval', '')}",
            "mark_best": "min" if lower_is_better(outcomes.values()) else "max",
            **least_axis(row for o in outcomes.values() for row in o.metrics() if row.split == split),
        },
    )


def lower_is_better(outcomes: Iterable[Outcome]) -> bool:
    """Whether the metric of these runs is better where it is lower."""
    metric = find_metric(outcomes)
    return metric is not None and not metric.higher_is_better


def least_axis(rows: Iterable[Metrics]) -> dict[str, float]:
    """How long an axis of shares is at least: as one interval, so that chance does not look like much."""
    found = widest_interval((row.value, row.n) for row in rows)
    return {} if found is None else {"y_least": found}
