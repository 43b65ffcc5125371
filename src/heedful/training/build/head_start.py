"""Fits a new linear head to the states of the pretrained model, before the first step.

A random head sends random gradients into the pretrained body until it has learned something itself; a fitted
one does not (Kumar et al. 2022, Fine-tuning can distort pretrained features). It costs one forward pass.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from heedful.linear.joint import fit_words_and_states
from heedful.linear.label_sets import fit_label_sets
from heedful.linear.logistic import choose_strength, fit_logistic
from heedful.linear.ordinal import fit_ordinal
from heedful.linear.ridge import fit_ridge
from heedful.models import Classifier
from heedful.models.heads import LinearHead, OrdinalHead
from heedful.objectives import Classify
from heedful.objectives.readings import NumberReading, SetReading

REGULARIZATION = 0.01
"""Scikit-learn's C, on standardized states: the best or close to it on every task that was tried."""
NOTHING = 1e-6
"""So strong a regularization that only the shares of the labels are left."""
NEARLY_CONSTANT = 1e-3
"""States whose standard deviation is below this share of the median get no weight: it would be a large one,
and the first steps of training, which move such a state a little, would change the output by much."""
MOST_ROWS = 20_000
"""More rows take longer and hardly change a linear head."""


def fit_head(model: Classifier, objective: Classify, *, final: bool = False, words: bool = False) -> float:
    """Set the head to a linear model of the pooled states of the training rows.

    It is a logistic regression of the label, of each of several labels, or of ordered classes, or a ridge
    regression of the number. A head that is `final`, and not the start of training, is fitted to all rows,
    and its regularization is chosen by cross-validation. With `words`, the words of the texts are fitted
    together with the states.

    Returns
    -------
    float
        The seconds that this took.

    """
    began = time.monotonic()
    head, reading = model.head, objective.reading
    assert isinstance(head, LinearHead | OrdinalHead)
    rows = objective.rows
    if len(rows) > MOST_ROWS and not final:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_ROWS).astype(np.int64)]
    states, labels = objective.pooled_states(model, "train", rows).numpy(), objective.labels["train"][rows]
    if objective.task.kind != "classify":
        deviations = states.std(0)
        states = np.where(deviations > NEARLY_CONSTANT * np.median(deviations), states, 0.0)
    balanced = objective.class_weights is not None
    strengths = None if final else [NOTHING, REGULARIZATION]
    if words:
        texts, pairs = objective.read_texts("train", rows)
        fit, model.words = fit_words_and_states(states, texts, pairs, labels, model.labels, balanced=balanced)
    elif isinstance(reading, SetReading):
        fit = fit_label_sets(states, labels, balanced=balanced, strengths=strengths)
    elif isinstance(reading, NumberReading):
        fit = fit_ridge(states, reading.standardize(labels), strengths=strengths)
    elif isinstance(head, OrdinalHead):
        fit, thresholds = fit_ordinal(states, labels, model.n_classes, balanced=balanced, strengths=strengths)
        head.set_thresholds(torch.from_numpy(thresholds))
    else:
        strengths = None
        if not final:
            # Where the states tell nothing about the labels, a head that follows them is worse than none.
            trials = choose_strength(
                states, labels, model.n_classes, balanced=balanced, strengths=(NOTHING, REGULARIZATION)
            )
            strengths = [NOTHING if trials.value <= NOTHING else REGULARIZATION]
        fit = fit_logistic(states, labels, model.n_classes, balanced=balanced, strengths=strengths)
    with torch.no_grad():
        head.out.weight.copy_(torch.from_numpy(fit.weight))
        if head.out.bias is not None:
            head.out.bias.copy_(torch.from_numpy(fit.bias))
    return time.monotonic() - began
