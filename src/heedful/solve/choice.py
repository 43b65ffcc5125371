"""Which candidate is chosen: by its score on held-out rows, and by what an answer costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from heedful.evaluation import selection
from heedful.evaluation.metrics import Array, Metric
from heedful.evaluation.selection import Selection
from heedful.options.solve import Prefer
from heedful.statistics.prior import Expected
from heedful.statistics.proportions import Interval

SAME_COST = 1.5
"""Costs within this factor count as equal: the better of two equally fast models is chosen."""


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
    folds: int = 0
    """Number of folds that it was scored on, besides dev."""
    cut: bool = False
    """Whether its training ended because the time was over."""


@dataclass(frozen=True)
class ScoredCandidate:
    name: str
    title: str
    predicted: Array
    """The predicted labels of the held-out rows: names, one 0 or 1 per label, or numbers."""
    cost: Cost
    baseline: bool = False
    """Whether it reads no text."""
    probabilities: Array | None = None
    """The probabilities of the labels, `[rows, labels]`, where the metric reads them."""


@dataclass(frozen=True)
class ScoredCandidates:
    """Candidates with their predictions on the same held-out rows."""

    candidates: tuple[ScoredCandidate, ...]
    labels: Array
    metric: Metric
    held_out: str = "dev"
    """What the held-out rows are, in words."""
    prior: Mapping[str, Expected] | None = None
    """What is expected of each candidate before it is scored (`heedful.solve.expectations`)."""
    names: tuple[str, ...] = ()
    """Names of the labels, in the order of the columns of probabilities; by default those that occur."""

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each label: metrics count integers many times as fast as text."""
        occurring = [self.labels, *(c.predicted for c in self.candidates)]
        return {name: i for i, name in enumerate(self.names or np.unique(np.concatenate(occurring)))}

    @cached_property
    def targets(self) -> Array:
        """The numbers of the labels, one 0 or 1 per label, or numbers."""
        return self.number(self.labels)

    @cached_property
    def outputs(self) -> dict[str, Array]:
        """What the metric reads of each candidate: its predictions as in `targets`, or its probabilities."""
        return {
            c.name: self.number(c.predicted) if c.probabilities is None else c.probabilities
            for c in self.candidates
        }

    def number(self, labels: Array) -> Array:
        if labels.dtype != object:  # several labels per text, or numbers
            return labels
        return np.array([self.numbers[label] for label in labels], np.int64)

    def value(self, name: str) -> float:
        return float(self.metric.compute(self.targets, self.outputs[name]))

    def interval(self, name: str) -> Interval | None:
        return self.metric.interval(self.targets, self.outputs[name])


def choose(scored: ScoredCandidates, prefer: Prefer | None = None) -> Selection:
    """Choose a candidate by its predictions on held-out rows (`heedful.evaluation.selection`).

    Costs are rounded to powers of `SAME_COST`, so that noise in a measured time decides nothing. A baseline
    is chosen only if no candidate is expected to have a better score: an answer that reads no text is of use
    to nobody, however little it costs, and with few rows hardly anything is shown to be better.
    """
    choice = select_candidate(scored, scored.candidates, prefer)
    top = max(choice.expected, key=lambda name: scored.metric.sort_key(choice.expected[name])[0])
    others = [c for c in scored.candidates if not c.baseline or c.name == top]
    if choice.chosen in (c.name for c in others):
        return choice
    selection_of_others = select_candidate(scored, others, prefer)
    return replace(selection_of_others, scores=choice.scores, comparisons=choice.comparisons)


def select_candidate(
    scored: ScoredCandidates, candidates: Sequence[ScoredCandidate], prefer: Prefer | None
) -> Selection:
    outputs = {c.name: scored.outputs[c.name] for c in candidates}
    costs = {
        c.name: selection.Cost(round_cost(c.cost.ms_per_text), round_cost(c.cost.megabytes))
        for c in candidates
    }
    return selection.select(scored.metric, scored.targets, outputs, costs, prefer, prior=scored.prior)


def round_cost(cost: float) -> float:
    return float(SAME_COST ** round(math.log(max(cost, 1e-6), SAME_COST)))


def label_array(labels: Sequence[str | None]) -> Array:
    return np.array([str(label) for label in labels], dtype=object)
