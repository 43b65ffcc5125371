"""Whether a model knows when it is wrong: calibration, ranking by confidence, and when to abstain.

`confidence` is one number per example, usually the largest probability; `right` is whether the prediction
was right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from heedful.statistics.proportions import LEVEL, Interval, normal_quantile, wilson

Floats = npt.NDArray[np.float64]
FEW = 10
"""With fewer examples of a class, their variance alone is not trusted."""
BINS = 15


@dataclass(frozen=True)
class ReliabilityBin:
    """The examples between two confidences: how confident the model was and how often it was right."""

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float
    interval: Interval


def sort_by_confidence(confidence: npt.ArrayLike, right: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Sort examples by confidence, lowest first; ties share their mean outcome, so order is irrelevant."""
    confidences, outcomes = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    if confidences.shape != outcomes.shape or confidences.ndim != 1 or not len(confidences):
        raise ValueError("one confidence and one outcome per example are needed, and at least one example")
    if np.isnan(confidences).any():
        raise ValueError("a confidence is not a number")
    _, group, counts = np.unique(confidences, return_inverse=True, return_counts=True)
    means = np.bincount(group, weights=outcomes) / counts
    order = np.argsort(confidences, kind="stable")
    return confidences[order], means[group][order]


def reliability(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = BINS) -> list[ReliabilityBin]:
    """Sort examples by confidence into bins of equal size and compare confidence and accuracy in each."""
    confidences, outcomes = sort_by_confidence(confidence, right)
    table = []
    for index in np.array_split(np.arange(len(confidences)), min(bins, len(confidences))):
        inside, n, share = confidences[index], len(index), float(outcomes[index].mean())
        interval = wilson(round(share * n), n)
        low, high, mean = float(inside[0]), float(inside[-1]), float(inside.mean())
        table.append(ReliabilityBin(low, high, n, mean, share, interval))
    return table


def calibration_error(confidence: npt.ArrayLike, right: npt.ArrayLike, bins: int = BINS) -> float:
    """Return the expected calibration error over bins of equal size (Nguyen, O'Connor 2015), from 0 to 1.

    With bins of equal width most of a fine-tuned model's examples would fall into the last one.
    """
    table = reliability(confidence, right, bins)
    return sum(b.n * abs(b.accuracy - b.confidence) for b in table) / sum(b.n for b in table)


def brier(probabilities: npt.ArrayLike, labels: npt.ArrayLike) -> float:
    """Return the mean squared error of probabilities `[n, classes]`, from 0 to 2 (Brier 1950)."""
    table, truth = np.asarray(probabilities, dtype=np.float64), np.asarray(labels, dtype=np.int64)
    if table.ndim != 2 or len(table) != len(truth) or not len(truth):
        raise ValueError("probabilities are [examples, classes], one label for each example")
    return float(np.square(table - np.eye(table.shape[1])[truth]).sum(1).mean())


def auroc(scores: npt.ArrayLike, positive: npt.ArrayLike) -> float:
    """Return the probability that a positive example scores higher than a negative one; ties count half."""
    above, _ = placements(scores, positive)
    return float(above.mean())


def placements(scores: npt.ArrayLike, positive: npt.ArrayLike) -> tuple[Floats, Floats]:
    """Return the fraction of negatives below each positive, and of positives above each negative."""
    value, is_positive = np.asarray(scores, dtype=np.float64), np.asarray(positive, dtype=bool)
    if value.shape != is_positive.shape or value.ndim != 1:
        raise ValueError("one score and one truth value per example are needed")
    up, down = np.sort(value[is_positive]), np.sort(value[~is_positive])
    if not len(up) or not len(down):
        raise ValueError("AUROC needs positive and negative examples")
    below = (np.searchsorted(down, up, "left") + np.searchsorted(down, up, "right")) / (2 * len(down))
    above = 1 - (np.searchsorted(up, down, "left") + np.searchsorted(up, down, "right")) / (2 * len(up))
    return below, above


def auroc_interval(scores: npt.ArrayLike, positive: npt.ArrayLike, level: float = LEVEL) -> Interval:
    """Return an interval of AUROC from DeLong's variance (1988), on the logit scale to stay in [0, 1].

    Where all pairs are in order, or none is, there is no variance to estimate; the smaller class then counts
    as a series of successes, or failures, of its size.
    """
    below, above = placements(scores, positive)
    area, fewest = float(below.mean()), min(len(below), len(above))
    variance = sum(part.var(ddof=1) / len(part) for part in (below, above) if len(part) > 1)
    if area in (0.0, 1.0) or fewest < 2:
        return wilson(round(area * fewest), fewest, level)
    # With few examples the variance is uncertain too: Student's t, by Welch and Satterthwaite.
    doubt = sum((part.var(ddof=1) / len(part)) ** 2 / (len(part) - 1) for part in (below, above))
    freedom = variance**2 / doubt if doubt else math.inf
    far = special.stdtrit(freedom, (1 + level) / 2) if math.isfinite(freedom) else normal_quantile(level)
    if fewest < FEW:  # a handful may be close together by chance; the area itself implies a lower bound
        variance = max(variance, implied_variance(area, len(below), len(above)))
    half = far * math.sqrt(variance) / (area * (1 - area))
    center = special.logit(area)
    return Interval(float(special.expit(center - half)), float(special.expit(center + half)))


def implied_variance(area: float, positives: int, negatives: int) -> float:
    """Return the variance that an area implies for exponential scores (Hanley and McNeil 1982)."""
    two_up, two_down = area / (2 - area), 2 * area**2 / (1 + area)
    apart = (positives - 1) * (two_up - area**2) + (negatives - 1) * (two_down - area**2)
    return (area * (1 - area) + apart) / (positives * negatives)


@dataclass(frozen=True)
class RiskCoverage:
    """Answering only above a threshold: the fraction answered and the fraction wrong among those."""

    threshold: Floats
    coverage: Floats
    risk: Floats
    area: float
    """The mean risk over all coverages (AURC, Geifman et al. 2019); smaller is better."""
    best_area: float
    """The same if every right answer had more confidence than every wrong one."""


def risk_coverage(confidence: npt.ArrayLike, right: npt.ArrayLike) -> RiskCoverage:
    """Compute risk against coverage, from the most confident example to all of them."""
    confidences, outcomes = (x[::-1] for x in sort_by_confidence(confidence, right))
    n = len(confidences)
    running = np.cumsum(1 - outcomes) / np.arange(1, n + 1)
    # A threshold takes all examples of equal confidence or none.
    last = np.append(confidences[1:] != confidences[:-1], True)
    wrong_last = np.sort(1 - np.asarray(right, dtype=np.float64))
    best = np.cumsum(wrong_last) / np.arange(1, n + 1)
    coverage = np.arange(1, n + 1)[last] / n
    return RiskCoverage(confidences[last], coverage, running[last], float(running.mean()), float(best.mean()))


@dataclass(frozen=True)
class Threshold:
    """Answer when the confidence is at least `threshold`."""

    threshold: float
    coverage: float
    risk: float
    """The fraction wrong among those answered, on these examples."""
    bound: float
    """An upper bound of the true risk at the requested confidence level."""


def threshold_for_risk(
    confidence: npt.ArrayLike, right: npt.ArrayLike, risk: float, level: float = LEVEL
) -> Threshold | None:
    """Find the threshold that answers most while the true risk stays at most `risk`, with confidence `level`.

    Selection with guaranteed risk (Geifman, El-Yaniv 2017): a binary search over the thresholds with an exact
    binomial bound at each step, corrected for the number of steps. None when these examples cannot guarantee
    the risk at any threshold.
    """
    if not 0 < risk < 1:
        raise ValueError("a risk is between 0 and 1")
    curve = risk_coverage(confidence, right)
    total = len(np.asarray(right))
    steps = max(1, math.ceil(math.log2(len(curve.threshold) + 1)))
    allowed = (1 - level) / steps
    best: Threshold | None = None
    first, last = 0, len(curve.threshold) - 1
    while first <= last:
        middle = (first + last) // 2
        n = round(curve.coverage[middle] * total)
        wrong = round(curve.risk[middle] * n)
        bound = 1.0 if wrong == n else float(special.betaincinv(wrong + 1, n - wrong, 1 - allowed))
        if bound <= risk:
            threshold, coverage = float(curve.threshold[middle]), float(curve.coverage[middle])
            best = Threshold(threshold, coverage, float(curve.risk[middle]), bound)
            first = middle + 1
        else:
            last = middle - 1
    return best
