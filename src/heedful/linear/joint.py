"""One logistic regression on words and on an encoder's states together.

Its logits are the sum of two parts, so that it is kept as two models: a linear head on the states, which has
the bias, and a model of words, which adds its logits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_matrix, hstack

from heedful.linear.logistic import (
    LinearFit,
    Strength,
    choose_strength,
    fit_logistic,
    measure_columns,
    standardize,
)
from heedful.linear.model import TfidfModel
from heedful.linear.solver import Floats, Labels
from heedful.linear.tfidf import fit_tfidf

SCALES = (1.0, 2.0, 4.0, 0.5)
"""Lengths of the states relative to that of a block of words, in the order in which they are tried."""


def fit_words_and_states(
    states: Floats,
    texts: Sequence[str],
    pairs: Sequence[str] | None,
    labels: Labels,
    label_names: Sequence[str],
    *,
    balanced: bool = False,
    seed: int = 0,
) -> tuple[LinearFit, TfidfModel]:
    """Fit both parts; their relative scale and the strength are those with the lowest held-out log loss."""
    n_classes = len(label_names)
    features, words = fit_tfidf(texts, pairs, n_classes)
    mean, scale = measure_columns(states)
    # A row of standardized states has about this length.
    length = np.sqrt(states.shape[1])
    standard = standardize(states, mean, scale) / length

    def join(weight: float) -> csr_matrix:
        return hstack([words, csr_matrix(weight * standard)], format="csr")

    best, weight = Strength(float("nan"), float("inf")), SCALES[0]
    for candidate in SCALES:
        if candidate < 1 < weight:
            break  # the loss has one minimum, and larger states were better
        strength = choose_strength(join(candidate), labels, n_classes, balanced=balanced, seed=seed)
        if np.isnan(strength.loss):
            best = strength
            break
        if strength.loss < best.loss:
            best, weight = strength, candidate
    fit = fit_logistic(join(weight), labels, n_classes, balanced=balanced, strengths=[best.value])
    of_words, of_states = fit.weight[:, : words.shape[1]], fit.weight[:, words.shape[1] :]
    of_states = of_states * weight / (scale * length)
    no_bias = np.zeros(n_classes, np.float32)
    model = TfidfModel(
        tuple(label_names), features, LinearFit(of_words.astype(np.float32), no_bias, best.value)
    )
    return LinearFit(of_states, fit.bias - of_states @ mean, best.value), model
