"""Claims about the schedule of the learning rate."""

from __future__ import annotations

import math

from heedful.contracts import Claim, RefutedError, Subject
from heedful.contracts.suites.answers import read_number

CASES = ((10, 100, 6e-3), (1, 7, 1.0), (50, 400, 6e-4))
"""Warm-up, number of steps and peak."""


def rates(subject: Subject, warmup: int, total: int, peak: float, last: int) -> list[float]:
    """Return the rates of the steps up to the last one."""
    found = []
    for step in range(last + 1):
        inputs = {"step": step, "warmup": warmup, "total": total, "peak": peak}
        rate = read_number(subject.call("answer_rate", inputs).get("out"))
        if rate is None or not math.isfinite(rate):
            raise RefutedError("the rate is not a number", inputs=inputs, got=rate)
        found.append(rate)
    return found


def check_warmup(subject: Subject) -> str:
    for warmup, total, peak in CASES:
        for step, rate in enumerate(rates(subject, warmup, total, peak, warmup)):
            if not math.isclose(rate, peak * step / warmup, rel_tol=1e-3, abs_tol=1e-9):
                inputs = {"step": step, "warmup": warmup, "total": total, "peak": peak}
                raise RefutedError(
                    "the rate of the warm-up is not right",
                    inputs=inputs,
                    got=rate,
                    expected=peak * step / warmup,
                )
    return "it rises linearly to its peak"


def check_decay(subject: Subject) -> str:
    warmup, total, peak = CASES[0]
    found = rates(subject, warmup, total, peak, 2 * total)
    for step in range(warmup, 2 * total):
        if found[step + 1] > found[step] + 1e-9:
            raise RefutedError(
                "the rate rises again",
                inputs={"warmup": warmup, "total": total, "peak": peak},
                got={f"step {step}": found[step], f"step {step + 1}": found[step + 1]},
                expected="it never rises after its peak",
            )
    if found[total] > 1e-6 * peak:
        raise RefutedError(
            f"the rate of step {total} is not 0",
            inputs={"warmup": warmup, "total": total, "peak": peak},
            got=found[total],
            expected=0.0,
        )
    middle = (warmup + total) // 2
    if not math.isclose(found[middle], peak / 2, rel_tol=0.02):
        raise RefutedError(
            "halfway down the rate is not half of its peak",
            inputs={"step": middle},
            got=found[middle],
            expected=peak / 2,
        )
    return "it falls along a cosine to 0, and stays there"


CLAIMS = (
    Claim(
        "warm-up",
        "The rate rises linearly to its peak.",
        check_warmup,
        "answer_rate",
        "at which step must it be `peak`?",
    ),
    Claim(
        "decay",
        "After its peak the rate falls to 0 along half a cosine, and never rises again.",
        check_decay,
        "answer_rate",
        "how far along is a step after `total`? the cosine goes up again after half a turn",
    ),
)
