"""A number per text, or per pair of texts: regression."""

from __future__ import annotations

from typing import Any

from heedful.problems.base import Problem


class Number(Problem):
    """Regression: each text has a number."""

    name = "number"
    title = "a number per text"
    objective = "number"
    metric = "pearson"
    metrics = ("pearson", "spearman", "mae", "rmse", "r2")
    task_kind = load_as = "number"
    scorer = "heedful.evaluation.number_scorer:NumberScorer"
    results = "heedful.evaluation.number_scorer:NumberResults"
    baselines = "heedful.evaluation.kind_baselines:score_kind_baselines"

    def count_outputs(self, task: Any) -> int | None:
        return 1
