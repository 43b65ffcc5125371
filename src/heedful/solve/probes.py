"""What the training process measures at the end, to say what would help: linear models on parts of the data.

A probe is fitted to some rows of train, and labels others. One on the states of the frozen encoder costs
little, because a candidate has left the states in the cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data.folds import choose_fold_rows
from heedful.data.splits import Split
from heedful.data.unlabeled import collect_unlabeled
from heedful.evaluation.baselines import read_targets
from heedful.evaluation.metrics import Array, Metric, find_metric
from heedful.evaluation.selection import resample_metric
from heedful.inference.loading import load_run
from heedful.linear.folders import is_linear
from heedful.linear.label_sets import fit_label_sets
from heedful.linear.logistic import fit_logistic
from heedful.linear.ridge import fit_ridge
from heedful.models import Classifier
from heedful.objectives import Classify
from heedful.objectives.classify import choose_train_rows
from heedful.options.training import AdaptOptions
from heedful.problems import find_metric_name
from heedful.solve.insight.curve import CurvePoint, MeasuredCurve
from heedful.solve.insight.label_next import LabelNext, list_useful_rows
from heedful.solve.plan import FOLDS
from heedful.statistics.learning_curve import FEWEST, RESAMPLES, fit_learning_curve
from heedful.statistics.links import activate
from heedful.statistics.thresholds import cross_fit, find_goal
from heedful.training.build import build_adapt
from heedful.training.linear import LinearJob, build_linear
from heedful.training.run_task import load_run_task

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Predict = Callable[[str, Ints], Floats]
"""Returns the probabilities of the labels that a fitted probe gives for some rows of a split."""
SHARES = (1 / 16, 1 / 8, 1 / 4, 1 / 2, 1.0)
"""Parts of the training rows that the learning curve is measured on."""
LEAST_PER_LABEL = 4
"""Mean number of rows per label in the smallest part."""
LEAST_LEARNED = 0.4
"""Share of the training rows that a fold must leave to fit to."""
GROWTH = 2.5
"""How many times as long twice the rows take, at most."""
MOST_UNLABELED, UNLABELED_CHUNK = 20_000, 128
"""Rows without a label that are labeled at most, and at a time."""


class StatesProbe:
    """A linear model on the pooled states of a frozen encoder."""

    def __init__(self, options: AdaptOptions) -> None:
        job = build_adapt(replace(options, method="head", method_options=(), head_start="random"))
        objective = job.objective
        assert isinstance(objective, Classify)
        assert isinstance(job.options, AdaptOptions)
        assert isinstance(job.model, Classifier)
        self.objective, self.model, self.max_len = objective, job.model, job.length
        self.options, self.splits, self.rows = job.options, objective.task.splits, objective.rows
        self.labels, self.label_names = objective.labels, objective.task.label_names
        self.kind = objective.task.kind
        self.title = f"embeddings and {name_regression(self.kind)}"
        self.states = {
            name: objective.pooled_states(job.model, name, rows).numpy()
            for name, rows in (("train", self.rows), ("dev", np.arange(len(self.labels["dev"]))))
        }

    def fit(self, rows: Ints) -> Predict:
        """Fit the probe to some of the rows of train that are in use."""
        states = self.states["train"][np.searchsorted(self.rows, rows)]
        targets, balanced = self.labels["train"][rows], self.options.class_weights == "balanced"
        if self.kind == "number":
            fit = fit_ridge(states, targets)
        elif self.kind == "labels":
            fit = fit_label_sets(states, targets, balanced=balanced)
        else:
            fit = fit_logistic(states, targets, len(self.label_names), balanced=balanced)

        def predict(split: str, rows: Ints) -> Floats:
            positions = np.searchsorted(self.rows, rows) if split == "train" else rows
            return activate(fit.apply(self.states[split][positions]), self.kind)

        return predict


class WordsProbe:
    """A linear model on tf-idf, where there is no encoder."""

    def __init__(self, options: AdaptOptions) -> None:
        self.job: LinearJob = build_linear(options)
        self.options, self.splits, self.rows = self.job.options, self.job.task.splits, self.job.rows
        self.label_names, self.kind = self.job.task.label_names, self.job.task.kind
        self.title = f"tf-idf and {name_regression(self.kind)}"
        self.labels = {
            name: read_targets(split) for name, split in self.splits.items() if split.targets is not None
        }

    def fit(self, rows: Ints) -> Predict:
        model = replace(self.job, rows=rows).fit()

        def predict(split: str, rows: Ints) -> Floats:
            return model.probabilities(*read_texts(self.splits[split], rows))

        return predict


Probe = StatesProbe | WordsProbe


def name_regression(kind: str) -> str:
    return "ridge regression" if kind == "number" else "logistic regression"


def stratify(probe: Probe, rows: Ints) -> Ints:
    """Return the labels of training rows, by whose shares a part is chosen; without single labels, 0."""
    targets = probe.labels["train"][rows]
    return np.zeros(len(rows), np.int64) if probe.kind in ("labels", "number") else targets


def count_least(probe: Probe) -> int:
    """Return the number of labels, of each of which the smallest part needs some rows."""
    if probe.kind in ("labels", "number"):
        return max(1, len(probe.label_names))
    return len(np.unique(probe.labels["train"]))


def read_outputs(probe: Probe, metric: Metric, outputs: Floats, targets: Array) -> Array:
    """Return what the metric reads of probabilities or numbers; thresholds of labels are cross-fitted."""
    if probe.kind == "number" or (probe.kind == "labels" and metric.reads == "probabilities"):
        return outputs
    if probe.kind == "labels":
        return cross_fit(outputs, targets, find_goal(metric.name))
    return metric.pick_outputs(outputs)


def read_texts(split: Split, rows: Ints) -> tuple[list[str], list[str] | None]:
    """Return the texts of some rows, in their order, and their second texts."""
    texts, pairs = list(split.texts), None if split.pairs is None else list(split.pairs)
    return [texts[i] for i in rows], None if pairs is None else [pairs[i] for i in rows]


def make_probe(options: AdaptOptions) -> Probe:
    return WordsProbe(options) if is_linear(options.model) else StatesProbe(options)


def measure_curve(options: AdaptOptions, labels: int, folds: int, seconds: float) -> MeasuredCurve | None:
    """Fit a probe to nested parts of train, score all on the same held-out rows, and fit a curve.

    Parameters
    ----------
    options
        The options of a run with a linear model, whose rows are in use.
    labels
        Number of training rows that there are.
    folds
        Number of folds of train that are held out in turn as well, besides dev.
    seconds
        Time after which no larger part is begun.

    Returns
    -------
    MeasuredCurve or None
        None if there are too few rows, or too little time, for enough parts.

    """
    end = time.monotonic() + seconds
    probe = make_probe(options)
    metric = find_probe_metric(probe)
    parts = hold_out(probe, folds)
    sizes = choose_sizes(min(len(part) for part, _, _ in parts), count_least(probe))
    targets = np.concatenate([probe.labels[split][rows] for _, split, rows in parts])
    predicted: list[Array] = []
    last = 0.0
    for size in sizes if len(sizes) >= FEWEST and metric.higher_is_better else ():
        begun = time.monotonic()
        if begun + GROWTH * last > end:
            break
        predicted.append(read_outputs(probe, metric, predict_held_out(probe, parts, size), targets))
        last = time.monotonic() - begun
    if len(predicted) < FEWEST:
        return None
    return fit_measured(probe.title, metric, targets, sizes[: len(predicted)], predicted, labels)


def find_probe_metric(probe: Probe) -> Metric:
    return find_metric(find_metric_name(probe.options, Classify), probe.label_names)


def hold_out(probe: Probe, folds: int) -> list[tuple[Ints, str, Ints]]:
    """Return the rows to fit to, and the split and the rows to score: dev, and folds of train.

    All parts are fitted to equally many rows. So a fold with less than `LEAST_LEARNED` of the rows to fit to,
    such as an early one where rows are split by time, is left out.
    """
    parts = [(probe.rows, "dev", np.arange(len(probe.labels["dev"])))]
    for number in range(1, folds + 1):
        chosen = choose_fold_rows(probe.splits["train"], number, FOLDS, probe.options.seed)
        learned, held_out = (probe.rows[np.isin(probe.rows, rows)] for rows in chosen)
        if len(held_out) and len(learned) >= LEAST_LEARNED * len(probe.rows):
            parts.append((learned, "train", held_out))
    return parts


def choose_sizes(rows: int, n_labels: int) -> list[int]:
    """Return the numbers of rows of the parts; a part has at least `LEAST_PER_LABEL` rows per label."""
    return [size for share in SHARES if (size := int(share * rows)) >= LEAST_PER_LABEL * n_labels]


def predict_held_out(probe: Probe, parts: Sequence[tuple[Ints, str, Ints]], size: int) -> Floats:
    """Fit the probe to `size` rows of each part; return the probabilities of what the part holds out."""
    predicted = []
    for rows, split, held_out in parts:
        chosen = choose_train_rows(stratify(probe, rows), size, probe.options.seed)
        predicted.append(probe.fit(rows[chosen])(split, held_out))
    return np.concatenate(predicted)


def fit_measured(
    title: str, metric: Metric, targets: Ints, sizes: Sequence[int], predicted: Sequence[Array], labels: int
) -> MeasuredCurve:
    """Fit the curve to what was predicted with each size."""
    table = resample_metric(metric, targets, list(predicted), RESAMPLES, seed=0)
    points = []
    for size, score, output in zip(sizes, table.scores, predicted, strict=True):
        low, high = metric.interval(targets, output) or (None, None)
        points.append(CurvePoint(size, float(score), low, high))
    curve = fit_learning_curve(sizes, table.scores, table.drawn, current=labels)
    return MeasuredCurve(title, metric.title, len(targets), tuple(points), curve)


def answer_curve(options: AdaptOptions, **request: Any) -> dict[str, Any]:
    """Return the curve as the training process answers with it."""
    measured = measure_curve(options, **request)
    return {"curve": None if measured is None else asdict(measured)}


def label_unlabeled(
    options: AdaptOptions, run: str, model: str, unlabeled: str, out: str, seconds: float
) -> dict[str, Any]:
    """Label rows without a label by the model of a run until the time is over, and rank them.

    `options` are those of the run, for its task; `unlabeled` is a file, or empty. All ranked rows are written
    to the file `out`.
    """
    end = time.monotonic() + seconds
    pool = collect_unlabeled(load_run_task(options), Path(unlabeled) if unlabeled else None, MOST_UNLABELED)
    predictor, parts = load_run(run), list[Any]()
    for start in range(0, len(pool.rows), UNLABELED_CHUNK):
        if parts and time.monotonic() > end:
            break
        rows = pool.rows[start : start + UNLABELED_CHUNK]
        pairs = None if rows[0].pair is None else [str(row.pair) for row in rows]
        parts.append(predictor.predict_proba([row.text for row in rows], pairs))
    if not parts:
        return {"label_next": asdict(LabelNext(model, unlabeled, 0, 0))}
    found = list_useful_rows(model, unlabeled, pool, predictor.classes, np.concatenate(parts), Path(out))
    return {"label_next": asdict(found)}
