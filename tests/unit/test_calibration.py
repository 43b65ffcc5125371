from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heedful.statistics import calibration

examples = st.lists(
    st.tuples(st.sampled_from([0.1, 0.5, 0.7, 0.9, 1.0]), st.booleans()), min_size=1, max_size=40
)


def calibrated(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    confidence = rng.uniform(0.5, 1, size=n)
    return confidence, rng.uniform(size=n) < confidence


def test_a_calibrated_model_has_a_small_error_and_an_overconfident_one_its_excess() -> None:
    rng = np.random.default_rng(0)
    confidence, right = calibrated(rng, 40_000)
    assert calibration.calibration_error(confidence, right) < 0.01
    assert calibration.calibration_error(np.minimum(1, confidence * 0 + 0.95), right) == pytest.approx(
        0.2, abs=0.01
    )


def test_reliability_bins_hold_equally_many_and_intervals_cover_the_truth() -> None:
    confidence, right = calibrated(np.random.default_rng(1), 3000)
    table = calibration.reliability(confidence, right, bins=10)
    assert [row.n for row in table] == [300] * 10
    assert sum(row.interval.low <= row.confidence <= row.interval.high for row in table) >= 8
    assert all(a.high <= b.low for a, b in pairwise(table))


@given(examples, st.randoms())
def test_the_order_of_equally_sure_examples_changes_nothing(rows, random) -> None:  # type: ignore[no-untyped-def]
    shuffled = list(rows)
    random.shuffle(shuffled)
    one, other = ([list(c) for c in zip(*r, strict=True)] for r in (rows, shuffled))
    for measure in (calibration.calibration_error, lambda c, r: calibration.risk_coverage(c, r).area):
        assert measure(*one) == pytest.approx(measure(*other))


def test_brier_is_the_squared_distance_summed_over_classes() -> None:
    assert calibration.brier([[1, 0], [0.5, 0.5]], [0, 1]) == pytest.approx((0 + 0.5) / 2)
    assert calibration.brier([[0, 1, 0]], [0]) == 2.0


@given(examples)
def test_auroc_counts_ordered_pairs(rows: list[tuple[float, bool]]) -> None:
    up, down = [s for s, p in rows if p], [s for s, p in rows if not p]
    scores, positive = zip(*rows, strict=True)
    if not up or not down:
        with pytest.raises(ValueError, match="positive and negative"):
            calibration.auroc(scores, positive)
        return
    brute = np.mean([(u > d) + 0.5 * (u == d) for u in up for d in down])
    assert calibration.auroc(scores, positive) == pytest.approx(brute)
    low, high = calibration.auroc_interval(scores, positive)
    assert 0 <= low <= brute + 1e-12
    assert brute - 1e-12 <= high <= 1


def test_delongs_variance_equals_the_brute_force_one() -> None:
    rng = np.random.default_rng(2)
    up, down = rng.normal(1, 1, 30), rng.normal(0, 1, 50)
    kernel = (up[:, None] > down) + 0.5 * (up[:, None] == down)
    parts = kernel.mean(1).var(ddof=1) / 30, kernel.mean(0).var(ddof=1) / 50
    variance, area = sum(parts), kernel.mean()
    far = stats.t.ppf(0.975, variance**2 / (parts[0] ** 2 / 29 + parts[1] ** 2 / 49))
    low, high = calibration.auroc_interval(np.r_[up, down], [True] * 30 + [False] * 50)
    half = (np.log(high / (1 - high)) - np.log(low / (1 - low))) / 2
    assert half == pytest.approx(far * np.sqrt(variance) / (area * (1 - area)))


@pytest.mark.parametrize(("up", "down", "most"), [(60, 40, 0.98), (3, 200, 1.0), (2, 50, 1.0)])
def test_the_auroc_interval_covers_as_often_as_it_says(up: int, down: int, most: float) -> None:
    rng = np.random.default_rng(3)
    truth = stats.norm.cdf(1.2 / np.sqrt(2))
    inside = 0
    for _ in range(500):
        scores = np.r_[rng.normal(1.2, 1, up), rng.normal(0, 1, down)]
        low, high = calibration.auroc_interval(scores, np.r_[np.ones(up), np.zeros(down)])
        inside += low <= truth <= high
    assert 0.93 <= inside / 500 <= most


def test_a_perfect_order_still_has_an_interval() -> None:
    low, high = calibration.auroc_interval([3, 4, 1, 2], [True, True, False, False])
    assert high == 1.0
    assert 0 < low < 1


def test_risk_coverage_follows_the_definition() -> None:
    curve = calibration.risk_coverage([0.9, 0.8, 0.8, 0.6], [True, False, True, False])
    assert curve.threshold.tolist() == [0.9, 0.8, 0.6]
    assert curve.coverage.tolist() == [0.25, 0.75, 1.0]
    assert curve.risk == pytest.approx([0, 1 / 3, 0.5])
    assert curve.best_area <= curve.area
    assert curve.best_area == pytest.approx(np.mean([0, 0, 1 / 3, 0.5]))


def test_ranking_by_right_and_wrong_reaches_the_best_area() -> None:
    right = np.asarray([True, False, True, True, False])
    curve = calibration.risk_coverage(right.astype(float) + np.arange(5) * 1e-3, right)
    assert curve.area == pytest.approx(curve.best_area)


def test_the_promised_risk_is_broken_no_more_often_than_said() -> None:
    rng = np.random.default_rng(4)
    broken = promised = 0
    for _ in range(400):
        confidence, right = calibrated(rng, 400)
        found = calibration.threshold_for_risk(confidence, right, 0.18, level=0.9)
        if found is None:
            continue
        promised += 1
        true_risk = 1 - (found.threshold + 1) / 2  # confidence is uniform above the threshold, and calibrated
        broken += true_risk > 0.18
        assert found.risk <= found.bound <= 0.18
    assert promised > 300
    assert broken / promised <= 0.1


def test_a_risk_that_cannot_be_promised_gives_no_threshold() -> None:
    assert calibration.threshold_for_risk([0.9, 0.8], [True, True], 0.01) is None


def test_a_confidence_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        calibration.calibration_error([float("nan")], [True])
