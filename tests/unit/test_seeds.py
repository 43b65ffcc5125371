"""Variances of few seeds, pooled over arms: their intervals cover the truth, and what they borrow is sound."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from benchmarks import seeds as benchmark

from heedful.evaluation.metrics import METRICS
from heedful.report.sentences.comparisons import describe_comparisons
from heedful.statistics import seeds
from heedful.statistics.comparison import compare_all
from heedful.statistics.seeds import UNKNOWN, PooledSeeds, RunScores, pool_pairs, share_scores

N = 100


def draw_scores(rng: np.random.Generator, runs: int, luck: float, shared: np.ndarray) -> RunScores:
    """An arm with a true score of 0 and examples whose mean has a standard deviation of 0.1."""
    own, each = rng.normal(size=(N, 1)), rng.normal(size=(N, runs))
    table = math.sqrt(0.5) * shared[:, None] + math.sqrt(0.3) * own + math.sqrt(0.2) * each
    table = table + luck * rng.normal(size=runs)
    return RunScores(table.mean(0), table, 1 / N)


LUCK = {"equal": (0.1,) * 4, "unequal": (0.05, 0.2, 0.05, 0.2), "some without": (0.1, 0.1, 0.0, 0.0)}


@pytest.mark.parametrize("runs", [2, 3, 5])
def test_pooled_intervals_cover_as_often_as_they_say(runs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seeds, "DRAWS", 300)
    rng = np.random.default_rng(5)
    of_means: dict[str, list[bool]] = {name: [] for name in LUCK}
    of_differences: dict[str, list[bool]] = {name: [] for name in LUCK}
    for trial in range(330):
        pattern = list(LUCK)[trial % 3]
        shared = rng.normal(size=N)
        arms = {str(i): draw_scores(rng, runs, luck, shared) for i, luck in enumerate(LUCK[pattern])}
        pooled = PooledSeeds(arms)
        for name, arm in arms.items():
            covered = covers_zero(arm.values.mean(), arm.table.mean(1), pooled.estimate(name))
            of_means[pattern].append(covered)
        for a, b in combinations(arms, 2):
            each = arms[a].table.mean(1) - arms[b].table.mean(1)
            of_differences[pattern].append(covers_zero(each.mean(), each, pooled.estimate(a, b)))
    for covered_of in (of_means, of_differences):
        assert 0.92 <= np.mean([np.mean(covered) for covered in covered_of.values()]) <= 0.98
        # with so few trials, a single pattern may be off by 0.02
        assert all(0.9 <= np.mean(covered) <= 0.99 for covered in covered_of.values())


def covers_zero(value: float, each: np.ndarray, found: seeds.SeedVariance) -> bool:
    variance = float(each.var(ddof=1)) / N
    return abs(value) <= found.extend(1.96 * math.sqrt(variance * found.share_left(variance)))


def test_the_rule_before_it_would_be_too_wide() -> None:
    """The opposite claim, with the whole chain of the comparison."""
    alone, pooled = (
        benchmark.measure_coverage(rule, 2, benchmark.LUCK["equal, 0.02"], 8) for rule in benchmark.RULES
    )
    assert pooled.width < 0.6 * alone.width


def draw_right(accuracies: list[float], n: int, seed: int) -> np.ndarray:
    """Runs with exactly these shares of right answers, mostly on the same examples."""
    hardness = np.random.default_rng(99).normal(size=n)
    rng = np.random.default_rng(seed)
    own, runs = rng.normal(size=n), np.zeros((len(accuracies), n))
    for run, accuracy in zip(runs, accuracies, strict=True):
        order = np.argsort(0.75 * hardness + 0.4 * own + 0.5 * rng.normal(size=n))
        run[order[: round(accuracy * n)]] = 1
    return runs


def test_two_seeds_per_arm_show_a_large_difference_and_no_small_one() -> None:
    full, head = draw_right([0.554, 0.560], 500, 1), draw_right([0.196, 0.210], 500, 2)
    (found,) = compare_all({"head": head, "full": full})
    assert (found.a, found.differs) == ("full", True)
    assert 0.28 < found.low < found.difference < found.high < 0.43
    text = describe_comparisons([found])
    assert text.startswith(
        "full is best: its accuracy, 0.557, is higher than that of head (0.203), beyond chance."
    )
    assert "other examples could change it by about 0.0" in text
    (same,) = compare_all({"a": draw_right([0.70, 0.72], 500, 3), "b": draw_right([0.71, 0.712], 500, 4)})
    assert not same.differs
    assert not same.depends_on_seed
    assert "Until more data decide, the cheaper of b and a is a sensible choice." in describe_comparisons(
        [same]
    )


def test_runs_may_differ_though_another_seed_could_change_that() -> None:
    high, low = draw_right([0.70, 0.80], 2000, 5), draw_right([0.69, 0.66], 2000, 6)
    (found,) = compare_all({"high": high, "low": low})
    assert found.depends_on_seed
    assert found.seed_reach > found.example_reach
    text = describe_comparisons([found])
    assert (
        "The runs of high are ahead of those of low beyond chance, but another seed could change that."
        in text
    )
    assert "Until more seeds decide, high is the best guess." in text


def test_single_runs_say_nothing_of_seeds_and_borrow_where_others_have_several() -> None:
    one, other, several = ([0.7], 500, 1), ([0.6], 500, 2), ([0.70, 0.72, 0.69], 500, 3)
    arms = {
        name: share_scores(draw_right(*arm)) for name, arm in zip("abc", (one, other, several), strict=True)
    }
    assert PooledSeeds({"a": arms["a"], "b": arms["b"]}).estimate("a", "b") == UNKNOWN
    pooled = PooledSeeds(arms)
    assert pooled.estimate("a").variance == pytest.approx(3 * pooled.estimate("c").variance, rel=0.3)
    (single,) = compare_all({"a": draw_right(*one), "b": draw_right(*other)})
    assert "A single run per arm does not show how much the seed matters." in describe_comparisons([single])
    (mixed,) = compare_all({"a": draw_right(*one), "c": draw_right(*several)})
    assert "An arm with a single run is taken to vary as much as the others." in describe_comparisons([mixed])


def test_an_arm_whose_runs_are_equal_does_not_vary_and_lends_nothing() -> None:
    same = np.repeat(draw_right([0.7], 500, 1), 2, axis=0)
    arms = {"same": share_scores(same), "other": share_scores(draw_right([0.7, 0.74], 500, 2))}
    pooled = PooledSeeds(arms)
    assert pooled.estimate("same").variance == 0
    assert pooled.estimate("other") == PooledSeeds({"other": arms["other"]}).estimate("other")


def test_a_collapsed_seed_is_not_lent_to_other_arms() -> None:
    steady = {name: share_scores(draw_right([0.70, 0.71 + i / 200], 500, i)) for i, name in enumerate("abc")}
    with_collapse = {**steady, "d": share_scores(draw_right([0.8, 0.2], 500, 9))}
    before, after = PooledSeeds(steady).estimate("a"), PooledSeeds(with_collapse).estimate("a")
    assert after.extend(0.0) < 2.5 * before.extend(0.0)
    assert PooledSeeds(with_collapse).estimate("d").extend(0.0) > 0.3


def test_any_metric_borrows_from_the_other_arms_of_a_study() -> None:
    rng = np.random.default_rng(0)
    targets = rng.normal(size=300)
    mae = METRICS["mae"]
    noise = rng.normal(size=300)

    def run(size: float) -> np.ndarray:
        return np.asarray(targets + size * (0.9 * noise + 0.4 * rng.normal(size=300)))

    arms = {"best": [run(0.5), run(0.52)], "good": [run(0.75), run(0.78)], "bad": [run(1.0), run(1.05)]}
    alone = mae.mean_with_interval(targets, arms["best"])[1]
    pooled = mae.means_with_intervals(targets, arms)["best"][1]
    assert pooled.high - pooled.low < 0.95 * (alone.high - alone.low)
    found = mae.compare_all(targets, arms)
    assert [(c.a, c.b, c.differs) for c in found][:2] == [("best", "good", True), ("best", "bad", True)]
    assert all(c.freedom > 2 for c in found)
    (pair,) = mae.compare_all(targets, arms, pairs=[("bad", "best")])
    assert (pair.a, pair.b, pair.tests) == ("best", "bad", 1)
    assert pair.seed_variance == found[1].seed_variance


def test_seeds_that_arms_share_are_compared_seed_by_seed_and_pooled_over_pairs() -> None:
    rng = np.random.default_rng(1)
    luck = rng.normal(0, 0.08, size=(2, 1))
    arms = {
        name: share_scores(rng.uniform(size=(2, 4000)) < level + luck)
        for name, level in (("a", 0.74), ("b", 0.70), ("c", 0.66))
    }
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    shared, apart = pool_pairs(arms, pairs, paired=True), pool_pairs(arms, pairs)
    assert all(shared[pair].extend(0.0) < 0.5 * apart[pair].extend(0.0) for pair in pairs)
    with pytest.raises(ValueError, match="equally many"):
        pool_pairs({**arms, "c": share_scores(np.ones((3, 4000)))}, pairs, paired=True)
