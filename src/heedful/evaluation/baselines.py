"""Baselines: chance, train's most frequent label, and a bag of words for any kind of answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import compress, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data import cache
from heedful.data.splits import Split
from heedful.data.tasks import Task
from heedful.evaluation.metrics import ACCURACY, EXACT_MATCH, Metric
from heedful.linear.label_sets import find_rarest
from heedful.linear.logistic import sample_stratified
from heedful.linear.model import TfidfModel
from heedful.problems import find_problem_of_task

MOST_ROWS = 50_000
MOST_CHARACTERS = 30_000_000
"""More text takes more than about half a minute, and changes a linear model little."""
PREDICT_ROWS = 10_000
WORTH_KEEPING = 1_000_000
"""Characters times labels from which a fit takes about half a second or more, and is kept in the cache."""
FORMAT = 1
"""Part of the names in the cache; to be raised when the same rows lead to another model."""

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class BagOfWords:
    """The linear model of words that `heedful adapt tfidf` fits, on rows of a task's train split."""

    model: TfidfModel
    n_rows: int
    """Number of rows that it was fitted to."""

    @classmethod
    def from_task(
        cls, task: Task, rows: npt.NDArray[np.int64] | None = None, *, balanced: bool = False
    ) -> BagOfWords:
        """Fit it to all rows or to those given; of very many, to a sample with the labels' shares.

        A fit that takes long is kept in the cache, so that the runs of a study share it.
        """
        train = task.splits["train"]
        targets = read_targets(train)
        rows = np.arange(len(train)) if rows is None else np.sort(rows)
        rows, texts, pairs = sample_texts(train, find_strata(targets), rows)

        def fit_rows() -> TfidfModel:
            names, options = task.label_names, {} if task.kind == "number" else {"balanced": balanced}
            return TfidfModel.fit(texts, pairs, targets[rows], names, kind=task.kind, **options)

        if count_characters(texts, pairs) * max(1, len(task.label_names)) < WORTH_KEEPING:
            return cls(fit_rows(), len(rows))
        chosen = blake2b(rows.tobytes() + targets[rows].tobytes(), digest_size=16).hexdigest()
        key = cache.digest(FORMAT, train.fingerprint, chosen, list(task.label_names), balanced, task.kind)
        folder = cache.build_once("bags-of-words", key, lambda folder: fit_rows().save(folder))
        return cls(TfidfModel.load(folder), len(rows))

    def score_rows(self, split: Split) -> Floats:
        """Return the probability of each label for each row of a split, or numbers."""
        texts, pairs = iter(split.texts), None if split.pairs is None else iter(split.pairs)
        parts = [self.model.probabilities([])]
        while part := list(islice(texts, PREDICT_ROWS)):
            second = None if pairs is None else list(islice(pairs, PREDICT_ROWS))
            parts.append(self.model.probabilities(part, second))
        return np.concatenate(parts)


def read_targets(split: Split) -> npt.NDArray[Any]:
    """Return what is to be predicted for each row of a split; nothing if nobody knows it."""
    targets = np.asarray(() if split.targets is None else split.targets)
    return targets.astype(np.int64) if targets.ndim == 1 and targets.dtype.kind == "i" else targets


def find_strata(targets: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Return what rows are sampled by: the label, the rarest of several labels, and nothing for numbers."""
    if targets.ndim == 2:
        return np.asarray(find_rarest(targets), np.int64)
    return targets if targets.dtype.kind == "i" else np.zeros(len(targets), np.int64)


def sample_texts(
    train: Split, strata: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.int64], list[str], list[str] | None]:
    """Return rows and their texts; of very many, a sample with the strata's shares."""
    rows = rows[sample_stratified(strata[rows], MOST_ROWS, 0)]
    texts, pairs = pick_texts(train, rows)
    n_characters = count_characters(texts, pairs)
    if n_characters <= MOST_CHARACTERS:
        return rows, texts, pairs
    part = sample_stratified(strata[rows], max(1, len(rows) * MOST_CHARACTERS // n_characters), 0)
    return rows[part], [texts[i] for i in part], None if pairs is None else [pairs[i] for i in part]


def count_characters(texts: Sequence[str], pairs: Sequence[str] | None) -> int:
    return sum(map(len, texts)) + sum(map(len, pairs or ()))


def pick_texts(split: Split, rows: npt.NDArray[np.int64]) -> tuple[list[str], list[str] | None]:
    """Return the texts of sorted rows, and their second texts if there are any."""
    keep = np.zeros(len(split), bool)
    keep[rows] = True
    pairs = None if split.pairs is None else list(compress(split.pairs, keep))
    return list(compress(split.texts, keep)), pairs


def chance_accuracy(n_classes: int) -> float:
    """Return the expected share of right labels among uniform guesses."""
    return 1 / n_classes


def find_most_frequent(labels: Ints) -> int:
    """Return the most frequent label, the first of equals."""
    return int(np.bincount(labels).argmax())


def score_task_baselines(
    task: Task,
    splits: Sequence[str] | None = None,
    bag: BagOfWords | None = None,
    metric: Metric | None = None,
) -> dict[str, dict[str, float]]:
    """Score the baselines of a task on labeled splits (default: all but train), by any metric.

    `bag` is a bag of words that is already fitted, such as to the rows that a model was trained on. By
    default, it is fitted to train.

    Classification has `chance`, `majority` and `bag_of_words`, by default as accuracy. Several labels per
    text have `majority`, train's most frequent set, `every_label` and `bag_of_words`; numbers have
    `train_mean` and `bag_of_words`. Free text has `majority`, the exact match of always giving train's most
    frequent answer.
    """
    return find_problem_of_task(task.kind).score_baselines(task, splits, bag, metric)


def select_splits(task: Task, names: Sequence[str] | None) -> list[Split]:
    """Return the named splits that there are, by default all but train."""
    chosen = [name for name in task.splits if name != "train"] if names is None else names
    return [task.splits[name] for name in chosen if name in task.splits]


def score_answer_baselines(
    task: Task, splits: Sequence[str] | None, bag: BagOfWords | None, metric: Metric | None
) -> dict[str, dict[str, float]]:
    metric, answer = metric or EXACT_MATCH, find_most_frequent_answer(task.splits["train"])
    scores = {}
    for split in select_splits(task, splits):
        if split.answers is not None:
            truth = np.array(list(split.answers), object)
            value = metric.compute(truth, np.full(len(truth), answer, object))
            scores[split.name] = {"majority": float(value)}
    return scores


def score_label_baselines(
    task: Task, splits: Sequence[str] | None, bag: BagOfWords | None, metric: Metric | None
) -> dict[str, dict[str, float]]:
    bag, metric = bag or BagOfWords.from_task(task), metric or ACCURACY
    return {
        split.name: label_baselines(task, split, metric.pick_outputs(bag.score_rows(split)), metric)
        for split in select_splits(task, splits)
        if split.labels is not None
    }


def label_baselines(
    task: Task, split: Split, of_bag: npt.NDArray[np.generic] | None, metric: Metric
) -> dict[str, float]:
    """Score a guess, the most frequent label and a bag of words on a split, by any metric of labels.

    `of_bag` is what the metric reads of the bag of words; None leaves it out.
    """
    train, labels, n_classes = task.splits["train"].labels, split.labels, len(task.label_names)
    assert train is not None
    assert labels is not None
    outputs: dict[str, npt.NDArray[np.generic]]
    if metric.reads == "probabilities":
        shares = np.bincount(train, minlength=n_classes) / len(train)
        outputs = {
            "chance": np.full((len(labels), n_classes), 1 / n_classes),
            "majority": np.tile(shares, (len(labels), 1)),
        }
    else:
        outputs = {
            "chance": np.random.default_rng(0).integers(0, n_classes, len(labels)),
            "majority": np.full(len(labels), find_most_frequent(train)),
        }
    if of_bag is not None:
        outputs["bag_of_words"] = of_bag
    scores = {name: float(metric.compute(labels, output)) for name, output in outputs.items()}
    return scores | ({"chance": chance_accuracy(n_classes)} if metric.is_share else {})


def find_most_frequent_answer(train: Split) -> str:
    """Return train's most frequent answer; of equals, the first in the alphabet."""
    counts = Counter(train.answers or ())
    return min(counts, key=lambda answer: (-counts[answer], answer))
