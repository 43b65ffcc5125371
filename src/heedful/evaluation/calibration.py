"""Does a model know when it is wrong? Calibration, ranking by confidence, and when to abstain.

`confidence` is a number for each example (usually the largest probability); `right` says whether the
prediction was.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from heedful.evaluation.intervals import LEVEL, Interval, normal_quantile, wilson

Floats = npt.NDArray[np.float64]
FEW = 10
"""Examples of a class below which their spread alone is not trusted."""
BINS = 15


@dataclass(frozen=True)
class ReliabilityBin:
    """The examples between two confidences: how sure the model was, how often it was right."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float
    interval: Interval


def by_confidence(confidence: npt.ArrayLike, right: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Order examples from the least sure; equally sure ones share their mean, so that order is no luck."""
    sure, hit = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if sure.shape != hit.shape or sure.ndim != 1 or not len(sure):
        raise ValueError(
            "one confidence and one outcome for each example are needed, and at least one example"
        )
    if np.isnan(sure).any():
        raise ValueError("a confidence is not a number")
    _, group, counts = np.unique(sure, return_inverse=True, return_counts=True)
    means = np.bincount(group, weights=hit) / counts
    order = np.argsort(sure, kind="stable")
    return sure[order], means[group][order]


def reliability(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = BINS) -> list[ReliabilityBin]:
    """Sort examples by confidence into bins of equal size; how sure and how right the model was in each."""
    sure, hit = by_confidence(confidence, right)
    table = []
    for index in np.array_split(np.arange(len(sure)), min(bins, len(sure))):
        n, share = len(index), float(hit[index].mean())
        table.append(
            ReliabilityBin(
                float(sure[index[0]]),
                float(sure[index[-1]]),
                n,
                float(sure[index].mean()),
                share,
                wilson(round(share * n), n),
            )
        )
    return table


def calibration_error(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = BINS) -> float:
    """Give the expected calibration error over bins of equal size (Nguyen, O'Connor 2015), from 0 to 1.

    With bins of equal width most of a fine-tuned model's examples would fall into the last one.
    """
    table = reliability(confidence, right, bins)
    return sum(b.n * abs(b.accuracy - b.confidence) for b in table) / sum(b.n for b in table)


def brier(probabilities: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Give the mean squared distance of probabilities `[n, classes]` from the truth, 0 to 2 (Brier 1950)."""
    table, truth = np.asarray(probabilities, dtype=np.float64), np.asarray(labels, dtype=np.int64)
    if table.ndim != 2 or len(table) != len(truth) or not len(truth):
        raise ValueError("probabilities are [examples, classes], one label for each example")
    return float(np.square(table - np.eye(table.shape[1])[truth]).sum(1).mean())


def auroc(scores: npt.ArrayLike, positive: npt.ArrayLike) -> float:
    """Give the chance that a positive example has a larger score than a negative one, ties counting half."""
    above, _ = placements(scores, positive)
    return float(above.mean())


def placements(scores: npt.ArrayLike, positive: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Give the share of negatives below each positive, and the share of positives above each negative."""
    value, is_positive = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    if value.shape != is_positive.shape or value.ndim != 1:
        raise ValueError("one score and one truth value for each example are needed")
    up, down = np.sort(value[is_positive]), np.sort(value[~is_positive])
    if not len(up) or not len(down):
        raise ValueError("AUROC needs positive and negative examples")
    below = (np.searchsorted(down, up, "left") + np.searchsorted(down, up, "right")) / (2 * len(down))
    above = 1 - (np.searchsorted(up, down, "left") + np.searchsorted(up, down, "right")) / (2 * len(up))
    return below, above


def auroc_interval(scores: npt.ArrayLike, positive: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """Give an interval of AUROC: DeLong's variance (1988), on the scale of the logit to stay in [0, 1].

    Where all pairs are in order (or all are not) there is no variance to estimate; the smaller class then
    counts as so many successes in a row.
    """
    below, above = placements(scores, positive)
    area, fewest = float(below.mean()), min(len(below), len(above))
    variance = sum(part.var(ddof=1) / len(part) for part in (below, above) if len(part) > 1)
    if area in (0.0, 1.0) or fewest < 2:
        return wilson(round(area * fewest), fewest, level)
    # Of few examples the variance is uncertain too: Student's t, by Welch and Satterthwaite.
    doubt = sum((part.var(ddof=1) / len(part)) ** 2 / (len(part) - 1) for part in (below, above))
    freedom = variance**2 / doubt if doubt else math.inf
    far = special.stdtrit(freedom, (1 + level) / 2) if math.isfinite(freedom) else normal_quantile(level)
    if fewest < FEW:  # chance alone may put a handful side by side; what the area itself implies is the least
        variance = max(variance, implied_variance(area, len(below), len(above)))
    half = far * math.sqrt(variance) / (area * (1 - area))
    centre = special.logit(area)
    return Interval(float(special.expit(centre - half)), float(special.expit(centre + half)))


def implied_variance(area: float, positives: int, negatives: int) -> float:
    """Give the variance that an area has by itself, with exponential scores (Hanley and McNeil 1982)."""
    two_up, two_down = area / (2 - area), 2 * area**2 / (1 + area)
    apart = (positives - 1) * (two_up - area**2) + (negatives - 1) * (two_down - area**2)
    return (area * (1 - area) + apart) / (positives * negatives)


@dataclass(frozen=True)
class RiskCoverage:
    """Answer only the surest: for each threshold the share answered and the share wrong among those."""

    threshold: Floats
    coverage: Floats
    risk: Floats
    area: float
    """The mean risk over all coverages (AURC, Geifman et al. 2019); smaller is better."""
    best_area: float
    """The same if every right answer were surer than every wrong one."""


def risk_coverage(confidence: npt.ArrayLike, right: npt.ArrayLike) -> RiskCoverage:
    """Trace risk against coverage, from the surest example to all of them."""
    sure, hit = (x[::-1] for x in by_confidence(confidence, right))
    n = len(sure)
    running = np.cumsum(1 - hit) / np.arange(1, n + 1)
    last = np.append(sure[1:] != sure[:-1], True)  # a threshold takes all equally sure examples or none
    wrong_last = np.sort(1 - np.asarray(right, dtype=np.float64))
    best = np.cumsum(wrong_last) / np.arange(1, n + 1)
    coverage = np.arange(1, n + 1)[last] / n
    return RiskCoverage(sure[last], coverage, running[last], float(running.mean()), float(best.mean()))


@dataclass(frozen=True)
class Threshold:
    """Answer when the confidence is at least `threshold`."""

    threshold: float
    coverage: float
    risk: float
    """The share wrong among those answered, on these examples."""
    bound: float
    """What the true risk stays below, with the confidence asked for."""


def threshold_for_risk(
    confidence: npt.ArrayLike, right: npt.ArrayLike, risk: float, level: float = LEVEL
) -> Threshold | None:
    """Find the threshold that answers most while the true risk stays at most `risk`, with confidence `level`.

    Selection with guaranteed risk (Geifman, El-Yaniv 2017): a binary search over the thresholds, each step
    judged by an exact binomial bound, the bounds corrected for the number of steps. None when these examples
    cannot promise it at any threshold.
    """
    if not 0 < risk < 1:
        raise ValueError("a risk lies between 0 and 1")
    curve = risk_coverage(confidence, right)
    total = len(np.asarray(right))
    steps = max(1, math.ceil(math.log2(len(curve.threshold) + 1)))
    allowed = (1 - level) / steps
    found: Threshold | None = None
    first, last = 0, len(curve.threshold) - 1
    while first <= last:
        middle = (first + last) // 2
        n = round(curve.coverage[middle] * total)
        wrong = round(curve.risk[middle] * n)
        bound = 1.0 if wrong == n else float(special.betaincinv(wrong + 1, n - wrong, 1 - allowed))
        if bound <= risk:
            found = Threshold(
                float(curve.threshold[middle]),
                float(curve.coverage[middle]),
                float(curve.risk[middle]),
                bound,
            )
            first = middle + 1
        else:
            last = middle - 1
    return found
