from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.evaluation import metrics


def brute_f1(labels: list[int], predicted: list[int]) -> float:
    scores = []
    for c in set(labels) | set(predicted):
        hit = sum(t == p == c for t, p in zip(labels, predicted, strict=True))
        found, occurs = predicted.count(c), labels.count(c)
        precision, recall = hit / found if found else 0, hit / occurs if occurs else 0
        scores.append(2 * precision * recall / (precision + recall) if hit else 0.0)
    return sum(scores) / len(scores)


pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=30)


@given(pairs)
def test_macro_f1_is_the_mean_over_classes_that_occur_or_are_predicted(rows: list[tuple[int, int]]) -> None:
    labels, predicted = [list(column) for column in zip(*rows, strict=True)]
    cells = metrics.confusion(labels, predicted, 4)
    assert metrics.macro_f1(cells) == pytest.approx(brute_f1(labels, predicted))
    assert cells.sum() == len(rows)
    assert np.trace(cells) / len(rows) == pytest.approx(metrics.accuracy(labels, predicted))


def test_confusion_has_true_classes_as_rows() -> None:
    assert metrics.confusion([0, 0, 1], [1, 1, 1], 2).tolist() == [[0, 2], [0, 1]]


def test_a_class_out_of_range_is_refused() -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        metrics.confusion([0, 2], [0, 1], 2)


def test_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="belong together"):
        metrics.accuracy([0, 1, 1], [0, 1])


def test_exact_match_ignores_only_white_space() -> None:
    assert metrics.exact_match(["a b", "yes", "No"], [" a \n b", "yes", "no"]) == pytest.approx(2 / 3)


def test_perplexity_is_of_the_corpus_not_the_mean_of_texts() -> None:
    losses, tokens = [10.0, 1.0], [2, 10]
    assert metrics.perplexity(sum(losses), sum(tokens)) == pytest.approx(math.exp(11 / 12))
    assert metrics.perplexity(1e6, 1) == math.inf
