"""Which candidate is chosen: by its score on held-out rows, and by what an answer costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from heedful.evaluation.metrics import Array, Metric
from heedful.options.solve import Prefer
from heedful.statistics.comparison import Comparison
from heedful.statistics.proportions import Interval

SAME_COST = 1.5
"""Costs within this factor count as equal."""
TOLERANCE = 0.02
"""By how much a model that is preferred for its speed or its size may be worse."""


@dataclass(frozen=True)
class Cost:
    """What a candidate takes: to train, and to use."""

    seconds: float
    """To train, with everything around it."""
    ms_per_text: float
    megabytes: float
    """Of the model in use, with the base model of an adapter."""
    disk_megabytes: float = 0.0
    """Of the weights in best/."""
    cut: bool = False
    """Whether its training ended because the time was over."""


@dataclass(frozen=True)
class ScoredCandidate:
    name: str
    title: str
    predicted: Array
    """The predicted labels of the held-out rows."""
    cost: Cost


@dataclass(frozen=True)
class ScoredCandidates:
    """Candidates with their predictions on the same held-out rows."""

    candidates: tuple[ScoredCandidate, ...]
    labels: Array
    metric: Metric

    def value(self, name: str) -> float:
        predicted = next(c.predicted for c in self.candidates if c.name == name)
        return float(self.metric.compute(self.labels, predicted))


@dataclass(frozen=True)
class Choice:
    chosen: str
    best: str
    """The candidate with the best score."""
    scores: Mapping[str, float]
    intervals: Mapping[str, Interval | None]
    comparisons: Mapping[str, Comparison]
    """The best candidate compared with each of the others."""


def choose(scored: ScoredCandidates, prefer: Prefer | None = None) -> Choice:
    """Choose a candidate from the predictions of all on the same held-out rows.

    By default it is the fastest of those that are not shown to be worse than the best; among equally fast
    ones, the one with the best score.
    """
    candidates, labels, metric = scored.candidates, scored.labels, scored.metric
    scores = {c.name: scored.value(c.name) for c in candidates}
    intervals = {c.name: metric.interval(labels, c.predicted) for c in candidates}
    order = sorted(candidates, key=lambda c: (metric.sort_key(scores[c.name]), -c.cost.ms_per_text))[::-1]
    best = order[0]
    comparisons: dict[str, Comparison] = {}
    if len(candidates) > 1 and len(labels) > 1:
        pairs = metric.compare_all(labels, {c.name: [c.predicted] for c in order})
        comparisons = {pair.b: pair for pair in pairs if pair.a == best.name}
    if prefer == "accuracy":
        return Choice(best.name, best.name, scores, intervals, comparisons)
    allowed = [c for c in order if c is best or is_allowed(comparisons.get(c.name), prefer)]
    costs = {c.name: c.cost.megabytes if prefer == "small" else c.cost.ms_per_text for c in allowed}
    cheapest = min(costs.values())
    chosen = next(c for c in allowed if costs[c.name] <= SAME_COST * cheapest)
    return Choice(chosen.name, best.name, scores, intervals, comparisons)


def is_allowed(comparison: Comparison | None, prefer: Prefer | None) -> bool:
    """Whether a candidate, compared with the best one, may be chosen for its cost."""
    if comparison is None:
        return False
    loss = comparison.difference if comparison.higher_is_better else -comparison.difference
    return not comparison.differs or (prefer in ("speed", "small") and loss <= TOLERANCE)


def label_array(labels: Sequence[str | None]) -> Array:
    return np.array([str(label) for label in labels], dtype=object)
