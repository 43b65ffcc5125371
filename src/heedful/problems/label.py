"""One label per text, or per pair of texts."""

from __future__ import annotations

from typing import Any

from heedful.problems.base import Problem


class Label(Problem):
    """Classification: each text has one of several labels."""

    name = "label"
    title = "classification"
    objective = "classify"
    metric = "accuracy"
    task_kind = "classify"
    scorer = "heedful.evaluation.scorer:LabelScorer"
    baselines = "heedful.evaluation.baselines:score_label_baselines"

    def count_outputs(self, task: Any) -> int | None:
        return len(task.label_names) or None
