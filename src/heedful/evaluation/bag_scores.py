"""What a model without a network answers, with thresholds that are tuned on dev as those of networks are."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from heedful.data.tasks import Task
from heedful.evaluation.baselines import BagOfWords, read_targets
from heedful.evaluation.metrics import Metric
from heedful.objectives import Evaluation
from heedful.objectives.base import Floats
from heedful.objectives.readings import make_reading


def choose_thresholds(task: Task, of_dev: Floats, metric: str) -> tuple[float, ...]:
    """Return the threshold of each label that the probabilities on dev choose, for this metric."""
    reading, holder = make_reading(task, metric), SimpleNamespace(thresholds=None)
    reading.finish_model(
        holder, reading.score_outputs(holder, "dev", read_targets(task.splits["dev"]), of_dev)
    )
    return tuple(holder.thresholds)


def needs_thresholds(task: Task) -> bool:
    """Whether there are several labels per text, and rows of dev that choose their thresholds."""
    dev = task.splits.get("dev")
    return task.kind == "labels" and dev is not None and dev.targets is not None and len(dev) > 0


class BagScores:
    """The evaluations of a bag of words on a task's splits, where a text has several labels or a number."""

    def __init__(self, task: Task, bag: BagOfWords) -> None:
        self.task, self.bag = task, bag
        self.outputs: dict[str, Floats] = {}

    def ask(self, split: str) -> Floats:
        """Return its probabilities or numbers for a split."""
        if split not in self.outputs:
            self.outputs[split] = self.bag.score_rows(self.task.splits[split])
        return self.outputs[split]

    def evaluate(self, split: str, metric: Metric) -> Evaluation:
        """Return its answers for a split, and their score."""
        model = self.bag.model
        if needs_thresholds(self.task):
            model = replace(model, thresholds=choose_thresholds(self.task, self.ask("dev"), metric.name))
        targets = read_targets(self.task.splits[split])
        reading = make_reading(self.task, metric.name)
        return metric.score(reading.score_outputs(model, split, targets, self.ask(split)))
