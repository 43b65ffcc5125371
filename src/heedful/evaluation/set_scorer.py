"""What a run reports about several labels per text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from heedful.evaluation import checks
from heedful.evaluation.kind_baselines import list_constant_sets
from heedful.evaluation.kind_scorer import Array, KindResults, KindScorer, name_set, score_others
from heedful.evaluation.metrics import METRICS, find_metric
from heedful.objectives import Evaluation
from heedful.runs.schemas import Check, OtherMetric, Prediction
from heedful.statistics.thresholds import HALF, apply_thresholds

MOST_LABELS = 50
"""Of more labels, none has a score of its own in results.json; the predictions have them all."""


class LabelsResults(KindResults):
    """Scores sets of labels: all together, each label, and what they would be without tuned thresholds."""

    def score_others(self, e: Evaluation) -> dict[str, OtherMetric]:
        names = self.task.label_names
        scores = super().score_others(e)
        metric = find_metric(e.metric, names)
        if metric.reads == "predictions" and e.n:
            assert e.probabilities is not None
            plain = replace(e, metric="", predicted=apply_thresholds(e.probabilities, HALF))
            at_half = score_others([e.metric], plain, names)[e.metric]
            scores[f"{e.metric}_at_half"] = replace(at_half, title=f"{metric.title} with thresholds of 0.5")
        if len(names) <= MOST_LABELS:
            scores |= score_others([f"f1:{name}" for name in names], e, names)
        return scores

    def predictions(self, split: str, e: Evaluation) -> Iterator[Prediction]:
        names = self.task.label_names
        assert e.labels is not None
        assert e.predicted is not None
        assert e.probabilities is not None
        for i, example in enumerate(self.task.splits[split]):
            probabilities = dict(zip(names, e.probabilities[i].tolist(), strict=True))
            yield Prediction(
                id=f"{split}-{i}",
                label=None,
                predicted=name_set(e.predicted[i], names),
                probabilities=probabilities,
                text=example.text,
                pair=example.pair,
                labels=tuple(names[n] for n in np.flatnonzero(e.labels[i])),
                predicted_labels=tuple(names[n] for n in np.flatnonzero(e.predicted[i])),
            )

    def check_collapse(self, dev: Evaluation) -> Check:
        names = self.task.label_names
        assert dev.labels is not None
        assert dev.predicted is not None
        predicted, truth = (
            Counter(name_set(row, names) for row in rows) for rows in (dev.predicted, dev.labels)
        )
        return checks.collapse(predicted, truth)

    def constant_answers(self, n: int) -> tuple[str, Array]:
        """Return the better of the most frequent set of labels and of every label."""
        truth = self.task.splits["dev"].targets
        assert truth is not None
        metric = METRICS[self.problem.metric]
        constants = list_constant_sets(self.task)
        of_all: dict[str, Array] = {title: np.tile(row, (len(truth), 1)) for title, row in constants.items()}
        best = max(of_all, key=lambda title: metric.compute(truth, of_all[title]))
        titles = {"majority": "the most frequent set of labels", "every_label": "giving every label"}
        return titles[best], of_all[best][:n]

    def result_fields(self, model: Any, steps: int, epochs: float) -> dict[str, Any]:
        thresholds = model.thresholds or [HALF] * len(self.task.label_names)
        shown = dict(zip(self.task.label_names, thresholds, strict=True))
        return {**super().result_fields(model, steps, epochs), "thresholds": shown}


class LabelsScorer(KindScorer, LabelsResults):
    """The same for a network."""
