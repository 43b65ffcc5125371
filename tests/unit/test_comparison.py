from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from heedful.report.sentences.comparisons import describe_comparison, describe_comparisons
from heedful.statistics import comparison, power


def arms(
    rng: np.random.Generator, n: int, seeds: int, accuracies: tuple[float, float], seed_deviation: float = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Two arms on examples of different difficulty, with seeds of different luck."""
    hardness = rng.uniform(-0.25, 0.25, size=n)
    made = []
    for accuracy in accuracies:
        luck = rng.normal(0, seed_deviation, size=(seeds, 1))
        made.append((rng.uniform(size=(seeds, n)) < accuracy + hardness + luck).astype(float))
    return made[0], made[1]


@given(st.integers(0, 40), st.integers(0, 40))
def test_mcnemar_is_the_exact_binomial_test_of_the_discordant_pairs(only_a: int, only_b: int) -> None:
    a = [1] * only_a + [0] * only_b + [1, 0]
    b = [0] * only_a + [1] * only_b + [1, 0]
    expected = stats.binomtest(only_a, only_a + only_b).pvalue if only_a + only_b else 1.0
    assert comparison.mcnemar(a, b) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_exactly_what_the_step_down_procedure_rejects(p_values: list[float]) -> None:
    corrected = comparison.holm(p_values)
    rejected = set()
    for rank, i in enumerate(np.argsort(p_values)):
        if p_values[i] * (len(p_values) - rank) >= 0.05:
            break
        rejected.add(int(i))
    assert {i for i, p in enumerate(corrected) if p < 0.05} == rejected
    assert all(c >= p for c, p in zip(corrected, p_values, strict=True))


@pytest.mark.parametrize(
    ("seeds", "deviation", "linked"), [(1, 0.0, False), (3, 0.02, False), (4, 0.02, True)]
)
def test_equal_arms_are_called_different_no_more_often_than_said(
    seeds: int, deviation: float, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "DRAWS", 2000)
    rng = np.random.default_rng(seeds)
    trials = 400
    wrong = covered = 0
    for trial in range(trials):
        a, b = arms(rng, 300, seeds, (0.7, 0.7), deviation)
        found = comparison.compare(a, b, paired_seeds=linked, seed=trial)
        wrong += found.differs
        covered += found.low <= 0 <= found.high
    assert wrong / trials <= 0.07
    assert covered / trials >= 0.93


def test_ignoring_the_seeds_would_be_wrong_far_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The opposite claim, so that the test above is known to be able to fail."""
    monkeypatch.setattr(comparison, "DRAWS", 2000)
    rng = np.random.default_rng(0)
    wrong = 0
    for trial in range(200):
        a, b = arms(rng, 1000, 3, (0.7, 0.7), 0.03)
        each = a.mean(0) - b.mean(0)
        low, high = np.quantile(
            comparison.draw_differences(each, np.random.default_rng(trial)), [0.025, 0.975]
        )
        wrong += not low <= 0 <= high
    assert wrong / 200 > 0.2


def test_the_power_is_what_was_promised() -> None:
    """With as many examples as `examples_needed` says, the difference is found about four times in five."""
    rng = np.random.default_rng(5)
    a, b = arms(rng, 20_000, 1, (0.75, 0.7))
    pilot = comparison.compare(a, b)
    needed = power.examples_needed(pilot, 0.05)
    assert needed is not None
    found = 0
    for trial in range(300):
        a, b = arms(rng, needed, 1, (0.75, 0.7))
        found += comparison.compare(a, b, seed=trial).differs
    assert 0.72 <= found / 300 <= 0.88


@pytest.mark.parametrize(("seeds", "linked"), [(3, False), (5, False), (4, True)])
def test_what_is_said_to_be_detectable_with_seeds_is_found(
    seeds: int, linked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparison, "DRAWS", 2000)
    rng = np.random.default_rng(8)
    told = [
        power.detectable_difference(
            comparison.compare(*arms(rng, 1000, seeds, (0.7, 0.7), 0.01), paired_seeds=linked)
        )
        for _ in range(60)
    ]
    difference = float(np.mean(told))
    found = 0
    for trial in range(200):
        a, b = arms(rng, 1000, seeds, (0.7 + difference, 0.7), 0.01)
        found += comparison.compare(a, b, paired_seeds=linked, seed=trial).differs
    assert 0.68 <= found / 200 <= 0.97


def test_one_run_beside_several_is_not_taken_for_all_that_seeds_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "DRAWS", 2000)
    rng = np.random.default_rng(9)
    wrong = 0
    for trial in range(300):
        a, b = arms(rng, 1000, 5, (0.7, 0.7), 0.015)
        wrong += comparison.compare(a, b[:1], seed=trial).differs
    assert wrong / 300 <= 0.07


@pytest.mark.parametrize(("differing", "expected"), [(1, 1.0), (4, 0.125), (5, 0.0625), (9, 2 / 2**9)])
def test_seeds_that_agree_are_no_surer_than_one_run(differing: int, expected: float) -> None:
    a, b = np.ones((2, 1000)), np.ones((2, 1000))
    b[:, :differing] = 0
    assert comparison.mcnemar(a[0], b[0]) == pytest.approx(expected)
    assert comparison.compare(a, b).p == pytest.approx(expected, rel=0.15)


def test_few_examples_are_not_said_to_show_what_they_cannot() -> None:
    found = comparison.compare(np.ones(4), np.zeros(4))
    assert not found.differs
    assert found.low < found.high
    assert "These 4 examples are too few to show any difference." in describe_comparison(found)
    # A difference that was not found is never above what is said to be found.
    a, b = np.zeros((2, 2000)), np.zeros((2, 2000))
    for run, (own, other) in enumerate(((1720, 1600), (1680, 1600))):
        a[run, :own], b[run, :other] = 1, 1
    spread = comparison.compare(a, b)
    assert not spread.differs
    assert power.detectable_difference(spread) > spread.difference
    assert "more seed" in describe_comparison(spread)


def test_pairing_the_seeds_finds_what_their_luck_hides() -> None:
    rng = np.random.default_rng(1)
    luck = rng.normal(0, 0.08, size=(5, 1))
    a = (rng.uniform(size=(5, 2000)) < 0.74 + luck).astype(float)
    b = (rng.uniform(size=(5, 2000)) < 0.68 + luck).astype(float)
    assert not comparison.compare(a, b).differs
    assert comparison.compare(a, b, paired_seeds=True).differs


def test_more_examples_cannot_replace_more_seeds() -> None:
    rng = np.random.default_rng(2)
    a, b = arms(rng, 5000, 3, (0.7, 0.7), 0.1)
    found = comparison.compare(a, b)
    assert power.examples_needed(found, 0.01) is None
    assert power.seeds_needed(found, 0.05) is not None


def test_the_detectable_difference_shrinks_as_the_root_of_the_examples() -> None:
    rng = np.random.default_rng(3)
    small = comparison.compare(*arms(rng, 500, 1, (0.7, 0.7)))
    large = comparison.compare(*arms(rng, 50_000, 1, (0.7, 0.7)))
    assert power.detectable_difference(small) / power.detectable_difference(large) == pytest.approx(
        10, rel=0.1
    )


def test_sentences_say_which_is_better_or_what_would_tell() -> None:
    rng = np.random.default_rng(4)
    base, better = arms(rng, 2000, 1, (0.6, 0.75))
    close, _ = arms(rng, 2000, 1, (0.74, 0.7))
    clear = describe_comparison(comparison.compare(base, better, names=("head", "full")))
    assert clear.startswith("full is better than head on these examples: accuracy 0.7")
    assert "p < 0.001" in clear
    assert "how much the seed matters" in clear
    open_question = describe_comparison(comparison.compare(close, better, names=("lora", "full")))
    assert "cannot be told apart" in open_question
    assert "more examples" in open_question


def test_the_verdict_names_the_best_and_what_cannot_be_told_apart() -> None:
    rng = np.random.default_rng(6)
    full, head = arms(rng, 1500, 3, (0.8, 0.6), 0.01)
    lora = full.copy()
    flipped = rng.choice(1500, 40, replace=False)
    lora[0, flipped] = 1 - lora[0, flipped]
    text = describe_comparisons(comparison.compare_all({"head": head, "full": full, "lora": lora}))
    assert "beats head" in text
    assert "cannot be told apart from" in text
    alone = describe_comparisons(comparison.compare_all({"head": head, "full": full}))
    assert alone.startswith("full is best: its accuracy, 0.")
    assert "is higher than that of head (0." in alone
    assert "p < 0.001): other examples could change it by about 0.02, other seeds by about 0.05." in alone


def test_what_would_tell_is_said_of_one_pair_and_reckons_with_all_tests() -> None:
    rng = np.random.default_rng(7)
    right = rng.random(400) < 0.7
    few = {"best": right, "near": right.copy(), "far": right.copy()}
    lost = np.flatnonzero(right)
    few["near"][lost[:2]] = False
    few["far"][lost[:5]] = False
    found = comparison.compare_all(few)
    assert {c.tests for c in found} == {3}
    text = describe_comparisons(found)
    assert "cannot be told apart from near (0." in text
    assert "between best and far, the furthest behind of these, is 0.01" in text
    assert (
        "; p = 0.188, corrected for 3 tests). Until more data decide, the cheapest of best, near and far"
        in text
    )
    assert "is a sensible choice. Closer arms take more data to tell apart." in text
    single = comparison.compare(few["best"], few["far"])
    (pair,) = (c for c in found if (c.a, c.b) == ("best", "far"))
    assert power.detectable_difference(pair) > power.detectable_difference(single)
    more, fewer = power.examples_needed(pair), power.examples_needed(single)
    assert more is not None
    assert fewer is not None
    assert more == pytest.approx(
        fewer * (power.standard_errors_needed(3) / power.standard_errors_needed()) ** 2, abs=1
    )
    assert "furthest" not in describe_comparisons(
        comparison.compare_all({"best": few["best"], "near": few["near"]})
    )


def test_arms_with_the_same_score_are_not_called_higher_and_lower() -> None:
    same = np.asarray([1, 0, 1, 1] * 30)
    equal = describe_comparisons(comparison.compare_all({"lora": same, "full": same}))
    assert equal.startswith("No arm is shown to be best: lora and full have the same accuracy. On each of")
    three = describe_comparisons(comparison.compare_all({"lora": same, "full": same, "none": np.zeros(120)}))
    assert three.startswith("lora, tied with full, has the highest accuracy, 0.750, and beats none (0.000).")


def test_a_lower_score_is_better_where_the_metric_says_so() -> None:
    rng = np.random.default_rng(10)
    high, low = arms(rng, 2000, 1, (0.75, 0.6))
    pair = replace(comparison.compare(low, high, names=("low", "high")), higher_is_better=False)
    assert describe_comparison(pair, "error").startswith(
        "low is better than high on these examples: error 0.6"
    )
    other = replace(comparison.compare(high, low, names=("high", "low")), higher_is_better=False)
    assert describe_comparison(other, "error").startswith(
        "low is better than high on these examples: error 0.6"
    )
    best = describe_comparisons([pair], "error")
    assert best.startswith(
        "low is best on these examples: its error, 0.601, is lower than that of high (0.758), beyond chance."
    )


def test_identical_arms_are_told_apart_by_nothing() -> None:
    same = np.asarray([1, 0, 1, 1])
    found = comparison.compare(same, same)
    assert (found.difference, found.p) == (0.0, 1.0)
    assert power.examples_needed(found) is None
    told = describe_comparison(found)
    assert "cannot be told apart" in told
    assert "On each of these 4 examples both are equally right: there is nothing to tell apart." in told
    assert "would be detected" not in told


def test_arms_on_different_examples_are_refused() -> None:
    with pytest.raises(ValueError, match="same examples"):
        comparison.compare([1, 0, 1], [1, 0])
    with pytest.raises(ValueError, match="equally many"):
        comparison.compare(np.ones((2, 4)), np.ones((3, 4)), paired_seeds=True)
