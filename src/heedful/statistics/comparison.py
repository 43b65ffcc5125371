"""Paired tests: whether one arm is better than another on the same examples.

Scores are arrays of right (1) and wrong (0), `[examples]` for one run or `[seeds, examples]` for several.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import special

from heedful.statistics.proportions import normal_quantile
from heedful.statistics.seeds import SeedVariance, pool_pairs, share_scores, t_quantile

Floats = npt.NDArray[np.float64]
ALPHA = 0.05
DRAWS = 20_000
SEEDS_TEST = "bootstrap over examples and seeds"
ROUNDING = 1e-9
"""A smaller difference is a rounding error."""


@dataclass(frozen=True)
class Comparison:
    """Two arms on the same examples. `difference` is a - b; `p` is corrected if there are several tests."""

    a: str
    b: str
    value_a: float
    value_b: float
    difference: float
    low: float
    high: float
    p: float
    """Of a difference of 0, over examples and seeds."""
    example_p: float
    """Of a difference of 0 between these very runs, over examples alone."""
    n: int
    seeds: int
    """The smaller number of runs of the two arms."""
    test: str
    example_variance: float
    """The variance of the difference between these runs over examples."""
    seed_variance: float
    """The part that shrinks with more seeds."""
    freedom: float = 0.0
    """The degrees of freedom of `seed_variance`; 0 where nothing is known about seeds."""
    shared_variance: float = 0.0
    """The part of both variances that is due to runs that err on different examples."""
    tests: int = 1
    """The number of tests that p is corrected for."""
    higher_is_better: bool = True

    @property
    def differs(self) -> bool:
        return self.p < ALPHA

    @property
    def seed_reach(self) -> float:
        """How far other seeds can move the difference on these examples, at 95 %; 0 if that is not known."""
        if not self.freedom:
            return 0.0
        seeds = SeedVariance(self.seed_variance, self.freedom)
        known = self.example_variance - self.shared_variance
        return t_quantile(seeds.total_freedom(known)) * math.sqrt(self.seed_variance)

    @property
    def example_reach(self) -> float:
        """How far other examples can move the difference between these runs, at 95 %."""
        return normal_quantile(1 - ALPHA) * math.sqrt(self.example_variance)

    @property
    def is_single(self) -> bool:
        """Whether an arm has a single run, and nothing is known about seeds."""
        return self.seeds < 2 and not self.freedom

    @property
    def depends_on_seed(self) -> bool:
        """Whether these runs differ beyond chance, and other seeds could change that."""
        return self.example_p < ALPHA <= self.p

    @property
    def identical(self) -> bool:
        """Whether both arms have the same score on every example."""
        return not (self.difference or self.example_variance or self.seed_variance)

    def better_first(self) -> Comparison:
        if not self.difference or (self.difference > 0) == self.higher_is_better:
            return self
        swapped = replace(self, a=self.b, b=self.a, value_a=self.value_b, value_b=self.value_a)
        return replace(swapped, difference=-self.difference, low=-self.high, high=-self.low)


@dataclass(frozen=True)
class Ranking:
    """The arm with the best score, and how it compares with each of the others."""

    best: str
    beaten: tuple[str, ...]
    """Arms that it is better than, beyond chance."""
    tied: tuple[str, ...]
    """Arms with the same score."""
    undecided: tuple[str, ...]
    """Arms with a worse score that cannot be told apart from it."""
    ahead: tuple[str, ...]
    """Those of the undecided arms whose runs it is better than, if other seeds do not change that."""
    furthest: Comparison | None
    """The comparison with the last of the tied and undecided arms."""
    single_run: bool
    """Whether nothing is known about seeds in any of the comparisons."""


def mcnemar(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Return the exact two-sided p of McNemar's test (1947), over examples that only one run has right."""
    right_a, right_b = np.asarray(a, dtype=bool), np.asarray(b, dtype=bool)
    if right_a.shape != right_b.shape or right_a.ndim != 1:
        raise ValueError("McNemar's test needs two runs on the same examples")
    only_a, only_b = int(np.sum(right_a & ~right_b)), int(np.sum(right_b & ~right_a))
    if only_a == only_b:
        return 1.0
    return float(min(1.0, 2 * special.bdtr(min(only_a, only_b), only_a + only_b, 0.5)))


def compare(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    *,
    names: tuple[str, str] = ("a", "b"),
    paired_seeds: bool = False,
    seeds: SeedVariance | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare two arms, by McNemar's exact test if each has one run, by a bootstrap if there are several.

    The bootstrap draws examples with replacement, the same ones for both arms. There are too few seeds to
    resample, so their part is added as Student's t around the observed means. `seeds` is what all arms of a
    study together say about it; by default, it is estimated from these two arms. `paired_seeds` means that
    runs at equal positions share what a seed decides (such as which examples are labeled) and are compared
    seed by seed. Where few examples differ, a bootstrap is overconfident: p is at least that of a permutation
    test that exchanges the arms example by example, which for single runs is McNemar's.
    """
    runs_a, runs_b = (np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (a, b))
    n = runs_a.shape[1]
    if runs_b.shape[1] != n or n < 2:
        raise ValueError("a comparison needs two arms on the same examples, at least two of them")
    if seeds is None:
        arms = {"a": share_scores(runs_a), "b": share_scores(runs_b)}
        seeds = pool_pairs(arms, [("a", "b")], paired=paired_seeds)["a", "b"]
    each = runs_a.mean(0) - runs_b.mean(0)  # [examples]
    difference = float(each.mean())
    rng = np.random.default_rng(seed)
    draws = draw_differences(each, rng)
    example_variance = estimate_example_variance(each)
    if len(runs_a) == len(runs_b) == 1:
        example_p, test = mcnemar(runs_a[0], runs_b[0]), "McNemar"
    else:
        example_p, test = max(two_sided_p(draws), permutation_p(each, rng)), SEEDS_TEST
    p = example_p
    if seeds.freedom:
        draws = seeds.widen(draws, example_variance, rng)
        p, test = max(example_p, two_sided_p(draws)), SEEDS_TEST
    low, high = np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2])
    return Comparison(
        *names,
        value_a=float(runs_a.mean()),
        value_b=float(runs_b.mean()),
        difference=difference,
        low=max(-1.0, float(low)),
        high=min(1.0, float(high)),
        p=p,
        example_p=example_p,
        n=n,
        seeds=min(len(runs_a), len(runs_b)),
        test=test,
        example_variance=example_variance,
        seed_variance=seeds.variance,
        freedom=seeds.freedom,
        shared_variance=min(seeds.residual, example_variance),
    )


def two_sided_p(draws: Floats) -> float:
    """Return the p of a difference of 0, given draws of the difference."""
    beyond = min(np.sum(draws <= 0), np.sum(draws >= 0))
    return float(min(1.0, 2 * (beyond + 1) / (len(draws) + 1)))


def draw_differences(each: Floats, rng: np.random.Generator) -> Floats:
    """Draw the mean difference over examples sampled with replacement.

    Few distinct values occur, so it is enough to draw how often each of them occurs. The spread is that of
    the examples of `smooth_counts`, the center is the mean of the real ones.
    """
    values, weights = smooth_counts(each)
    drawn = rng.multinomial(len(each), weights / weights.sum(), size=DRAWS)
    center = float(values @ weights / weights.sum())
    return np.asarray(drawn @ values / len(each) - center + each.mean())


def smooth_counts(each: Floats) -> tuple[Floats, Floats]:
    """Return the distinct values and their counts, with two pseudo-examples added (Agresti and Min 2005).

    Half an example of each sign and one of neither: where few examples differ, no resample would otherwise
    ever go the other way. Arms that agree everywhere get none.
    """
    distinct, frequencies = np.unique(each.round(12), return_counts=True)
    values, counts = distinct.astype(np.float64), frequencies.astype(np.float64)
    if not values.any():
        return values, counts
    extended = np.concatenate([values, [-1.0, 0.0, 1.0]])
    weights = np.concatenate([counts, [0.5, 1.0, 0.5]])
    merged, positions = np.unique(extended, return_inverse=True)
    return np.asarray(merged, np.float64), np.asarray(np.bincount(positions, weights=weights), np.float64)


def estimate_example_variance(each: Floats) -> float:
    values, weights = smooth_counts(each)
    share = weights / weights.sum()
    return float((share @ values**2 - (share @ values) ** 2) / (len(each) - 1))


def permutation_p(each: Floats, rng: np.random.Generator) -> float:
    """Return the two-sided p of a test that exchanges the arms at random, example by example."""
    sizes, counts = np.unique(np.abs(each).round(12), return_counts=True)
    sums = (2 * rng.binomial(counts, 0.5, size=(DRAWS, len(counts))) - counts) @ sizes
    return float((np.sum(np.abs(sums) >= abs(each.sum()) - ROUNDING) + 1) / (DRAWS + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p values for the number of tests, step by step from the smallest (Holm 1979)."""
    order = np.argsort(p_values)
    corrected = [1.0] * len(p_values)
    reached = 0.0
    for rank, i in enumerate(order):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[i]))
        corrected[i] = reached
    return corrected


def compare_all(
    scores: Mapping[str, npt.ArrayLike], *, paired_seeds: bool = False, seed: int = 0
) -> list[Comparison]:
    """Compare every pair of arms: the better arm first, the best arm's pairs first, p values corrected.

    What seeds change is estimated from all arms together.
    """
    order = sorted(scores, key=lambda name: -float(np.mean(np.asarray(scores[name], dtype=np.float64))))
    pairs = list(combinations(order, 2))
    arms = {name: share_scores(runs) for name, runs in scores.items()}
    seeds = pool_pairs(arms, pairs, paired=paired_seeds)
    return correct_for_tests(
        [compare(scores[a], scores[b], names=(a, b), seeds=seeds[a, b], seed=seed) for a, b in pairs]
    )


def correct_for_tests(comparisons: Sequence[Comparison]) -> list[Comparison]:
    corrected = holm([c.p for c in comparisons])
    example_ps = holm([c.example_p for c in comparisons])
    return [
        replace(c, p=p, example_p=example_p, tests=len(comparisons))
        for c, p, example_p in zip(comparisons, corrected, example_ps, strict=True)
    ]


def rank(comparisons: Sequence[Comparison]) -> Ranking:
    """Compare the best arm with the others, given what `compare_all` returns."""
    best = comparisons[0].a
    against = [c for c in comparisons if c.a == best]
    open_comparisons = [c for c in against if not c.differs]
    tied = tuple(c.b for c in open_comparisons if abs(c.difference) < ROUNDING)
    return Ranking(
        best,
        beaten=tuple(c.b for c in against if c.differs),
        tied=tied,
        undecided=tuple(c.b for c in open_comparisons if c.b not in tied),
        ahead=tuple(c.b for c in open_comparisons if c.depends_on_seed),
        furthest=open_comparisons[-1] if open_comparisons else None,
        single_run=any(c.is_single for c in against),
    )
