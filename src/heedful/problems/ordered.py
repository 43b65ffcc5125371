"""One of several classes with an order, such as stars."""

from __future__ import annotations

from typing import Any

from heedful.problems.label import Label


class Ordered(Label):
    """Ordinal classification: each text has one of several classes, which have an order."""

    name = "ordered"
    title = "ordered classes"
    objective = "classify"
    metrics = ("accuracy", "mae", "quadratic_kappa")
    task_kind = load_as = "ordered"
    scorer = "heedful.evaluation.scorer:LabelScorer"

    def count_outputs(self, task: Any) -> int | None:
        return len(task.label_names)
