"""Is one better than the other, on the same examples? Paired tests, and what it would take to tell.

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

Floats = npt.NDArray[np.float64]
ALPHA = 0.05
POWER = 0.8
DRAWS = 20_000


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
    share what a seed decides (such as which examples were labelled), and compares seed by seed.
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
    p = mcnemar(runs_a[0], runs_b[0]) if single else float(min(1.0, 2 * (beyond + 1) / (DRAWS + 1)))
    return Comparison(
        *names,
        float(runs_a.mean()),
        float(runs_b.mean()),
        difference,
        float(low),
        float(high),
        p,
        n,
        min(len(runs_a), len(runs_b)),
        "McNemar" if single else "bootstrap over examples and seeds",
        float(each.var(ddof=1) / n),
        seed_variance,
    )


def seed_part(a: Floats, b: Floats, paired: bool) -> tuple[float, float]:
    """Estimate the variance of the difference over seeds, and its degrees of freedom (0: unknown)."""
    if paired:
        return spread(a.mean(1) - b.mean(1))
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

    Few different values occur, so that it is enough to draw how often each of them does.
    """
    values, counts = np.unique(each.round(12), return_counts=True)
    drawn = rng.multinomial(len(each), counts / len(each), size=DRAWS)
    return np.asarray(drawn @ values / len(each))


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
    return reach(comparison.tests) * math.sqrt(comparison.example_variance + comparison.seed_variance)


def reach(tests: int = 1) -> float:
    """Give how many standard errors a difference needs to be found with the power wanted, among `tests`."""
    return float(special.ndtri(1 - ALPHA / tests / 2) + special.ndtri(POWER))


def examples_needed(comparison: Comparison, difference: float | None = None) -> int | None:
    """Say how many examples in all would show `difference` (default: the one observed) four times in five.

    None when no number of examples would, because the seeds alone vary too much, or when there is nothing to
    show.
    """
    wanted = abs(comparison.difference if difference is None else difference)
    left = (wanted / reach(comparison.tests)) ** 2 - comparison.seed_variance
    if left <= 0 or wanted == 0:
        return None
    return max(2, math.ceil(comparison.example_variance * comparison.n / left))


def seeds_needed(comparison: Comparison, difference: float | None = None) -> int | None:
    """Say how many seeds an arm would show `difference` four times in five, on the same examples.

    None when no number of seeds would, when there is nothing to show, or when one seed says nothing about
    how much seeds vary.
    """
    wanted = abs(comparison.difference if difference is None else difference)
    left = (wanted / reach(comparison.tests)) ** 2 - comparison.example_variance
    if left <= 0 or wanted == 0 or comparison.seeds < 2:
        return None
    return max(2, math.ceil(comparison.seed_variance * comparison.seeds / left))


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
    found = (
        f"With these {c.n:,} examples only a difference of about {detectable(c):.3f} or more would be found."
    )
    if abs(c.difference) < 0.5 / c.n:
        return found
    examples, seeds = examples_needed(c), seeds_needed(c)
    ways = []
    if examples is not None and examples > c.n:
        ways.append(f"{rounded(examples - c.n)} more examples")
    if seeds is not None and seeds > c.seeds:
        more = seeds - c.seeds
        ways.append(f"{rounded(more)} more seed{'s' if more > 1 else ''} an arm")
    if ways:
        return f"{found} If the difference is what it seems, about {' or '.join(ways)} would tell."
    if examples is None and seeds is None:
        return f"{found} If the difference is what it seems, it takes more examples and more seeds to tell."
    return f"{found} The difference is close to that: a few more examples or seeds would tell."


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
        higher = f"its {metric} is higher than that of {listed(beaten)}, beyond chance"
        return f"{best} is best: {higher}.{caution(against[0])}"
    if len(equal) == len(against):
        start = f"No arm is shown to be best: {best} has the highest {metric}, but"
    else:
        start = f"{best} has the highest {metric} and beats {listed(beaten)}, but"
    told = f"{start} cannot be told apart from {listed([c.b for c in equal])}."
    furthest = equal[-1]
    if len(equal) > 1:
        told += f" The furthest of these is {furthest.b}; closer ones take more."
    return f"{told} {what_would_tell(furthest)}{caution(furthest)}"


def listed(names: Sequence[str]) -> str:
    """Write names as a list in a sentence."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
