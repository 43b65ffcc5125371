from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.evaluation import metrics
from heedful.runs.schemas import SplitResult
from heedful.statistics.comparison import compare_all


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


def macro_f1_of_labels(labels: np.ndarray, predicted: np.ndarray) -> float:
    return metrics.macro_f1(metrics.confusion(labels, predicted, 3))


STRANGER = metrics.Metric("macro_f1", macro_f1_of_labels)
"""What another package would add: a name and a function."""


def draw(seed: int, n: int, right: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    return labels, np.where(rng.random(n) < right, labels, rng.integers(0, 3, n))


def test_a_metric_without_an_interval_of_its_own_has_one_by_bootstrap() -> None:
    labels, predicted = draw(0, 400, 0.8)
    interval = STRANGER.interval(labels, predicted)
    assert interval is not None
    assert interval.low < STRANGER.compute(labels, predicted) < interval.high
    # The same resamples, one by one and all at once.
    assert interval == pytest.approx(metrics.MACRO_F1.interval(labels, predicted))
    assert STRANGER.interval(labels[:1], predicted[:1]) is None


def test_a_metric_without_a_paired_test_of_its_own_has_one_by_resampling() -> None:
    labels, good = draw(1, 400, 0.9)
    _, same = draw(1, 400, 0.9)
    bad = np.where(np.random.default_rng(2).random(400) < 0.4, (good + 1) % 3, good)
    better, equal = (
        STRANGER.compare_all(labels, {"bad": [bad], "good": [good]}),
        STRANGER.compare_all(labels, {"a": [good], "b": [same]}),
    )
    assert (better[0].a, better[0].b, better[0].differs) == ("good", "bad", True)
    assert better[0].low <= better[0].difference <= better[0].high
    assert not equal[0].differs
    several = STRANGER.paired_test(labels, [good, good, same], [bad, bad, bad], names=("good", "bad"))
    assert several.seeds == 3
    assert several.differs


def test_the_paired_test_of_a_share_is_mcnemar_s() -> None:
    labels, a = draw(3, 60, 0.7)
    b = np.where(np.arange(60) < 10, (a + 1) % 3, a)
    found = metrics.ACCURACY.compare_all(labels, {"a": [a], "b": [b]})[0]
    assert found.test == "McNemar"
    right = {"a": metrics.correct(labels, a), "b": metrics.correct(labels, b)}
    assert found == compare_all(right)[0]


def test_macro_f1_is_a_metric_of_labels_as_numbers_or_as_texts() -> None:
    labels, predicted = draw(4, 300, 0.7)
    names = np.array(["no", "perhaps", "yes"], object)
    value = metrics.METRICS["macro_f1"].compute(labels, predicted)
    assert value == pytest.approx(brute_f1(labels.tolist(), predicted.tolist()))
    assert metrics.MACRO_F1.compute(names[labels], names[predicted]) == pytest.approx(value)
    assert metrics.MACRO_F1.interval(labels[:1], predicted[:1]) is None
    # Always the larger class of 95 and 5: a good accuracy and a bad macro F1.
    rare = np.repeat([0, 1], [95, 5])
    assert metrics.MACRO_F1.compute(rare, np.zeros(100, int)) == pytest.approx(190 / 195 / 2)


def test_the_direction_belongs_to_the_metric() -> None:
    assert metrics.ACCURACY.sort_key(0.9) > metrics.ACCURACY.sort_key(0.8)
    assert metrics.PERPLEXITY.sort_key(10.0) > metrics.PERPLEXITY.sort_key(20.0)
    assert metrics.ACCURACY.sort_key(0.9, loss=1.0) > metrics.ACCURACY.sort_key(0.9, loss=2.0)
    assert metrics.PERPLEXITY.improvement(20.0, 15.0) == 5.0
    tokens, losses = np.array([10, 20, 5]), np.array([12.0, 30.0, 8.0])
    arms = {"worse": [losses * 1.5], "better": [losses]}
    assert metrics.PERPLEXITY.compare_all(tokens, arms)[0].a == "better"


def test_results_of_older_versions_say_how_to_read_them_by_the_metric_s_name() -> None:
    for metric in metrics.METRICS.values():
        stored = SplitResult(metric=metric.name, value=0.5, n=10, title=metric.title)
        assert SplitResult(value=0.5, n=10, **metric.describe()) == stored
