"""Written questions whose answers can be checked: functions `answer_...`; an assignment has the claims."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from heedful.contracts.subject import Subject
from heedful.contracts.suite import Claim, Suite
from heedful.contracts.verdicts import RefutedError

TOLERANCE = 0.01
"""Largest difference from the right number, relative to it."""


def claim_number(
    name: str,
    sentence: str,
    question: str,
    cases: Sequence[Mapping[str, Any]],
    right: Callable[..., float],
    hint: str = "",
) -> Claim:
    """Return the claim that an answer is the right number, to 1 %, for each case of its arguments.

    Parameters
    ----------
    name
        The short name of the claim.
    sentence
        What the claim says.
    question
        The name of the student's function.
    cases
        The arguments of each call.
    right
        Returns the right number for the same arguments.
    hint
        What to look at; without it the right number is shown.

    """

    def check(subject: Subject) -> str:
        for inputs in cases:
            got = read_number(subject.call(question, inputs).get("out"))
            expected = right(**inputs)
            if got is None or not math.isclose(got, expected, rel_tol=TOLERANCE, abs_tol=1e-6):
                raise RefutedError("the number is not right", inputs=inputs, got=got, expected=expected)
        return f"right for {len(cases)} cases"

    return Claim(name, sentence, check, question, hint)


def read_number(value: Any) -> float | None:
    """Return an answer as a number; None if it is none."""
    if hasattr(value, "numel") and value.numel() == 1:
        value = value.item()
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


SUITE = Suite(
    "answers",
    "answers to written questions, as functions answer_...; the claims come with an assignment",
    {},
    (),
)
