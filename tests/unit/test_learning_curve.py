from __future__ import annotations

import numpy as np
import pytest

from heedful.statistics.learning_curve import fit_learning_curve, fit_power_laws, fit_share_curve

SIZES = np.array([100, 200, 400, 800, 1600])


def draw_right(shares: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Draw which of n examples are right at each size; a difficult example is difficult at every size."""
    rng = np.random.default_rng(seed)
    difficulty = np.where(rng.random((n, 1)) < 0.5, rng.random((n, 1)), rng.random((n, len(shares))))
    return difficulty < shares


def test_exact_power_laws_are_found_again() -> None:
    scores = 0.9 - 2.0 * SIZES ** -np.array([[0.5]])
    limit, amount, exponent = fit_power_laws(SIZES.astype(float), scores, np.full(5, 1e-3), 1.0)
    at = np.abs(limit - amount * 3200.0**-exponent - (0.9 - 2.0 * 3200**-0.5))
    assert at.max() < 2e-3  # the exponents are a list


def test_twice_the_labels_are_predicted_with_an_interval_that_covers() -> None:
    covered, rising = 0, 0
    truth = 0.92 - 2.0 * np.append(SIZES, 3200) ** -0.5
    for seed in range(25):
        curve = fit_share_curve(SIZES, draw_right(truth[:-1], 1000, seed), seed=seed)
        covered += curve.interval.low <= truth[-1] <= curve.interval.high
        rising += curve.verdict == "rising"
        assert curve.size == 3200
        assert curve.expected == pytest.approx(curve.predict(3200))
    assert covered >= 22
    assert rising >= 22


def test_the_prediction_is_for_twice_the_labels_that_there_are() -> None:
    scores = 0.9 - 2.0 * SIZES**-0.5
    draws = scores + np.random.default_rng(0).normal(0, 1e-3, (100, 1))
    curve = fit_learning_curve(SIZES, scores, draws, current=2000)
    assert curve.size == 4000
    assert curve.expected == pytest.approx(0.9 - 2.0 * 4000**-0.5, abs=2e-3)
    assert curve.gain == pytest.approx(2.0 * (2000**-0.5 - 4000**-0.5), abs=2e-3)


def test_a_flat_curve_is_called_flat_and_a_noisy_one_unclear() -> None:
    flat = fit_share_curve(SIZES, draw_right(np.full(5, 0.9), 20_000, 1))
    assert flat.verdict == "flat"
    # 20,000 rows have a share of 0.9 with a standard deviation of 0.002
    assert flat.gain == pytest.approx(0, abs=0.005)
    noisy = fit_share_curve(SIZES, draw_right(np.array([0.7, 0.75, 0.77, 0.79, 0.8]), 30, 2))
    assert noisy.verdict == "unclear"
    assert noisy.interval.high - noisy.interval.low > 0.1


def test_the_prediction_stays_below_the_ceiling_and_falling_scores_are_no_law() -> None:
    nearly = fit_share_curve(SIZES, draw_right(np.array([0.9, 0.95, 0.98, 0.99, 0.999]), 500, 3))
    assert nearly.interval.high <= 1
    falling = fit_share_curve(SIZES, draw_right(np.array([0.9, 0.88, 0.86, 0.84, 0.82]), 2000, 4))
    assert falling.gain == 0
    assert falling.verdict != "rising"


def test_too_few_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 3 sizes"):
        fit_learning_curve([100, 200], [0.5, 0.6], np.zeros((10, 2)))
    with pytest.raises(ValueError, match="one score per size"):
        fit_learning_curve([100, 200, 400], [0.5, 0.6], np.zeros((10, 3)))
