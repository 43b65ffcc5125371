"""Baselines of several labels per text, of numbers and of ordered classes: constants, a bag of words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data.splits import Split
from heedful.data.tasks import Task
from heedful.evaluation.bag_scores import BagScores
from heedful.evaluation.baselines import BagOfWords
from heedful.evaluation.metrics import METRICS, Metric
from heedful.problems import find_problem_of_task

Array = npt.NDArray[Any]


def list_constant_sets(task: Task) -> dict[str, Array]:
    """Return train's most frequent set of labels, and the set of all labels, as one 0 or 1 per label."""
    train = task.splits["train"].targets
    assert train is not None
    (most, _), *_ = Counter(map(bytes, train)).most_common(1)
    return {"majority": np.frombuffer(most, np.uint8), "every_label": np.ones(train.shape[1], np.uint8)}


def score_constants(task: Task, split: Split, metric: Metric) -> dict[str, float]:
    """Score constant answers on a split, by any metric of several labels or of numbers."""
    train, truth = task.splits["train"].targets, split.targets
    assert train is not None
    assert truth is not None
    outputs: dict[str, Array]
    if task.kind == "number":
        outputs = {"train_mean": np.full(len(truth), float(train.mean()))}
    elif metric.reads == "probabilities":
        outputs = {"majority": np.tile(train.mean(0), (len(truth), 1))}
    else:
        constants = list_constant_sets(task)
        outputs = {title: np.tile(row, (len(truth), 1)) for title, row in constants.items()}
    return {name: float(metric.compute(truth, output)) for name, output in outputs.items()}


def score_median_class(task: Task, split: Split, metric: Metric) -> float:
    """Score train's median class on a split."""
    train, truth = task.splits["train"].labels, split.labels
    assert train is not None
    assert truth is not None
    median = int(np.sort(train)[len(train) // 2])
    return float(metric.compute(truth, np.full(len(truth), median)))


def score_kind_baselines(
    task: Task, splits: Sequence[str] | None, bag: Any, metric: Metric | None
) -> dict[str, dict[str, float]]:
    """Score the constant answers and a bag of words on labeled splits, by default all but train."""
    metric = metric or METRICS[find_problem_of_task(task.kind).metric]
    names = [name for name in task.splits if name != "train"] if splits is None else splits
    chosen = [task.splits[name] for name in names if name in task.splits]
    of_bag = BagScores(task, bag or BagOfWords.from_task(task))
    return {
        split.name: {
            **score_constants(task, split, metric),
            "bag_of_words": of_bag.evaluate(split.name, metric).value,
        }
        for split in chosen
        if split.targets is not None
    }
