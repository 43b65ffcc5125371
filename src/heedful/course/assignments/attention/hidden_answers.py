"""Hidden claims about answers that are numbers; the right numbers are here."""

from __future__ import annotations

import math

from heedful.contracts.suites.answers import claim_number

CLAIMS = (
    claim_number(
        "question 6",
        "The ratio of two weights is the exponential of the difference of their scores.",
        "answer_ratio",
        [{"difference": x} for x in (0.0, 1.0, 3.5)],
        lambda difference: math.exp(difference),
    ),
    claim_number(
        "question 7",
        "The variance of a product of d independent components is d.",
        "answer_variance",
        [{"d": d} for d in (1, 16, 80)],
        lambda d: float(d),
    ),
)
