"""The decision threshold of two labels: tuned on dev for a metric of predictions other than accuracy.

A model that is trained by cross-entropy predicts the more probable label, which is best for accuracy. F1,
balanced accuracy or Matthews' correlation are often higher at another threshold, above all if one label is
rare. The threshold is the median of five, each tuned on four fifths of dev, and is used only if the
predictions of each fifth, by the threshold that the others chose, have a better score than those at 0.5. The
score on dev is that of these predictions, so that it is not too high for having chosen the threshold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.evaluation.metrics import Metric
from heedful.inference.decisions import Decision
from heedful.objectives import Evaluation

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
FOLDS = 5
FEWEST = 10
"""With fewer rows of a label on dev, a threshold would be chance."""
MOST = 200
"""Thresholds that are tried."""


def is_tuned_for(metric: Metric, labels: npt.NDArray[Any], probabilities: Floats) -> bool:
    """Whether a threshold is tuned for a metric, which depends on one, and has enough rows of two labels."""
    one_of_two = labels.ndim == 1 and probabilities.shape[1:] == (2,)
    if metric.reads != "predictions" or metric.is_share or not one_of_two:
        return False
    return bool(np.bincount(labels, minlength=2).min() >= FEWEST)


def assign_folds(labels: Ints) -> Ints:
    """Return the fifth that each row is in; each has its share of both labels."""
    folds = np.zeros(len(labels), np.int64)
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        folds[rows] = np.arange(len(rows)) % FOLDS
    return folds


def tune_threshold(metric: Metric, labels: Ints, scores: Floats) -> float:
    """Return the threshold with the best value; of equal ones, that nearest to 0.5."""
    distinct = np.unique(scores)
    between = np.append((distinct[1:] + distinct[:-1]) / 2, 0.5)
    tried = between[np.unique(np.linspace(0, len(between) - 1, MOST).astype(np.int64))]
    values = {t: metric.sort_key(metric.compute(labels, (scores >= t).astype(np.int64)))[0] for t in tried}
    return float(max(values, key=lambda t: (values[t], -abs(t - 0.5))))


def tune_thresholds(metric: Metric, labels: Ints, scores: Floats) -> list[float]:
    """Return the thresholds that all rows but one fifth choose."""
    folds = assign_folds(labels)
    return [tune_threshold(metric, labels[folds != k], scores[folds != k]) for k in range(FOLDS)]


def predict_by_others(labels: Ints, scores: Floats, thresholds: Sequence[float]) -> Ints:
    """Return the predictions of each fifth by the threshold that the others chose."""
    return np.asarray(scores >= np.array(thresholds)[assign_folds(labels)], np.int64)


def predict_held_out(metric: Metric, labels: Ints, probabilities: Floats) -> Ints:
    """Return predictions for rows that were held out: by tuned thresholds where these are better than 0.5."""
    most_probable: Ints = probabilities.argmax(1)
    if not is_tuned_for(metric, labels, probabilities):
        return most_probable
    scores = probabilities[:, 1]
    predicted = predict_by_others(labels, scores, tune_thresholds(metric, labels, scores))
    values = (float(metric.compute(labels, one)) for one in (most_probable, predicted))
    return predicted if metric.improvement(*values) > 0 else most_probable


def choose_decision(
    metric: Metric, dev: Evaluation | None, labels: Sequence[str], given: float | None = None
) -> Decision | None:
    """Return the decision of a model of two labels; None if the most probable label is to be predicted."""
    if given is not None:
        return Decision(labels[1], given)
    if dev is None or dev.labels is None or dev.probabilities is None:
        return None
    if not is_tuned_for(metric, dev.labels, dev.probabilities):
        return None
    scores = dev.probabilities[:, 1]
    thresholds = tune_thresholds(metric, dev.labels, scores)
    value = float(metric.compute(dev.labels, predict_by_others(dev.labels, scores, thresholds)))
    if metric.improvement(dev.value, value) <= 0:
        return None
    return Decision(labels[1], float(np.median(thresholds)), metric.name)


def decide(evaluation: Evaluation, decision: Decision | None, metric: Metric, split: str) -> Evaluation:
    """Return an evaluation with the predictions of a decision, and its value beside that at 0.5."""
    labels, probabilities = evaluation.labels, evaluation.probabilities
    if decision is None or labels is None or probabilities is None:
        return evaluation
    predicted, value, at_half = decision.predict(probabilities), evaluation.value, None
    if split == "dev" and decision.tuned_for == metric.name and is_tuned_for(metric, labels, probabilities):
        scores = probabilities[:, 1]
        predicted = predict_by_others(labels, scores, tune_thresholds(metric, labels, scores))
    if metric.reads == "predictions":
        value, at_half = float(metric.compute(labels, predicted)) if len(labels) else value, value
    return replace(
        evaluation, predicted=predicted, value=value, threshold=decision.threshold, value_at_half=at_half
    )


def make_decision(
    evaluations: Mapping[str, Evaluation], metric: Metric, labels: Sequence[str], given: float | None
) -> tuple[dict[str, Evaluation], Decision | None]:
    """Choose a model's decision by its evaluation on dev, and apply it to all evaluations."""
    decision = choose_decision(metric, evaluations.get("dev"), labels, given)
    return {split: decide(e, decision, metric, split) for split, e in evaluations.items()}, decision
