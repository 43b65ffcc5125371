"""Is one better than the other, on the same examples? Paired tests, and what it would take to tell.

Scores are arrays of right (1) and wrong (0), `[examples]` for one run or `[seeds, examples]` for several.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import special

Floats = npt.NDArray[np.float64]
ALPHA = 0.05
POWER = 0.8
DRAWS = 20_000
MANY = 1000.0
"""From so many degrees of freedom on Student's t is taken for the normal distribution."""
NOTHING = 1e-9
"""Below this a difference is what rounding makes of none."""
MOST_EXAMPLES, MOST_SEEDS = 10**9, 10**4


@dataclass(frozen=True)
class Comparison:
    """Two arms on the same examples. `difference` is a - b; `p` is corrected if there were several tests."""

    a: str
    b: str
    value_a: float
    value_b: float
    difference: float
    low: float
    high: float
    p: float
    n: int
    seeds: int
    """The smaller number of runs of the two arms."""
    test: str
    example_variance: float
    """The part of the difference's variance that more examples make smaller."""
    seed_variance: float
    """The part that more seeds make smaller."""
    freedom: float = 0.0
    """The degrees of freedom of that part; 0 where nothing is known of seeds."""
    tests: int = 1
    """How many tests p is corrected for."""

    @property
    def differs(self) -> bool:
        """Tell whether the difference is more than chance explains."""
        return self.p < ALPHA


def mcnemar(a: npt.ArrayLike, b: npt.ArrayLike) -> float:
    """Give the exact two-sided p of McNemar's test (1947): which is right where only one of them is."""
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
    seed: int = 0,
) -> Comparison:
    """Compare two arms: with one run each by McNemar's exact test, with several by a bootstrap.

    The bootstrap draws examples with replacement, the same for both arms. Seeds are too few to be drawn so:
    their part is added as Student's t around the observed means. `paired_seeds` says that equal positions
    share what a seed decides (such as which examples were labelled), and compares seed by seed. Where few
    examples differ a bootstrap is too sure: p is at least that of exchanging the arms example by example,
    which for single runs is McNemar's.
    """
    runs_a, runs_b = (np.atleast_2d(np.asarray(x, dtype=np.float64)) for x in (a, b))
    n = runs_a.shape[1]
    if runs_b.shape[1] != n or n < 2:
        raise ValueError("a comparison needs two arms on the same examples, at least two of them")
    if paired_seeds and len(runs_a) != len(runs_b):
        raise ValueError("seeds can be paired only when both arms have equally many")
    single = len(runs_a) == len(runs_b) == 1
    each = runs_a.mean(0) - runs_b.mean(0)  # [examples]
    rng = np.random.default_rng(seed)
    seed_variance, freedom = seed_part(runs_a, runs_b, paired_seeds)
    draws = example_draws(each, rng)
    if freedom:
        draws = draws + math.sqrt(seed_variance) * rng.standard_t(freedom, size=DRAWS)
    low, high = np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2])
    difference = float(each.mean())
    beyond = min(np.sum(draws <= 0), np.sum(draws >= 0))
    if single:
        p = mcnemar(runs_a[0], runs_b[0])
    else:
        p = max(float(min(1.0, 2 * (beyond + 1) / (DRAWS + 1))), exchanged(each, rng))
    return Comparison(
        *names,
        float(runs_a.mean()),
        float(runs_b.mean()),
        difference,
        max(-1.0, float(low)),
        min(1.0, float(high)),
        p,
        n,
        min(len(runs_a), len(runs_b)),
        "McNemar" if single else "bootstrap over examples and seeds",
        example_variance(each),
        seed_variance,
        freedom,
    )


def seed_part(a: Floats, b: Floats, paired: bool) -> tuple[float, float]:
    """Estimate the variance of the difference over seeds, and its degrees of freedom (0: unknown).

    An arm of one run is taken to vary as the other does: one run does not mean that seeds change nothing.
    """
    if paired:
        return spread(a.mean(1) - b.mean(1))
    if (len(a) == 1) != (len(b) == 1):
        many = a if len(b) == 1 else b
        variance, freedom = spread(many.mean(1))
        return variance * (len(many) + 1), freedom
    (in_a, free_a), (in_b, free_b) = spread(a.mean(1)), spread(b.mean(1))
    total = in_a + in_b
    if not total:
        return 0.0, 0.0
    # Welch and Satterthwaite: how many degrees of freedom a sum of two estimated variances has.
    return total, total**2 / sum(part**2 / free for part, free in ((in_a, free_a), (in_b, free_b)) if free)


def spread(means: Floats) -> tuple[float, float]:
    """Give the variance of a mean over seeds and its degrees of freedom."""
    n = len(means)
    return (float(means.var(ddof=1) / n), float(n - 1)) if n > 1 else (0.0, 0.0)


def example_draws(each: Floats, rng: np.random.Generator) -> Floats:
    """Draw the mean difference over examples taken with replacement.

    Few different values occur, so that it is enough to draw how often each of them does. The spread is that
    of `smoothed` examples, around the mean of the true ones.
    """
    values, weights = smoothed(each)
    drawn = rng.multinomial(len(each), weights / weights.sum(), size=DRAWS)
    centre = float(values @ weights / weights.sum())
    return np.asarray(drawn @ values / len(each) - centre + each.mean())


def smoothed(each: Floats) -> tuple[Floats, Floats]:
    """Give the values that occur and how often, with two examples more in all (Agresti and Min 2005).

    Half an example of each sign and one of neither: among few examples that differ none would otherwise
    ever go the other way. Arms that are alike everywhere stay so.
    """
    found = np.unique(each.round(12), return_counts=True)
    values, counts = found[0].astype(np.float64), found[1].astype(np.float64)
    if not values.any():
        return values, counts
    more = np.concatenate([values, [-1.0, 0.0, 1.0]])
    weights = np.concatenate([counts, [0.5, 1.0, 0.5]])
    merged, places = np.unique(more, return_inverse=True)
    return np.asarray(merged, np.float64), np.asarray(np.bincount(places, weights=weights), np.float64)


def example_variance(each: Floats) -> float:
    """Estimate the variance of the mean difference over examples."""
    values, weights = smoothed(each)
    share = weights / weights.sum()
    return float((share @ values**2 - (share @ values) ** 2) / (len(each) - 1))


def exchanged(each: Floats, rng: np.random.Generator) -> float:
    """Give the two-sided p of exchanging the arms at random, example by example."""
    sizes, counts = np.unique(np.abs(each).round(12), return_counts=True)
    sums = (2 * rng.binomial(counts, 0.5, size=(DRAWS, len(counts))) - counts) @ sizes
    return float((np.sum(np.abs(sums) >= abs(each.sum()) - 1e-9) + 1) / (DRAWS + 1))


def holm(p_values: Sequence[float]) -> list[float]:
    """Correct p values for their number, step by step from the smallest (Holm 1979)."""
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
    """Compare every two arms, the better one first; p values are corrected by Holm's method."""
    order = sorted(scores, key=lambda name: -float(np.mean(np.asarray(scores[name], dtype=np.float64))))
    found = [
        compare(scores[a], scores[b], names=(a, b), paired_seeds=paired_seeds, seed=seed)
        for a, b in combinations(order, 2)
    ]
    corrected = holm([comparison.p for comparison in found])
    return [replace(c, p=p, tests=len(found)) for c, p in zip(found, corrected, strict=True)]


def detectable(comparison: Comparison) -> float:
    """Give the smallest true difference that data like these would show four times in five."""
    return shown(comparison, comparison.n, comparison.seeds)


def shown(comparison: Comparison, n: int, seeds: int) -> float:
    """Give the smallest true difference that so many examples and seeds would show four times in five."""
    c = comparison
    by_examples = c.example_variance * c.n / n
    by_seeds = c.seed_variance * c.seeds / max(1, seeds)
    total = by_examples + by_seeds
    if not by_seeds or not c.freedom:
        return reach(c.tests) * math.sqrt(total)
    freedom = c.freedom * (seeds - 1) / (c.seeds - 1) if c.seeds > 1 else c.freedom
    # Welch and Satterthwaite again: of the examples' part there is no doubt to speak of.
    return reach(c.tests, freedom * (total / by_seeds) ** 2) * math.sqrt(total)


@lru_cache(maxsize=4096)
def reach(tests: int = 1, freedom: float = math.inf) -> float:
    """Give how many standard errors a difference needs to be found with the power wanted, among `tests`.

    `freedom` are the degrees of freedom that the standard error is known with.
    """
    level = 1 - ALPHA / tests / 2
    if freedom > MANY:
        return float(special.ndtri(level) + special.ndtri(POWER))
    return float(special.nctdtrinc(freedom, 1 - POWER, special.stdtrit(freedom, level)))


def examples_needed(comparison: Comparison, difference: float | None = None) -> int | None:
    """Say how many examples in all would show `difference` (default: the one observed) four times in five.

    None when no number of examples would, because the seeds alone vary too much, or when there is nothing to
    show.
    """
    wanted = abs(comparison.difference if difference is None else difference)
    if not wanted:
        return None
    return fewest(2, MOST_EXAMPLES, lambda n: shown(comparison, n, comparison.seeds) <= wanted)


def seeds_needed(comparison: Comparison, difference: float | None = None) -> int | None:
    """Say how many seeds an arm would show `difference` four times in five, on the same examples.

    None when no number of seeds would, when there is nothing to show, or when one seed says nothing about
    how much seeds vary.
    """
    wanted = abs(comparison.difference if difference is None else difference)
    if comparison.seeds < 2 or not wanted:
        return None
    return fewest(2, MOST_SEEDS, lambda seeds: shown(comparison, comparison.n, seeds) <= wanted)


def fewest(least: int, most: int, enough: Callable[[int], bool]) -> int | None:
    """Find the smallest number from which on there is enough, if any up to `most` is."""
    if not enough(most):
        return None
    found = bisect_left(range(least, most + 1), True, key=enough)
    return least + found


def sentence(comparison: Comparison, metric: str = "accuracy") -> str:
    """Say in plain English what a comparison shows, and what it would take to tell when it shows nothing."""
    c = comparison if comparison.difference >= 0 else turned(comparison)
    numbers = (
        f"{metric} {c.value_a:.3f} against {c.value_b:.3f}, a difference of {c.difference:.3f} "
        f"(95 % interval {c.low:.3f} to {c.high:.3f}, p {p_text(c.p)})"
    )
    if c.differs:
        return f"{c.a} is better than {c.b}: {numbers}.{caution(c)}"
    return f"{c.a} and {c.b} cannot be told apart: {numbers}. {what_would_tell(c)}{caution(c)}"


def caution(comparison: Comparison) -> str:
    """Say what a comparison of single runs cannot know."""
    return " One run of an arm does not show what another seed would change." if comparison.seeds < 2 else ""


def turned(comparison: Comparison) -> Comparison:
    """Exchange the two arms."""
    c = comparison
    return replace(
        c,
        a=c.b,
        b=c.a,
        value_a=c.value_b,
        value_b=c.value_a,
        difference=-c.difference,
        low=-c.high,
        high=-c.low,
    )


def p_text(p: float) -> str:
    """Write a p value."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def what_would_tell(comparison: Comparison) -> str:
    """Say how many more examples or seeds would show the difference, were it what it seems to be."""
    c = comparison
    if not (c.difference or c.example_variance or c.seed_variance):
        return f"On each of these {c.n:,} examples both are equally right: there is nothing to tell apart."
    least = detectable(c)
    found = f"With these {c.n:,} examples only a difference of about {least:.3f} or more would be found."
    if least >= 1:
        found = f"These {c.n:,} examples are too few to show any difference."
    if abs(c.difference) < 0.5 / c.n:
        return found
    examples, seeds = examples_needed(c), seeds_needed(c)
    ways = []
    if examples is not None and examples > c.n:
        more = examples - c.n
        ways.append(f"{rounded(more)} more example{'s' if more > 1 else ''}")
    if seeds is not None and seeds > c.seeds:
        more = seeds - c.seeds
        ways.append(f"{rounded(more)} more seed{'s' if more > 1 else ''} an arm")
    if ways:
        return f"{found} If the difference is what it seems, about {' or '.join(ways)} would tell."
    if examples is None and seeds is None:
        return f"{found} If the difference is what it seems, it takes more examples and more seeds to tell."
    return f"{found} The difference seems to be as large: a little more of both would tell."


def rounded(count: int) -> str:
    """Write a count with two digits that mean something."""
    digits = max(0, len(str(count)) - 2)
    return f"{round(count, -digits):,}"


def verdict(comparisons: Sequence[Comparison], metric: str = "accuracy") -> str:
    """Say in plain English which of all arms is best and which cannot be told apart from it.

    Takes what `compare_all` gives: the better arm of each pair first, the best arm's pairs at the beginning.
    """
    best = comparisons[0].a
    against = [c for c in comparisons if best in (c.a, c.b)]
    beaten = [c.b for c in against if c.differs]
    equal = [c for c in against if not c.differs]
    if not equal:
        once = any(c.seeds < 2 for c in against)
        where = " on these examples" if once else ""
        higher = f"its {metric} is higher than that of {listed(beaten)}, beyond chance"
        return f"{best} is best{where}: {higher}.{caution(against[0])}"
    tied = [c.b for c in equal if abs(c.difference) < NOTHING]
    lower = [c.b for c in equal if c.b not in tied]
    if len(tied) == len(against):
        told = f"{listed([best, *tied])} have the same {metric}."
    else:
        same = f", the same as {listed(tied)}," if tied else ""
        beats = f" and beats {listed(beaten)}" if beaten else ""
        but = f", but cannot be told apart from {listed(lower)}" if lower else ""
        told = f"{best} has the highest {metric}{same}{beats}{but}.".replace(",,", ",").replace(",.", ".")
    if not beaten:
        told = f"No arm is shown to be best: {told}"
    furthest = equal[-1]
    if len(equal) > 1 and lower:
        told += f" The furthest of these is {furthest.b}; closer ones take more."
    return f"{told} {what_would_tell(furthest)}{caution(furthest)}"


def listed(names: Sequence[str]) -> str:
    """Write names as a list in a sentence."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
