"""Baselines: chance, train's most frequent label, and a logistic regression on words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress, islice

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.sparse import csr_matrix
from scipy.special import softmax

from heedful.data.splits import Split
from heedful.data.tasks import Task
from heedful.evaluation.metrics import ACCURACY, EXACT_MATCH, Metric
from heedful.problems import find_problem_of_task

# Scripts without spaces between words: one character is one feature.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|[^\w\s]")
TRAIN_ROWS = 50_000
PREDICT_ROWS = 10_000
L2 = 0.3
MAX_STEPS = 100

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int32]


class BagOfWords:
    """Multinomial logistic regression on the words of a text, and of its pair, their order forgotten.

    A feature is log(1 + count) times the word's inverse document frequency, each row of length 1; the words
    of the second text are features of their own. The loss is convex and starts from zero, so that the same
    rows always give the same classifier.
    """

    def __init__(self, l2: float = L2) -> None:
        self.l2 = l2
        self.columns: dict[str, int] = {}
        self.idf: Floats = np.empty(0)
        self.weights: Floats = np.empty((0, 0))

    def fit(
        self, texts: Iterable[str], pairs: Iterable[str] | None, labels: Ints, n_classes: int
    ) -> BagOfWords:
        rows = [count_words(*row) for row in pair_texts(texts, pairs)]
        seen = Counter(word for row in rows for word in row)
        self.columns = {word: column for column, word in enumerate(sorted(seen))}
        documents = np.fromiter((seen[word] for word in self.columns), np.float64, len(self.columns))
        self.idf = np.log((1 + len(rows)) / (1 + documents)) + 1
        self.weights = fit_softmax(self.features(rows), np.asarray(labels), n_classes, self.l2)
        return self

    def features(self, rows: Sequence[Counter[str]]) -> csr_matrix:
        """Turn word counts into rows of length 1; words never seen are dropped."""
        ends, columns, values = [0], [], []
        for row in rows:
            seen = [word for word in row if word in self.columns]
            columns += [self.columns[word] for word in seen]
            values += [row[word] for word in seen]
            ends.append(len(columns))
        at = np.array(columns, np.int64)
        weights = np.log1p(np.array(values, np.float64)) * self.idf[at]
        lengths = np.sqrt(np.add.reduceat(np.append(weights**2, 0), ends[:-1]) * (np.diff(ends) > 0))
        weights /= np.repeat(np.maximum(lengths, 1e-12), np.diff(ends))
        return csr_matrix((weights, at, ends), shape=(len(rows), len(self.columns)))

    def predict(self, texts: Iterable[str], pairs: Iterable[str] | None = None) -> Ints:
        return np.asarray(np.argmax(self.scores(texts, pairs), axis=1), np.int32)

    def probabilities(self, texts: Iterable[str], pairs: Iterable[str] | None = None) -> Floats:
        """Return the probabilities `[n, classes]`."""
        return np.asarray(softmax(self.scores(texts, pairs), axis=1))

    def scores(self, texts: Iterable[str], pairs: Iterable[str] | None = None) -> Floats:
        """Return the logits `[n, classes]`."""
        rows = iter(pair_texts(texts, pairs))
        parts = [np.empty((0, self.weights.shape[1]))]
        while part := [count_words(*row) for row in islice(rows, PREDICT_ROWS)]:
            parts.append(compute_scores(self.features(part), self.weights))
        return np.concatenate(parts)


def pair_texts(texts: Iterable[str], pairs: Iterable[str] | None) -> Iterable[tuple[str, str]]:
    """Pair each text with its second text, which may be empty."""
    return zip(texts, pairs, strict=True) if pairs is not None else ((text, "") for text in texts)


def count_words(text: str, pair: str) -> Counter[str]:
    """Count the words of both texts; those of the second are marked."""
    words = Counter(WORD.findall(text.lower()))
    words.update("\0" + word for word in WORD.findall(pair.lower()))
    return words


def compute_scores(x: csr_matrix, weights: Floats) -> Floats:
    """Return each class's score; the last row of the weights is the bias."""
    return np.asarray(x @ weights[:-1] + weights[-1])


def fit_softmax(x: csr_matrix, labels: npt.NDArray[np.integer], n_classes: int, l2: float) -> Floats:
    """Minimize the summed cross-entropy plus l2/2 times the squared weights, the bias apart, with L-BFGS."""
    n, d = x.shape
    right = np.zeros((n, n_classes))
    right[np.arange(n), labels] = 1
    transposed = x.T.tocsr()

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights = flat.reshape(d + 1, n_classes)
        scores = compute_scores(x, weights)
        scores -= scores.max(axis=1, keepdims=True)
        logs = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
        error = np.exp(logs) - right
        gradient = np.vstack([transposed @ error + l2 * weights[:-1], error.sum(axis=0)])
        return float(-(logs * right).sum() + l2 / 2 * (weights[:-1] ** 2).sum()), gradient.ravel()

    start, options = np.zeros((d + 1) * n_classes), {"maxiter": MAX_STEPS}
    best = minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x
    return np.asarray(best).reshape(d + 1, n_classes)


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

    `bag` is a bag of words that is already trained, such as on the rows that a model was trained on. By
    default, it is trained on 50,000 rows of train.

    Classification has `chance`, `majority` and `bag_of_words`, by default as accuracy. Free text has
    `majority`, the exact match of always giving train's most frequent answer.
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
    model = bag or fit_bag_of_words(task)
    return {
        split.name: label_baselines(task, split, model, metric or ACCURACY)
        for split in select_splits(task, splits)
        if split.labels is not None
    }


def label_baselines(task: Task, split: Split, bag: BagOfWords, metric: Metric) -> dict[str, float]:
    """Score a guess, the most frequent label and a bag of words on a split, by any metric of labels."""
    train, labels, n_classes = task.splits["train"].labels, split.labels, len(task.label_names)
    assert train is not None
    assert labels is not None
    if metric.reads == "probabilities":
        shares = np.bincount(train, minlength=n_classes) / len(train)
        outputs = {
            "chance": np.full((len(labels), n_classes), 1 / n_classes),
            "majority": np.tile(shares, (len(labels), 1)),
            "bag_of_words": bag.probabilities(split.texts, split.pairs),
        }
    else:
        outputs = {
            "chance": np.random.default_rng(0).integers(0, n_classes, len(labels)),
            "majority": np.full(len(labels), find_most_frequent(train)),
            "bag_of_words": bag.predict(split.texts, split.pairs),
        }
    scores = {name: float(metric.compute(labels, output)) for name, output in outputs.items()}
    return scores | ({"chance": chance_accuracy(n_classes)} if metric.is_share else {})


def fit_bag_of_words(task: Task, rows: npt.NDArray[np.int64] | None = None) -> BagOfWords:
    """Fit the classifier to a task's train split, or to some of its rows."""
    train = task.splits["train"]
    assert train.labels is not None
    chosen = np.arange(len(train)) if rows is None else np.sort(rows)
    keep = np.zeros(len(train), bool)  # an evenly spaced part of very many rows
    keep[chosen[np.linspace(0, len(chosen) - 1, min(len(chosen), TRAIN_ROWS)).astype(np.int64)]] = True
    pairs = None if train.pairs is None else compress(train.pairs, keep)
    return BagOfWords().fit(compress(train.texts, keep), pairs, train.labels[keep], len(task.label_names))


def find_most_frequent_answer(train: Split) -> str:
    """Return train's most frequent answer; of equals, the first in the alphabet."""
    counts = Counter(train.answers or ())
    return min(counts, key=lambda answer: (-counts[answer], answer))
