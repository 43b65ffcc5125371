"""Hidden claims about answers that are numbers; the right numbers are here."""

from __future__ import annotations

import math

from heedful.contracts.suites.answers import claim_number

CLAIMS = (
    claim_number(
        "question 1",
        "A classifier that knows nothing has the loss log(labels).",
        "answer_chance_loss",
        [{"labels": n} for n in (2, 5, 100)],
        lambda labels: math.log(labels),
    ),
    claim_number(
        "question 2",
        "The head has hidden * labels + labels parameters.",
        "answer_head_parameters",
        [{"hidden": 312, "labels": 5}, {"hidden": 768, "labels": 2}],
        lambda hidden, labels: hidden * labels + labels,
    ),
    claim_number(
        "question 3",
        "12 % of the tokens become [MASK].",
        "answer_masks",
        [{"tokens": 100}, {"tokens": 128}],
        lambda tokens: 0.12 * tokens,
    ),
)
