"""One of several classes with an order, such as stars."""

from __future__ import annotations

from typing import Any

from heedful.problems.label import Label


class Ordered(Label):
    """Ordinal classification: each text has one of several classes, which have an order."""

    name = "ordered"
    title = "ordered classes"
    objective = "ordered"
    head_form = "ordinal"
    metrics = ("accuracy", "mae", "quadratic_kappa")
    task_kind = load_as = "ordered"
    scorer = "heedful.evaluation.ordered_scorer:OrderedScorer"
    results = "heedful.evaluation.ordered_scorer:OrderedResults"

    def count_outputs(self, task: Any) -> int | None:
        return len(task.label_names)
