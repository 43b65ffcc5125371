"""Intervals against scipy, and by simulation: they must cover the truth as often as they say."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heedful.statistics import intervals, proportions

counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(counts, st.sampled_from([0.8, 0.95, 0.99]))
def test_proportion_intervals_equal_scipys(count: tuple[int, int], level: float) -> None:
    k, n = count
    test = stats.binomtest(k, n)
    wilson, exact = test.proportion_ci(level, "wilson"), test.proportion_ci(level, "exact")
    assert proportions.wilson(k, n, level) == pytest.approx((wilson.low, wilson.high), abs=1e-9)
    assert proportions.clopper_pearson(k, n, level) == pytest.approx((exact.low, exact.high), abs=1e-9)


@given(counts)
def test_proportion_intervals_hold_the_proportion_and_stay_in_range(count: tuple[int, int]) -> None:
    k, n = count
    for low, high in (proportions.wilson(k, n), proportions.clopper_pearson(k, n)):
        assert 0 <= low <= k / n <= high <= 1
        assert low < high


@pytest.mark.parametrize("n", [20, 200])
def test_wilson_covers_as_often_as_it_says_and_the_exact_one_never_less(n: int) -> None:
    wilson = [proportions.wilson(k, n) for k in range(n + 1)]
    exact = [proportions.clopper_pearson(k, n) for k in range(n + 1)]
    truths = np.linspace(0.02, 0.98, 193)
    weights = stats.binom.pmf(np.arange(n + 1)[:, None], n, truths)  # exact coverage, no simulation needed

    def coverage(found: list[proportions.Interval]) -> np.ndarray:
        low, high = np.asarray(found).T
        return (weights * ((low[:, None] <= truths) & (truths <= high[:, None]))).sum(0)

    assert 0.945 <= coverage(wilson).mean() <= 0.96
    assert coverage(exact).min() >= 0.95


def test_impossible_counts_are_refused() -> None:
    for k, n in ((0, 0), (3, 2), (-1, 5)):
        with pytest.raises(ValueError, match="proportion"):
            proportions.wilson(k, n)


def test_the_interval_of_a_mean_equals_scipys() -> None:
    values = [0.81, 0.83, 0.79, 0.9]
    low, high = stats.t.interval(0.95, 3, np.mean(values), stats.sem(values))
    assert intervals.mean_interval(values) == pytest.approx((low, high))
    with pytest.raises(ValueError, match="two values"):
        intervals.mean_interval([0.8])


@pytest.mark.parametrize("bca", [True, False])
def test_the_bootstrap_agrees_with_scipys(bca: bool) -> None:
    sample = np.random.default_rng(3).gamma(2.0, size=150)

    def deviation(x: np.ndarray, axis: int = -1) -> np.ndarray:
        return np.std(x, axis=axis)

    ours = intervals.bootstrap(deviation, sample, resamples=20_000, bca=bca)
    theirs = stats.bootstrap(
        (sample,),
        deviation,
        n_resamples=20_000,
        method="BCa" if bca else "percentile",
        random_state=1,
        vectorized=True,
    )
    assert ours == pytest.approx(tuple(theirs.confidence_interval), abs=0.02)


def test_the_bootstrap_is_the_same_for_the_same_seed_only() -> None:
    sample = np.random.default_rng(0).normal(size=50)

    def mean(x: np.ndarray) -> np.ndarray:
        return x.mean(-1)

    assert intervals.bootstrap(mean, sample, seed=4) == intervals.bootstrap(mean, sample, seed=4)
    assert intervals.bootstrap(mean, sample, seed=4) != intervals.bootstrap(mean, sample, seed=5)


def test_a_sample_without_variation_has_an_interval_of_no_width() -> None:
    assert intervals.bootstrap(lambda x: x.mean(-1), [2.0, 2.0, 2.0]) == (2.0, 2.0)


def test_the_perplexity_interval_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    inside, trials = 0, 300
    for trial in range(trials):
        tokens = rng.integers(20, 60, size=80)
        # The mean loss of a text varies from text to text: its tokens are not independent.
        losses = tokens * rng.normal(3.0, 0.4, size=80)
        low, high = intervals.perplexity_interval(losses, tokens, seed=trial)
        inside += low <= np.exp(3.0) <= high
    assert 0.91 <= inside / trials <= 0.985


def test_long_samples_use_grouped_jackknife_with_the_same_acceleration() -> None:
    sample = np.random.default_rng(2).exponential(size=4000)

    def mean(x: np.ndarray) -> np.ndarray:
        return x.mean(-1)

    grouped = intervals.bootstrap(mean, sample)
    theirs = stats.bootstrap((sample,), np.mean, n_resamples=2000, method="BCa", random_state=0)
    assert grouped == pytest.approx(tuple(theirs.confidence_interval), abs=0.006)
