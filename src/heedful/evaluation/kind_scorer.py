"""What a run reports about several labels per text, and about numbers; and further metrics of any kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from heedful.data import Task
from heedful.evaluation.bag_scores import BagScores
from heedful.evaluation.baselines import BagOfWords
from heedful.evaluation.checks.scores import beats_bag_of_words, compare_with_constant
from heedful.evaluation.kind_baselines import score_constants
from heedful.evaluation.metrics import METRICS, Metric, find_metric
from heedful.evaluation.scorer import NetworkProbe
from heedful.objectives import Classify, Evaluation
from heedful.objectives.base import Ints
from heedful.problems import find_problem_of_task
from heedful.runs.directory import BAG_OF_WORDS, Run
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


class KindResults(ABC):
    """Results, predictions and checks of answers other than one label per text, whatever gave them."""

    check_metric: ClassVar[str | None] = None
    """The metric by which the model is compared with a constant answer, if not the one that selects."""

    def __init__(
        self,
        task: Task,
        rows: Ints,
        *,
        balanced: bool = False,
        with_baselines: bool = True,
        with_bag: bool = True,
    ) -> None:
        self.task, self.rows, self.balanced = task, rows, balanced
        self.with_baselines, self.with_bag = with_baselines, with_baselines and with_bag
        self.problem = find_problem_of_task(task.kind)

    @cached_property
    def of_bag(self) -> BagScores:
        """The answers of a bag of words, fitted to the rows and with the class weights of the run."""
        return BagScores(self.task, BagOfWords.from_task(self.task, self.rows, balanced=self.balanced))

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
                baselines=self.score_baselines(split, metric) if self.with_baselines else None,
                of=self.task.splits[split].of,
                other_metrics=self.score_others(e),
            )
        return results

    def score_baselines(self, split: str, metric: Metric) -> dict[str, float]:
        scores = score_constants(self.task, self.task.splits[split], metric)
        if self.with_bag:
            scores["bag_of_words"] = self.of_bag.evaluate(split, metric).value
        return scores

    def score_others(self, e: Evaluation) -> dict[str, OtherMetric]:
        return score_others(self.problem.metrics, e, self.task.label_names)

    def write_scored(self, run: Run, evaluations: Mapping[str, Evaluation]) -> None:
        for split, e in evaluations.items():
            run.write_predictions(split, self.predictions(split, e))
            if self.with_bag:
                metric = find_metric(e.metric, self.task.label_names)
                of_bag = self.predictions(split, self.of_bag.evaluate(split, metric))
                rows = (replace(row, text=None, pair=None) for row in of_bag)
                run.write_predictions(split, rows, by=BAG_OF_WORDS)

    @abstractmethod
    def predictions(self, split: str, e: Evaluation) -> Iterator[Prediction]: ...

    def write_unscored(self, run: Run, model: Any) -> None:  # noqa: B027
        """Write nothing: `heedful predict` labels such rows."""

    @abstractmethod
    def check_collapse(self, dev: Evaluation) -> Check: ...

    @abstractmethod
    def constant_answers(self, n: int) -> tuple[str, Array]:
        """Return the best constant answer in words, and as predictions for n texts."""

    def dev_checks(self, dev: Evaluation, results: Results) -> list[Check]:
        assert dev.labels is not None
        assert dev.predicted is not None
        metric: Metric = find_metric(self.check_metric or dev.metric, self.task.label_names)
        if metric.reads != "predictions":
            metric = METRICS[self.problem.metric]
        title, constant = self.constant_answers(dev.n)
        compared = compare_with_constant(metric, dev.labels, dev.predicted, constant, title)
        findings = [self.check_collapse(dev), *compared]
        if self.with_bag:
            metric = find_metric(dev.metric, self.task.label_names)
            _, of_bag = metric.examples(self.of_bag.evaluate("dev", metric))
            findings.append(beats_bag_of_words(metric, *metric.examples(dev), of_bag))
        return findings

    def result_fields(self, model: Any, steps: int, epochs: float) -> dict[str, Any]:
        fields: dict[str, Any] = {"labels": tuple(self.task.label_names)}
        # A bag of words is fitted when the first split is scored.
        if "of_bag" in vars(self) and self.of_bag.bag.n_rows < len(self.rows):
            fields["bag_of_words_rows"] = self.of_bag.bag.n_rows
        return fields


class KindScorer(NetworkProbe, KindResults):
    """The same for a network, which has tokens."""

    def __init__(self, task: Task, classify: Classify) -> None:
        KindResults.__init__(self, task, classify.rows, balanced=classify.class_weights is not None)
        self.classify = classify


def name_set(row: Array, names: Sequence[str]) -> str:
    """Return the labels of a row in words."""
    return ", ".join(names[int(i)] for i in np.flatnonzero(row)) or "no label"
