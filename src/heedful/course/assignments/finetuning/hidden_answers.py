"""Hidden claims about answers that are numbers; the right numbers are here."""

from __future__ import annotations

import math

from heedful.contracts.suites.answers import claim_number


CLAIMS = (
    claim_number(
        "question 1",
        "LoRA on two projections per layer learns 4 r d numbers per layer.",
        "answer_lora_parameters",
        [{"layers": 12, "width": 768, "rank": 8}, {"layers": 4, "width": 312, "rank": 1}],
        lambda layers, width, rank: 4 * layers * width * rank,
    ),
    claim_number(
        "question 2",
        "Learning rates are uniform on a logarithmic scale.",
        "answer_draw_rate",
        [{"low": 1e-5, "high": 1e-3, "u": u} for u in (0.0, 0.25, 0.5, 1.0)],
        lambda low, high, u: low * (high / low) ** u,
    ),
    claim_number(
        "question 3",
        "The interval of a share narrows with the root of the number of examples.",
        "answer_half_width",
        [{"accuracy": 0.8, "n": 1000}, {"accuracy": 0.5, "n": 64}],
        lambda accuracy, n: 1.96 * math.sqrt(accuracy * (1 - accuracy) / n),
    ),
)
