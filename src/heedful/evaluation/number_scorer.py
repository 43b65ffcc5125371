"""What a run reports about numbers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from heedful.evaluation.checks.scores import constant_numbers
from heedful.evaluation.kind_scorer import Array, KindResults, KindScorer
from heedful.objectives import Evaluation
from heedful.runs.schemas import Check, Prediction


class NumberResults(KindResults):
    """Scores numbers in their own unit."""

    check_metric = "rmse"  # a correlation with a constant answer has no value

    def predictions(self, split: str, e: Evaluation) -> Iterator[Prediction]:
        assert e.labels is not None
        assert e.predicted is not None
        for i, example in enumerate(self.task.splits[split]):
            number = float(e.predicted[i])
            yield Prediction(
                id=f"{split}-{i}",
                label=None,
                predicted=f"{number:.6g}",
                text=example.text,
                pair=example.pair,
                value=float(e.labels[i]),
                predicted_value=number,
            )

    def check_collapse(self, dev: Evaluation) -> Check:
        assert dev.labels is not None
        assert dev.predicted is not None
        return constant_numbers(dev.predicted, dev.labels)

    def constant_answers(self, n: int) -> tuple[str, Array]:
        train = self.task.splits["train"].targets
        assert train is not None
        return "the mean of train", np.full(n, float(train.mean()))


class NumberScorer(KindScorer, NumberResults):
    """The same for a network."""
