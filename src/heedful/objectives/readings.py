"""What a classifier's outputs mean: the loss that they are trained by, and how they become answers.

One class per kind of answer. All are what `Classify` needs to know of the answers: the rest of it (texts,
batches, frozen bodies, two losses together) is the same for labels and numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.errors import UserError
from heedful.objectives.base import Evaluation, Floats, Ints
from heedful.statistics.thresholds import HALF, apply_thresholds, cross_fit, find_goal, tune_thresholds

if TYPE_CHECKING:
    from heedful.data import Task

Targets = npt.NDArray[Any]


class Reading(ABC):
    """How the answers of one kind are learned from logits and read from them."""

    metric: ClassVar[str]
    """The metric of the evaluations that `evaluate` returns."""
    outputs: ClassVar[tuple[str, ...]]
    """What the evaluations give other metrics to read."""
    problem_type: ClassVar[str | None] = None
    """What transformers calls it in config.json; None for one label per text, which is its default."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def read_targets(self, split: str) -> Targets:
        """Return what is to be predicted for the rows of a split, as a loss takes it."""
        return np.asarray(self.task.splits[split].targets).astype(np.int64)

    def weigh(self, targets: Targets) -> Tensor:
        """Return the weights of the labels with which each counts the same in total."""
        counts = np.bincount(targets, minlength=len(self.task.label_names))
        return torch.from_numpy(counts.sum() / (len(counts) * np.maximum(counts, 1))).float()

    def divide_by(self, targets: Tensor, weights: Tensor | None) -> float | None:
        """Return what the summed loss is divided by, if it is not the number of texts."""
        return None

    @abstractmethod
    def sum_loss(self, logits: Tensor, targets: Tensor, weights: Tensor | None, smoothing: float) -> Tensor:
        """Return the sum of the losses of the texts."""

    def count_right(self, logits: Tensor, targets: Tensor) -> Tensor | None:
        """Return how many texts are right while training; None where that is not counted."""
        return None

    @abstractmethod
    def activate(self, logits: Tensor) -> Floats:
        """Return probabilities, or numbers, in double precision."""

    @abstractmethod
    def score_outputs(self, model: Any, split: str, targets: Targets, outputs: Floats) -> Evaluation: ...

    def prepare(self, model: Any) -> None:  # noqa: B027
        """Tell a new model what its outputs will mean."""

    def finish_model(self, model: Any, dev: Evaluation | None) -> None:  # noqa: B027
        """Give the selected model what no step trains, from its evaluation on dev."""


class LabelReading(Reading):
    """One label per text: softmax and cross-entropy."""

    metric = "accuracy"
    outputs = ("predictions", "probabilities")

    def divide_by(self, targets: Tensor, weights: Tensor | None) -> float | None:
        return None if weights is None else float(weights[targets].double().sum())

    def sum_loss(self, logits: Tensor, targets: Tensor, weights: Tensor | None, smoothing: float) -> Tensor:
        return F.cross_entropy(logits, targets, weights, reduction="sum", label_smoothing=smoothing)

    def count_right(self, logits: Tensor, targets: Tensor) -> Tensor:
        return (logits.detach().argmax(1) == targets).sum()

    def activate(self, logits: Tensor) -> Floats:
        probabilities: Floats = logits.cpu().double().softmax(1).numpy()
        return probabilities

    def score_outputs(self, model: Any, split: str, targets: Targets, outputs: Floats) -> Evaluation:
        return score_labels(targets, outputs)


class SetReading(Reading):
    """Any number of labels per text: a sigmoid and a threshold per label.

    The loss of a text is the mean of the binary cross-entropies of the labels, as transformers has it.
    """

    metric = "bce"
    outputs = ("predictions", "probabilities")
    problem_type = "multi_label_classification"

    def __init__(self, task: Task, goal: str = "micro") -> None:
        super().__init__(task)
        self.goal = goal
        """What the thresholds are tuned for on dev: "micro" or "macro" F1, or "half" for 0.5 everywhere."""

    def read_targets(self, split: str) -> Targets:
        return np.asarray(self.task.splits[split].targets).astype(np.uint8)

    def weigh(self, targets: Targets) -> Tensor:
        """Return the weight of the texts that have a label, so that these count as much as the others."""
        counts = targets.sum(0, dtype=np.int64)
        return torch.from_numpy((len(targets) - counts) / np.maximum(counts, 1)).float()

    def sum_loss(self, logits: Tensor, targets: Tensor, weights: Tensor | None, smoothing: float) -> Tensor:
        wanted = targets.to(logits.dtype)
        if smoothing:
            wanted = wanted * (1 - smoothing) + smoothing / 2
        loss = F.binary_cross_entropy_with_logits(logits, wanted, reduction="sum", pos_weight=weights)
        return loss / logits.shape[1]

    def activate(self, logits: Tensor) -> Floats:
        probabilities: Floats = logits.cpu().double().sigmoid().numpy()
        return probabilities

    def score_outputs(self, model: Any, split: str, targets: Targets, outputs: Floats) -> Evaluation:
        """Score probabilities `[n, labels]`; on dev, thresholds for each text are tuned on others."""
        if split == "dev":
            predicted = cross_fit(outputs, targets, self.goal)
        else:
            predicted = apply_thresholds(outputs, model.thresholds)
        loss = float("nan")
        if len(targets):
            of_truth = np.where(targets == 1, outputs, 1 - outputs)
            loss = float(-np.log(np.maximum(of_truth, np.finfo(np.float64).tiny)).mean())
        return Evaluation(self.metric, loss, loss, len(targets), targets, predicted, outputs)

    def prepare(self, model: Any) -> None:
        model.problem_type, model.thresholds = self.problem_type, [HALF] * len(self.task.label_names)

    def finish_model(self, model: Any, dev: Evaluation | None) -> None:
        if dev is not None and dev.probabilities is not None and dev.labels is not None:
            model.thresholds = tune_thresholds(dev.probabilities, dev.labels, self.goal).tolist()


class NumberReading(Reading):
    """A number: the mean squared error of standardized numbers.

    The model learns the number as standard deviations from the mean of train. When it is complete, both are
    folded into its last layer, so that what is saved gives numbers in their own unit.
    """

    metric = "mse"
    outputs = ("predictions",)
    problem_type = "regression"

    def __init__(self, task: Task) -> None:
        super().__init__(task)
        train = self.read_targets("train")
        self.mean, self.std = float(train.mean()), float(train.std()) or 1.0

    def read_targets(self, split: str) -> Targets:
        return np.asarray(self.task.splits[split].targets).astype(np.float64)

    def weigh(self, targets: Targets) -> Tensor:
        raise UserError("--class-weights belongs to labels, and the answers are numbers; leave it out")

    def standardize(self, targets: Targets) -> Floats:
        return np.asarray((targets - self.mean) / self.std)

    def sum_loss(self, logits: Tensor, targets: Tensor, weights: Tensor | None, smoothing: float) -> Tensor:
        wanted = ((targets - self.mean) / self.std).to(logits.dtype)
        return F.mse_loss(logits.squeeze(1), wanted, reduction="sum")

    def activate(self, logits: Tensor) -> Floats:
        numbers: Floats = logits.cpu().double().squeeze(1).numpy()
        return numbers

    def score_outputs(self, model: Any, split: str, targets: Targets, outputs: Floats) -> Evaluation:
        numbers = outputs if model.in_own_unit else outputs * self.std + self.mean
        loss = float("nan")
        if len(targets):
            loss = float(np.mean(((numbers - targets) / self.std) ** 2))
        return Evaluation(self.metric, loss, loss, len(targets), targets, numbers, None)

    def prepare(self, model: Any) -> None:
        model.problem_type, model.in_own_unit = self.problem_type, False
        if model.head.out.bias is None:
            raise UserError(
                "--head family: this model's own head has no bias, which a number needs; leave it out"
            )

    def finish_model(self, model: Any, dev: Evaluation | None) -> None:
        if model.in_own_unit:
            return
        with torch.no_grad():
            model.head.out.bias.mul_(self.std).add_(self.mean)
            model.head.out.weight.mul_(self.std)
        model.in_own_unit = True


READINGS: Mapping[str, type[Reading]] = {
    "classify": LabelReading,
    "ordered": LabelReading,
    "labels": SetReading,
    "number": NumberReading,
}
"""How the answers of each kind of task are read. Ordered classes have a head of their own, whose outputs are
read like those of classes without an order."""


def make_reading(task: Task, metric: str | None = None) -> Reading:
    """Return how the answers of a task are read, where a metric selects."""
    reading = READINGS[task.kind](task)
    if isinstance(reading, SetReading):
        reading.goal = find_goal(metric)
    return reading


def score_labels(labels: Ints, probabilities: Floats) -> Evaluation:
    """Return the accuracy and the cross-entropy of probabilities [n, n_classes]."""
    predicted, accuracy, loss = probabilities.argmax(1), float("nan"), float("nan")
    if len(labels):
        accuracy = float((predicted == labels).mean())
        of_labels = probabilities[np.arange(len(labels)), labels]
        loss = float(-np.log(np.maximum(of_labels, np.finfo(np.float64).tiny)).mean())
    return Evaluation("accuracy", accuracy, loss, len(labels), labels, predicted, probabilities)
