"""How much another seed would change a score: the variance over seeds, pooled over the arms of a study.

Two seeds say next to nothing about the variance between seeds, but the arms of a study say something about
each other's. As in limma (Smyth 2004), the arms' variances are taken as draws of one inverse chi-square
distribution: each arm's own estimate is drawn towards that of all arms, and borrows degrees of freedom from
them. How similar arms are (limma's prior degrees of freedom) cannot be estimated from two or three of them,
so this is averaged over a grid, each value by how well it explains all arms: arms that differ much borrow
little.

Variances are pooled in units of the variance that the examples give a single run of the arm. For a share p
this is p (1 - p) / n, as on the arcsine scale; for any other metric it makes arms of different levels
comparable.

Runs that err on different examples differ by chance though no seed is better than another. This part of the
variance between runs is known from the examples, and is its lower limit.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from heedful.statistics.proportions import LEVEL, Interval, normal_quantile

Floats = npt.NDArray[np.float64]
PRIOR_FREEDOMS = np.array([0.5, 1.0, 2.0, 4.0, 8.0])
"""How similar the variances of arms may be: with 8 they are nearly equal, with 0.5 they say little about each
other. With larger ones, intervals cover too seldom where the arms differ (`python -m benchmarks.seeds`)."""
LEAST = 0.05
"""An estimate counts at least this part of its known lower limit: seeds with equal scores are luck."""
SCALES = np.linspace(-14, 14, 113)
"""Logarithms of the scale of the arms' variances, around their mean."""
DRAWS = 4000
MANY = 1e6
"""Degrees of freedom of a variance that is known."""
ROUNDING = 1e-12


@dataclass(frozen=True)
class SeedVariance:
    """The part of a variance that is due to seeds, of a mean over runs or of a difference of such means."""

    variance: float = 0.0
    freedom: float = 0.0
    """The degrees of freedom of `variance`; 0 where nothing is known about seeds."""
    residual: float = 0.0
    """The part of `variance` from runs that err on different examples, which a bootstrap over the examples
    has, too."""

    def share_left(self, example_variance: float) -> float:
        """Return the share of the variance over examples that is not part of this one already."""
        return max(0.0, 1 - self.residual / example_variance) if example_variance > 0 else 1.0

    def total_freedom(self, example_variance: float) -> float:
        """Return the degrees of freedom of this variance plus one that is known (Welch and Satterthwaite)."""
        if not self.variance:
            return MANY
        return min(MANY, self.freedom * (1 + example_variance / self.variance) ** 2)

    def extend(self, distance: float) -> float:
        """Add the seeds' part to the distance of one end of a 95 % interval over examples from its center."""
        if not self.freedom or not self.variance:
            return distance
        known = normal_quantile(LEVEL)
        freedom = self.total_freedom((distance / known) ** 2)
        return t_quantile(freedom) / known * math.hypot(distance, known * math.sqrt(self.variance))

    def widen(self, draws: Floats, example_variance: float, rng: np.random.Generator) -> Floats:
        """Add the seeds' part to draws of a value over examples, as Student's t of both together."""
        if not self.freedom or not self.variance:
            return draws
        center, left = draws.mean(), self.share_left(example_variance)
        freedom = self.total_freedom(left * example_variance)
        # Every quantile once, in random order: tails of few degrees of freedom are long, and so noisy.
        normal, chi_square = (rng.permutation(len(draws)) + 0.5 for _ in range(2))
        away = (draws - center) * math.sqrt(left) + math.sqrt(self.variance) * special.ndtri(
            normal / len(draws)
        )
        shrunk = 2 * special.gammaincinv(freedom / 2, chi_square / len(draws))
        return np.asarray(center + away * np.sqrt(freedom / shrunk))


UNKNOWN = SeedVariance()


def t_quantile(freedom: float, level: float = LEVEL) -> float:
    return float(special.stdtrit(freedom, (1 + level) / 2))


@dataclass(frozen=True)
class RunScores:
    """The scores of the runs of one arm, and what the examples say about them."""

    values: Floats
    """The score of each run, `[runs]`."""
    table: Floats
    """The score of each run on each resample of the examples, or on each example, `[rows, runs]`."""
    unit: float = 1.0
    """What the covariances of the table are multiplied by: 1 for resamples, 1 / n for examples."""

    def __sub__(self, other: RunScores) -> RunScores:
        return RunScores(self.values - other.values, self.table - other.table, self.unit)

    def variances(self) -> tuple[float, float]:
        """Return the variance of a single run over examples, and the part that the runs do not share."""
        rows = self.table[np.isfinite(self.table).all(1)]
        if len(rows) < 2:
            return 0.0, 0.0
        covariances = np.atleast_2d(np.cov(rows, rowvar=False)) * self.unit
        runs = len(covariances)
        total, trace = float(covariances.sum()), float(covariances.trace())
        single = trace / runs
        own = single - (total - trace) / (runs * (runs - 1)) if runs > 1 else 0.0
        return single, own if own > ROUNDING * single else 0.0

    def mean_with_interval(self, seeds: SeedVariance) -> tuple[float, Interval]:
        """Return the mean of the runs, and its 95 % interval over resamples and seeds."""
        mean, draws = float(self.values.mean()), self.table.mean(1)
        if not len(draws):
            return mean, Interval(math.nan, math.nan)
        draws = np.where(np.isfinite(draws), draws, mean)
        draws = seeds.widen(draws, float(draws.var()), np.random.default_rng(1))
        low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        return mean, Interval(float(low), float(high))


def share_scores(right: npt.ArrayLike) -> RunScores:
    """Return the scores of runs from which examples each of them has right, `[runs, examples]`."""
    table = np.atleast_2d(np.asarray(right, dtype=np.float64))
    return RunScores(table.mean(1), table.T, 1 / table.shape[1])


class PooledSeeds:
    """The variances over seeds of the arms of a study, or of pairs of arms that share their seeds.

    An arm with a single run is assumed to vary as much as the others do on average: one run does not mean
    that the seed has no effect. Runs with equal outputs on all examples do not vary at all, and say nothing
    about other arms.
    """

    def __init__(self, arms: Mapping[Any, RunScores], weight: float = 1.0) -> None:
        self.runs = {key: len(arm.values) for key, arm in arms.items()}
        examples = {key: arm.variances() for key, arm in arms.items()}
        self.residuals = {key: own for key, (_, own) in examples.items()}
        self.draws: dict[Hashable, Floats] = {}
        varying: dict[Hashable, tuple[float, float]] = {}
        for key, arm in arms.items():
            single, own = examples[key]
            if self.runs[key] < 2:
                continue
            variance = max(float(arm.values.var(ddof=1)), LEAST * own)
            if variance > ROUNDING * single and single > 0:
                varying[key] = (variance / single, float(self.runs[key] - 1))
            else:
                self.draws[key] = np.zeros(DRAWS)
        if not varying:
            return
        drawn = draw_variances(np.array(list(varying.values())), weight)
        for key, column in zip(varying, drawn.T, strict=True):
            single, own = examples[key]
            self.draws[key] = np.maximum(column * single, own)
        for key, runs in self.runs.items():
            if runs < 2:
                self.draws[key] = drawn.mean(1) * examples[key][0]

    def estimate(self, *keys: Hashable) -> SeedVariance:
        """Return the seeds' part of the variance of an arm's mean, or of a difference of two means."""
        if not all(key in self.draws for key in keys):
            return UNKNOWN
        total = sum((self.draws[key] / self.runs[key] for key in keys), np.zeros(DRAWS))
        residual = sum(self.residuals[key] / self.runs[key] for key in keys)
        return SeedVariance(*fit_chi_square(total), residual)


def draw_variances(estimates: Floats, weight: float = 1.0) -> Floats:
    """Draw the arms' true variances, `[draws, arms]`; `estimates` has each one's estimate and freedom.

    Given the prior degrees of freedom and scale, an estimate over the scale has an F distribution, and a true
    variance a scaled inverse chi-square distribution; both are drawn by how likely they make all estimates.
    `weight` is the share of the estimates that is independent.
    """
    rng = np.random.default_rng(0)
    variances, freedoms = estimates.T
    center = math.log(float(freedoms @ variances / freedoms.sum()))
    prior, scale = PRIOR_FREEDOMS[:, None, None], center + SCALES[None, :, None]
    ratio = np.log(variances) - scale  # [prior, scales, arms]
    log_likelihood = (
        freedoms / 2 * (np.log(freedoms / prior) + ratio)
        - (freedoms + prior) / 2 * np.log1p(freedoms / prior * np.exp(ratio))
        - special.betaln(freedoms / 2, prior / 2)
    ).sum(-1) * weight
    likelihood = np.exp(log_likelihood - log_likelihood.max())
    drawn = rng.choice(likelihood.size, size=DRAWS, p=(likelihood / likelihood.sum()).ravel())
    which, where = np.divmod(drawn, len(SCALES))
    prior_drawn, scale_drawn = PRIOR_FREEDOMS[which, None], np.exp(center + SCALES[where, None])
    sums = prior_drawn * scale_drawn + freedoms * variances
    return np.asarray(sums / rng.chisquare(prior_drawn + freedoms), np.float64)


def fit_chi_square(variances: Floats) -> tuple[float, float]:
    """Return the estimate and degrees of freedom whose scaled inverse chi-square distribution is nearest.

    The mean and variance of the logarithm are equal, as in Smyth's fit.
    """
    if not variances.any():
        return 0.0, MANY
    logarithms = np.log(variances)
    spread = float(logarithms.var())
    low, high = -3.0, math.log(MANY)
    for _ in range(50):
        middle = (low + high) / 2
        narrower = float(special.polygamma(1, math.exp(middle) / 2)) < spread
        low, high = (low, middle) if narrower else (middle, high)
    freedom = math.exp(low)
    estimate = logarithms.mean() + special.digamma(freedom / 2) - math.log(freedom / 2)
    return float(np.exp(estimate)), freedom


def pool_pairs(
    arms: Mapping[str, RunScores], pairs: Sequence[tuple[str, str]], *, paired: bool = False
) -> dict[tuple[str, str], SeedVariance]:
    """Return the seeds' part of the variance of each pair's difference, from all arms together.

    `paired` means that runs at equal positions share what a seed decides, such as which examples are labeled:
    then it is the differences, seed by seed, whose variances are pooled.
    """
    if not paired:
        pooled = PooledSeeds(arms)
        return {(a, b): pooled.estimate(a, b) for a, b in pairs}
    if any(len(arms[a].values) != len(arms[b].values) for a, b in pairs):
        raise ValueError("seeds can be paired only when both arms have equally many")
    # Three pairs of three arms have only two independent differences.
    columns = {name: i for i, name in enumerate(arms)}
    graph = np.zeros((len(pairs), len(arms)))
    for row, (a, b) in zip(graph, pairs, strict=True):
        row[[columns[a], columns[b]]] = 1, -1
    weight = float(np.linalg.matrix_rank(graph)) / max(1, len(pairs))
    pooled = PooledSeeds({(a, b): arms[a] - arms[b] for a, b in pairs}, weight)
    return {pair: pooled.estimate(pair) for pair in pairs}
