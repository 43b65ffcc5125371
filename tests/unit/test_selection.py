from __future__ import annotations

import numpy as np
import pytest

from heedful.evaluation.metrics import ACCURACY, MACRO_F1, PERPLEXITY
from heedful.evaluation.selection import Cost, Selection, select
from heedful.statistics.prior import Expected, combine
from heedful.statistics.selection import estimate_optimism, resample, resample_shares


def draw(
    shares: list[float], n: int, seed: int, shared: float = 0.5
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Draw labels of two classes and candidates a, b, c, ... with these shares of right labels.

    Part of the examples are as difficult for all candidates.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    difficulty = np.where(rng.random((n, 1)) < shared, rng.random((n, 1)), rng.random((n, len(shares))))
    right = difficulty < np.asarray(shares)
    return labels, {
        name: np.where(right[:, i], labels, 1 - labels) for i, name in enumerate("abcdefgh"[: len(shares)])
    }


def choose(labels: np.ndarray, outputs: dict[str, np.ndarray], **options: object) -> Selection:
    """Select among candidates of which each costs a tenth of the one before it in time, and ten times its space."""
    costs = {name: Cost(10.0 ** (9 - i), 10.0**i) for i, name in enumerate(outputs)}
    return select(ACCURACY, labels, outputs, costs, **options)  # type: ignore[arg-type]


def test_among_equals_the_cheapest_is_chosen_and_a_clear_winner_is_kept() -> None:
    labels, outputs = draw([0.9, 0.9, 0.6], 1000, 0, shared=0.9)
    default = choose(labels, outputs)
    assert (default.chosen, default.undecided, default.eligible) == (
        "b",
        default.undecided,
        default.undecided,
    )
    assert set(default.undecided) == {"a", "b"}
    assert default.comparisons["c"].differs
    assert choose(labels, outputs, prefer="accuracy").chosen == default.best
    assert choose(labels, outputs, prefer="speed").chosen == "b"
    assert choose(labels, outputs, prefer="small").chosen == "a"


def test_few_examples_do_not_make_a_bad_candidate_acceptable() -> None:
    labels, rows = np.zeros(40, int), np.arange(40)
    outputs = {"a": (rows < 2).astype(int), "b": (rows >= 34).astype(int)}  # 0.95 and 0.85
    default = choose(labels, outputs)
    assert default.undecided == ("a", "b")
    assert default.chosen == "a"
    assert choose(labels, outputs, prefer="speed").chosen == "b"


def test_the_best_of_equal_candidates_loses_its_optimism_and_the_interval_covers() -> None:
    naive, corrected, covered = [], [], 0
    for seed in range(15):
        labels, outputs = draw([0.8] * 6, 150, seed, shared=0.3)
        selection = choose(labels, outputs, prefer="accuracy", resamples=150)
        naive.append(selection.scores[selection.best] - 0.8)
        corrected.append(selection.value - 0.8)
        assert selection.interval is not None
        covered += selection.interval.low <= 0.8 <= selection.interval.high
    assert np.mean(naive) > 0.02
    assert abs(np.mean(corrected)) < 0.01
    assert covered >= 13


def test_a_clear_winner_has_hardly_any_optimism() -> None:
    labels, outputs = draw([0.9, 0.6], 500, 2)
    selection = choose(labels, outputs)
    assert (selection.chosen, selection.stability) == ("a", 1.0)
    # it wins in every resample, so that nothing is left to correct
    assert selection.optimism == pytest.approx(0, abs=1e-3)


def test_any_metric_selects_also_one_that_is_better_where_it_is_lower() -> None:
    labels, outputs = draw([0.9, 0.6], 200, 3)
    costs = {"a": Cost(2.0, 1.0), "b": Cost(1.0, 1.0)}
    f1 = select(MACRO_F1, labels, outputs, costs, resamples=50)
    assert f1.chosen == "a"
    assert f1.interval is not None
    assert f1.interval.low < f1.value < f1.interval.high
    tokens = np.full(50, 10)
    losses = np.random.default_rng(0).normal(20, 1, 50)
    lower = select(PERPLEXITY, tokens, {"a": losses, "b": losses + 5}, costs, resamples=50)
    assert (lower.chosen, lower.best) == ("a", "a")
    assert lower.scores["a"] < lower.scores["b"]


def test_one_candidate_and_one_example_are_no_obstacle() -> None:
    alone = select(ACCURACY, np.array([0, 1, 1]), {"a": np.array([0, 1, 0])}, {"a": Cost(1.0, 1.0)})
    assert (alone.chosen, alone.value, alone.optimism) == ("a", pytest.approx(2 / 3), 0.0)
    one = np.array([1])
    assert choose(one, {"a": one, "b": 1 - one}).chosen == "a"
    with pytest.raises(ValueError, match="no candidate"):
        select(ACCURACY, one, {}, {})


def test_shares_are_resampled_like_any_score() -> None:
    right = np.random.default_rng(0).random((80, 3)) < [0.9, 0.8, 0.7]
    fast = resample_shares(right, resamples=400)
    slow = resample(lambda w: w @ right / np.maximum(1, w.sum(1, keepdims=True)), 80, resamples=400)
    np.testing.assert_array_equal(fast.scores, slow.scores)
    for ours, theirs in ((fast.drawn, slow.drawn), (fast.left_out, slow.left_out)):
        # two simulations of 400 draws: a mean has a standard error of at most 0.005, a deviation one of 4 %
        np.testing.assert_allclose(ours.mean(0), theirs.mean(0), atol=0.02)
        np.testing.assert_allclose(ours.std(0), theirs.std(0), rtol=0.2)
    fixed = estimate_optimism(fast, 0, lambda scores: 0)
    assert fixed.left_out == pytest.approx(0, abs=1e-9)


def test_what_was_expected_counts_for_less_the_more_examples_there_are() -> None:
    """Two candidates whose expectations differ by 0.1, and whose scores differ by as much the other way."""
    expected = [Expected(0.1, 0.02), Expected(0.0, 0.02)]
    weights = []
    for n in (20, 200, 20_000):
        variance = 0.25 / n
        belief = combine(expected, np.diag([variance, variance]))
        difference = float(np.diff(belief.scores(np.array([0.6, 0.7])))[0])
        # the posterior of a normal difference, in closed form
        prior_variance, measured_variance = 2 * 0.02**2, 2 * variance
        by_hand = (-0.1 * measured_variance + 0.1 * prior_variance) / (prior_variance + measured_variance)
        assert difference == pytest.approx(by_hand, abs=1e-9)
        error = np.sqrt(prior_variance * measured_variance / (prior_variance + measured_variance))
        assert belief.errors[0, 1] == pytest.approx(error, rel=1e-6)
        weights.append(difference)
    assert weights[0] < -0.09
    assert weights[-1] > 0.09


def test_a_candidate_that_is_shown_to_be_worse_is_not_chosen_for_what_was_expected_of_it() -> None:
    labels, outputs = draw([0.9, 0.6], 100, 4)
    prior = {"a": Expected(0.0, 0.01), "b": Expected(0.3, 0.01)}
    selection = choose(labels, outputs, prior=prior)
    assert selection.comparisons["b"].differs
    assert selection.chosen == "a"
