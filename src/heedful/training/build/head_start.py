"""Fits a new linear head to the states of the pretrained model, before the first step.

A random head sends random gradients into the pretrained body until it has learned something itself; a fitted
one does not (Kumar et al. 2022, Fine-tuning can distort pretrained features). It costs one forward pass.
"""

from __future__ import annotations

import time

import numpy as np
import torch

from heedful.linear.joint import fit_words_and_states
from heedful.linear.logistic import choose_strength, fit_logistic
from heedful.models import Classifier
from heedful.models.heads import LinearHead
from heedful.objectives import Classify

REGULARIZATION = 0.01
"""Scikit-learn's C, on standardized states: the best or close to it on every task that was tried."""
NOTHING = 1e-6
"""So strong a regularization that only the shares of the labels are left."""
MOST_ROWS = 20_000
"""More rows take longer and hardly change a linear head."""


def fit_head(model: Classifier, objective: Classify, *, final: bool = False, words: bool = False) -> float:
    """Set the head to a logistic regression on the pooled states of the training rows.

    A head that is `final`, and not the start of training, is fitted to all rows, and its regularization is
    chosen by cross-validation. With `words`, the words of the texts are fitted together with the states.

    Returns
    -------
    float
        The seconds that this took.

    """
    began = time.monotonic()
    assert isinstance(model.head, LinearHead)
    rows = objective.rows
    if len(rows) > MOST_ROWS and not final:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_ROWS).astype(np.int64)]
    states, labels = objective.pooled_states(model, "train", rows).numpy(), objective.labels["train"][rows]
    balanced = objective.class_weights is not None
    if words:
        texts, pairs = objective.read_texts("train", rows)
        fit, model.words = fit_words_and_states(states, texts, pairs, labels, model.labels, balanced=balanced)
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
        model.head.out.weight.copy_(torch.from_numpy(fit.weight))
        if model.head.out.bias is not None:
            model.head.out.bias.copy_(torch.from_numpy(fit.bias))
    return time.monotonic() - began
