"""How often intervals over few seeds cover the truth, and how often real differences are found.

    python -m benchmarks.seeds                  the tables, as Markdown: about fifteen minutes on one core
    python -m benchmarks.seeds --trials 20      a quick look

Simulated studies: the arms' runs are right or wrong on the same examples. Some examples are harder than
others for all arms, some for one arm, and some for one run; each seed has luck of its own, whose standard
deviation is given as a share of the examples. "Pooled" is the rule of `heedful.statistics.seeds`, "alone"
the one before it: each arm's variance from its own seeds alone, added as Student's t (Welch).
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from heedful.evaluation.metrics.functions import mean_share
from heedful.statistics import comparison
from heedful.statistics.comparison import (
    ALPHA,
    compare_all,
    draw_differences,
    holm,
    permutation_p,
    two_sided_p,
)
from heedful.statistics.proportions import Interval, wilson
from heedful.statistics.seeds import PooledSeeds, share_scores

Floats = npt.NDArray[np.float64]
EXAMPLES, LEVEL, DRAWS = 500, 0.75, 2000
SHARES = (0.5, 0.3, 0.2)
"""The shares of an answer's variance that all arms, one arm and one run have."""
LUCK: Mapping[str, Sequence[float]] = {
    "equal, 0.005": (0.005,) * 4,
    "equal, 0.02": (0.02,) * 4,
    "0.01 and 0.04": (0.01, 0.04, 0.01, 0.04),
    "0.03 and none": (0.03, 0.0, 0.03, 0.0),
    "two arms, 0.02": (0.02, 0.02),
    "two arms, 0.01 and 0.04": (0.01, 0.04),
}
"""The standard deviation of the seeds of each arm, of which there are four or two, in accuracy."""


Findings = tuple[dict[str, Interval], dict[tuple[str, str], Interval], set[tuple[str, str]]]
"""The intervals of means and of differences, and the pairs of arms that are told apart."""


class Coverage(NamedTuple):
    """Shares of intervals that cover the truth, and the mean width of those of a difference."""

    mean: float
    difference: float
    width: float


def draw_study(
    rng: np.random.Generator, seeds: int, levels: Sequence[float], luck: Sequence[float]
) -> dict[str, Floats]:
    """Draw which examples each run of each arm has right; `levels` are the arms' true accuracies."""
    shared, arms = rng.normal(size=EXAMPLES), {}
    for number, (level, deviation) in enumerate(zip(levels, luck, strict=True)):
        threshold = float(special.ndtri(level))
        spread = deviation / (math.exp(-(threshold**2) / 2) / math.sqrt(2 * math.pi))
        parts = (shared, rng.normal(size=EXAMPLES), rng.normal(size=(seeds, EXAMPLES)))
        hardness = sum(math.sqrt(share) * part for share, part in zip(SHARES, parts, strict=True))
        hardness = hardness + spread * rng.normal(size=(seeds, 1))
        arms[str(number)] = (hardness < threshold * math.sqrt(1 + spread**2)).astype(np.float64)
    return arms


def find_pooled(arms: Mapping[str, Floats]) -> Findings:
    """Return what is found if the seeds of all arms are pooled."""
    pooled = PooledSeeds({name: share_scores(runs) for name, runs in arms.items()})
    means = {name: mean_share(runs, pooled.estimate(name))[1] for name, runs in arms.items()}
    found = compare_all(arms)
    return (
        means,
        {(c.a, c.b): Interval(c.low, c.high) for c in found},
        {(c.a, c.b) for c in found if c.differs},
    )


def find_alone(arms: Mapping[str, Floats]) -> Findings:
    """Return what is found by each arm's own seeds."""
    rng = np.random.default_rng(0)
    means, differences, p_values = {}, {}, []
    for name, runs in arms.items():
        mean, own = float(runs.mean()), runs.mean(1)
        draws = draw_differences(runs.mean(0), rng)
        draws = draws + math.sqrt(own.var(ddof=1) / len(own)) * rng.standard_t(len(own) - 1, len(draws))
        low, high = np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2])
        alone = wilson(mean * EXAMPLES, EXAMPLES)
        means[name] = Interval(min(low, alone.low), max(high, alone.high))
    order = sorted(arms, key=lambda name: -arms[name].mean())
    for a, b in combinations(order, 2):
        each = arms[a].mean(0) - arms[b].mean(0)
        parts = [arms[name].mean(1).var(ddof=1) / len(arms[name]) for name in (a, b)]
        draws = draw_differences(each, rng)
        if total := sum(parts):
            freedom = total**2 / sum(part**2 / (len(arms[a]) - 1) for part in parts)
            draws = draws + math.sqrt(total) * rng.standard_t(freedom, len(draws))
        differences[a, b] = Interval(*np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2]))
        p_values.append(max(two_sided_p(draws), permutation_p(each, rng)))
    told = {pair for pair, p in zip(differences, holm(p_values), strict=True) if p < ALPHA}
    return means, differences, told


RULES = {"alone": find_alone, "pooled": find_pooled}


def measure_coverage(rule: str, seeds: int, luck: Sequence[float], trials: int) -> Coverage:
    rng = np.random.default_rng(seeds)
    of_means, of_differences, widths = [], [], []
    for _ in range(trials if len(luck) > 2 else 3 * trials):  # two arms have fewer intervals per study
        means, differences, _ = RULES[rule](draw_study(rng, seeds, [LEVEL] * len(luck), luck))
        of_means += [low <= LEVEL <= high for low, high in means.values()]
        of_differences += [low <= 0 <= high for low, high in differences.values()]
        widths += [high - low for low, high in differences.values()]
    return Coverage(*(float(np.mean(values)) for values in (of_means, of_differences, widths)))


def measure_power(rule: str, seeds: int, difference: float, luck: Sequence[float], trials: int) -> float:
    """Return how often one worse arm of several is told apart from an equal one of the others.

    With a difference of 0, return how often any two arms are told apart.
    """
    rng = np.random.default_rng(seeds)
    levels, worse = [LEVEL] * (len(luck) - 1) + [LEVEL - difference], str(len(luck) - 1)
    found = []
    for _ in range(trials):
        _, _, told = RULES[rule](draw_study(rng, seeds, levels, luck))
        found.append(("0", worse) in told if difference else bool(told))
    return float(np.mean(found))


def list_rows(trials: int) -> Iterator[str]:
    """Yield the lines of the tables, as Markdown."""
    names = [f"{what}, {rule}" for what in ("mean", "difference", "width") for rule in RULES]
    yield f"| seeds | deviation of the seeds | {' | '.join(names)} |"
    yield "| ---: | --- |" + " ---: |" * len(names)
    for seeds in (2, 3, 5):
        for name, luck in LUCK.items():
            of_rules = [measure_coverage(rule, seeds, luck, trials) for rule in RULES]
            yield format_row(seeds, name, *(value for pair in zip(*of_rules, strict=True) for value in pair))
    yield ""
    yield "| seeds | true difference | alone | pooled |"
    yield "| ---: | ---: | ---: | ---: |"
    for seeds in (2, 3, 5):
        for difference in (0.0, 0.05, 0.1, 0.2):
            of_luck = (measure_power(rule, seeds, difference, LUCK["equal, 0.02"], trials) for rule in RULES)
            yield format_row(seeds, f"{difference:g}", *of_luck)


def format_row(seeds: int, name: str, *values: float) -> str:
    return f"| {seeds} | {name} | {' | '.join(f'{value:.3f}' for value in values)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage and power of comparisons with few seeds.")
    parser.add_argument("--trials", type=int, default=150, help="simulated studies per cell")
    comparison.DRAWS = DRAWS
    for line in list_rows(parser.parse_args().trials):
        print(line, flush=True)


if __name__ == "__main__":
    main()
