"""A confidence above which at most a promised share of the answers is wrong.

The thresholds that are tried do not depend on the data, so that at each of them the number of mistakes is
binomial. They are tested from a few starting points downwards until the first that fails; only the number of
starting points has to be corrected for (learn then test, Angelopoulos et al. 2021, with the fixed sequence of
several starts). A binary search over the thresholds, as in `calibration.threshold_for_risk`, pays for each of
its steps, and ends with nothing where the risk is high half way.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from heedful.statistics.calibration import Threshold
from heedful.statistics.proportions import LEVEL

STEP = 0.05
"""Distance of neighboring thresholds, in logits."""
STARTS = (-3.0, -1.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 10.0)
"""The logits of the confidences from which thresholds are tested downwards; most models have theirs between
0.5 and 0.9999."""
LOWEST = -5.0


def certify_threshold(
    confidence: npt.ArrayLike, right: npt.ArrayLike, risk: float, level: float = LEVEL
) -> Threshold | None:
    """Find the lowest threshold above which the true risk is at most `risk`, with confidence `level`.

    None if these examples cannot guarantee the risk at any threshold.
    """
    if not 0 < risk < 1:
        raise ValueError("a risk is between 0 and 1")
    confidences, outcomes = np.asarray(confidence, np.float64), np.asarray(right, bool)
    if confidences.shape != outcomes.shape or confidences.ndim != 1:
        raise ValueError("one confidence and one outcome per example are needed")
    if np.isnan(confidences).any():
        raise ValueError("a confidence is not a number")
    order = np.argsort(-confidences, kind="stable")
    ordered, mistakes = confidences[order], np.append(0, np.cumsum(~outcomes[order]))
    allowed = (1 - level) / len(STARTS)
    lowest: Threshold | None = None
    for start in STARTS:  # the first start that succeeds has the lowest thresholds
        for logit in np.arange(start, LOWEST, -STEP):
            threshold = float(special.expit(logit))
            n = int(np.searchsorted(-ordered, -threshold, "right"))
            wrong = int(mistakes[n])
            bound = 1.0 if wrong == n else float(special.betaincinv(wrong + 1, n - wrong, 1 - allowed))
            if bound > risk:
                break
            lowest = Threshold(threshold, n / len(ordered), wrong / n, bound)
        if lowest is not None:
            return lowest
    return None


def count_needed(risk: float, level: float = LEVEL) -> int:
    """Return how many examples without a mistake it takes to guarantee a risk."""
    return math.ceil(math.log((1 - level) / len(STARTS)) / math.log1p(-risk))
