"""What a run reports about several labels per text, and about numbers; and further metrics of any kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from heedful.data import Task
from heedful.evaluation.checks.scores import compare_with_constant
from heedful.evaluation.kind_baselines import score_constants
from heedful.evaluation.metrics import METRICS, Metric, find_metric
from heedful.evaluation.scorer import NetworkProbe
from heedful.objectives import Classify, Evaluation
from heedful.problems import find_problem_of_task
from heedful.runs.directory import Run
from heedful.runs.schemas import Check, OtherMetric, Prediction, Results, SplitResult

Array = npt.NDArray[Any]


def score_others(
    names: Iterable[str], evaluation: Evaluation, labels: Sequence[str]
) -> dict[str, OtherMetric]:
    """Return the values of further metrics, with their intervals; nothing of no examples."""
    if not evaluation.n:
        return {}
    scores = {}
    for name in names:
        metric = find_metric(name, labels)
        if name != evaluation.metric and evaluation.arrays(metric.reads) is not None:
            value = metric.score(evaluation).value
            interval = metric.evaluation_interval(evaluation)
            scores[name] = OtherMetric(value, interval, metric.higher_is_better, metric.title)
    return scores


class KindScorer(NetworkProbe, ABC):
    """Results, predictions and checks of a network whose answers are not one label per text."""

    check_metric: ClassVar[str | None] = None
    """The metric by which the model is compared with a constant answer, if not the one that selects."""

    def __init__(self, task: Task, classify: Classify) -> None:
        super().__init__(task, classify)
        self.problem = find_problem_of_task(task.kind)

    def results(self, evaluations: Mapping[str, Evaluation]) -> dict[str, SplitResult]:
        results = {}
        for split, e in evaluations.items():
            metric = find_metric(e.metric, self.task.label_names)
            results[split] = SplitResult(
                **metric.describe(),
                value=e.value,
                n=e.n,
                ci95=metric.evaluation_interval(e),
                loss=e.loss,
                baselines=score_constants(self.task, self.task.splits[split], metric),
                of=self.task.splits[split].of,
                other_metrics=self.score_others(e),
            )
        return results

    def score_others(self, e: Evaluation) -> dict[str, OtherMetric]:
        return score_others(self.problem.metrics, e, self.task.label_names)

    def write_scored(self, run: Run, evaluations: Mapping[str, Evaluation]) -> None:
        for split, e in evaluations.items():
            run.write_predictions(split, self.predictions(split, e))

    @abstractmethod
    def predictions(self, split: str, e: Evaluation) -> Iterator[Prediction]: ...

    def write_unscored(self, run: Run, model: Any) -> None:
        """Write nothing: `heedful predict` labels such rows."""

    @abstractmethod
    def check_collapse(self, dev: Evaluation) -> Check: ...

    @abstractmethod
    def constant_answers(self, n: int) -> tuple[str, Array]:
        """Return the best constant answer in words, and as predictions for n texts."""

    def dev_checks(self, dev: Evaluation, results: Results) -> list[Check]:
        assert dev.labels is not None
        assert dev.predicted is not None
        metric: Metric = METRICS[self.check_metric or dev.metric]
        if metric.reads != "predictions":
            metric = METRICS[self.problem.metric]
        title, constant = self.constant_answers(dev.n)
        compared = compare_with_constant(metric, dev.labels, dev.predicted, constant, title)
        return [self.check_collapse(dev), *compared]

    def result_fields(self, model: Any, steps: int, epochs: float) -> dict[str, Any]:
        return {"labels": tuple(self.task.label_names)}


def name_set(row: Array, names: Sequence[str]) -> str:
    """Return the labels of a row in words."""
    return ", ".join(names[int(i)] for i in np.flatnonzero(row)) or "no label"
