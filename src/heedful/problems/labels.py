"""Any number of labels per text, or per pair of texts."""

from __future__ import annotations

from typing import Any

from heedful.problems.base import Problem


class Labels(Problem):
    """Multi-label classification: each text has any number of labels, also none."""

    name = "labels"
    title = "several labels per text"
    objective = "labels"
    metric = "micro_f1"
    metrics = (
        "micro_f1",
        "macro_f1",
        "jaccard",
        "subset_accuracy",
        "hamming_loss",
        "label_ranking_average_precision",
    )
    task_kind = load_as = "labels"
    scorer = "heedful.evaluation.set_scorer:LabelsScorer"
    results = "heedful.evaluation.set_scorer:LabelsResults"
    baselines = "heedful.evaluation.kind_baselines:score_kind_baselines"

    def count_outputs(self, task: Any) -> int | None:
        return len(task.label_names)
