"""Hidden claims about answers that are numbers; the right numbers are here."""

from __future__ import annotations

import math
from collections.abc import Callable

from heedful.contracts import Claim, RefutedError, Subject


def make_check(
    question: str, argument: str, values: tuple[float, ...], right: Callable[[float], float]
) -> Callable[[Subject], str]:
    """Return a check that the answer for each value of the argument is the right number, to 1 %."""

    def check(subject: Subject) -> str:
        for value in values:
            got = subject.call(question, {argument: value})["out"]
            got = got.item() if hasattr(got, "item") and got.numel() == 1 else got
            if not isinstance(got, int | float) or not math.isclose(got, right(value), rel_tol=0.01):
                raise RefutedError(
                    f"the number for {argument} = {value:g} is not right",
                    inputs={argument: value},
                    got=got,
                    expected=right(value),
                )
        return f"right for {argument} = {', '.join(f'{v:g}' for v in values)}"

    return check


CLAIMS = (
    Claim(
        "question 6",
        "The ratio of two weights is the exponential of the difference of their scores.",
        make_check("answer_ratio", "difference", (0.0, 1.0, 3.5), math.exp),
        "answer_ratio",
    ),
    Claim(
        "question 7",
        "The variance of a product of d independent components is d.",
        make_check("answer_variance", "d", (1, 16, 80), float),
        "answer_variance",
    ),
)
