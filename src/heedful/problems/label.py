"""One label per text, or per pair of texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from heedful.problems.base import Problem

if TYPE_CHECKING:
    from heedful.data.named_tasks import Kind


class Label(Problem):
    """Classification: each text has one of several labels."""

    name = "label"
    title = "classification"
    objective = "classify"
    metric = "accuracy"
    metrics: ClassVar[tuple[str, ...]] = ("accuracy", "macro_f1")
    task_kind: ClassVar[Kind | None] = "classify"
    load_as: ClassVar[Kind | None] = "classify"
    scorer = "heedful.evaluation.scorer:LabelScorer"
    results = "heedful.evaluation.scorer:LabelResults"
    baselines = "heedful.evaluation.baselines:score_label_baselines"

    def count_outputs(self, task: Any) -> int | None:
        return len(task.label_names) or None
