"""What a run reports about classes with an order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from heedful.data import Task
from heedful.evaluation.kind_baselines import score_median_class
from heedful.evaluation.kind_scorer import score_others
from heedful.evaluation.metrics import find_metric
from heedful.evaluation.scorer import LabelResults, NetworkProbe
from heedful.objectives import Classify, Evaluation
from heedful.problems import find_problem_of_task
from heedful.runs.schemas import SplitResult


class OrderedResults(LabelResults):
    """The same as for labels, with the metrics of how far an answer is from the right one."""

    def results(self, evaluations: Mapping[str, Evaluation]) -> dict[str, SplitResult]:
        names = find_problem_of_task(self.task.kind).metrics
        results = {}
        for split, result in super().results(evaluations).items():
            e = evaluations[split]
            baselines = dict(result.baselines or {})
            metric = find_metric(e.metric, self.task.label_names)
            if baselines and metric.reads == "predictions":
                baselines["median_class"] = score_median_class(self.task, self.task.splits[split], metric)
            others = score_others(names, e, self.task.label_names)
            results[split] = replace(result, other_metrics=others, baselines=baselines or None)
        return results


class OrderedScorer(NetworkProbe, OrderedResults):
    """The same for a network."""

    def __init__(self, task: Task, classify: Classify) -> None:
        OrderedResults.__init__(self, task, classify.rows, balanced=classify.class_weights is not None)
        self.classify = classify
