"""A test of an explanation: its most important words are removed first, and random ones for comparison."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np

from heedful.data.random import stream
from heedful.inference.predictor import Floats

RANDOM_ORDERS = 19
"""Random orders to compare with: where the explained one beats them all, chance would do so 1 time in 20."""
STEPS = 8
FEWEST_WORDS = 4
"""Three words have six orders, too few to tell an explanation from chance."""
LIMIT, WEAK = 0.05, 0.2
"""The shares of random orders up to which an explanation is trusted, or is weak evidence."""


@dataclass(frozen=True)
class DeletionTest:
    """How the value falls when words are removed in the order of an explanation, and in random orders."""

    removed: tuple[int, ...]
    """Number of words removed at each step; the first is 0."""
    explained: tuple[float, ...]
    """The probability of the label, or the number, at each step."""
    random: tuple[float, ...]
    """The mean over the random orders."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """The smallest and the largest value of the random orders."""
    orders: int
    """Number of random orders."""
    as_good: int
    """Number of random orders that fall at least as fast."""
    area: float
    """The mean over the steps of how much lower the explained order is than the random ones."""
    trusted: bool | None
    """Whether the explanation beats chance for this text; None where the text is too short to tell."""
    sentence: str

    @property
    def p(self) -> float:
        """How probable it is that a random order is as good."""
        return (1 + self.as_good) / (1 + self.orders)


def run_deletion_test(
    contributions: Floats,
    value: Callable[[Sequence[Collection[int]]], Floats],
    *,
    name: str,
    orders: int = RANDOM_ORDERS,
    seed: int = 0,
) -> DeletionTest:
    """Remove words in the order of their contributions and in random orders.

    `value` returns what a person reads (a probability, a number) for the text without each of some sets of
    words; `name` is what that is called.
    """
    n = len(contributions)
    steps = tuple(dict.fromkeys(round(max(n - 1, 0) * (i / STEPS) ** 1.5) for i in range(STEPS + 1)))
    best = np.argsort(-contributions, kind="stable")
    random = stream(seed, "deletion test")
    every = [best, *(random.permutation(n) for _ in range(orders))]
    sets = [frozenset(order[:count].tolist()) for order in every for count in steps[1:]]
    values = value([(), *sets])
    curves = np.concatenate(
        [np.full((len(every), 1), values[0]), values[1:].reshape(len(every), len(steps) - 1)], axis=1
    )
    # A fall that rounding could make is none.
    means = np.round(curves[:, 1:].mean(1), 9) if len(steps) > 1 else np.zeros(len(every))
    as_good = int((means[1:] <= means[0]).sum())
    area = float(means[1:].mean() - means[0])
    enough = n >= FEWEST_WORDS
    trusted = ((1 + as_good) / (1 + orders) <= LIMIT and area > 0) if enough else None
    others = curves[1:]
    test = DeletionTest(
        steps, tuple(curves[0].tolist()), tuple(others.mean(0).tolist()), tuple(others.min(0).tolist()),
        tuple(others.max(0).tolist()), orders, as_good, area, trusted, "",
    )  # fmt: skip
    return DeletionTest(**{**vars(test), "sentence": describe_test(test, n, name)})


def describe_test(test: DeletionTest, n: int, name: str) -> str:
    """Say in one or two sentences whether the explanation can be trusted for this text."""
    if test.trusted is None:
        words = "1 word" if n == 1 else f"{n} words"
        return (
            f"The text has {words}, which can be removed in only {factorial(n):,} "
            f"order{'s' if n > 1 else ''}: too few to test the explanation."
        )
    at = min(range(1, len(test.removed)), key=lambda i: abs(test.removed[i] - n / 4))
    count = test.removed[at]
    which, others = (
        (f"most important of {n} words", "a random one")
        if count == 1
        else (f"{count} most important of {n} words", "as many random words")
    )
    fall = (
        f"Without its {which} {name} is {test.explained[at]:.3g}, "
        f"without {others} {test.random[at]:.3g} (from {test.explained[0]:.3g})."
    )
    if test.trusted:
        return f"{fall} No random order of {test.orders} falls as fast: the explanation can be trusted here."
    as_fast = (
        f"{test.as_good} of {test.orders} random orders {'falls' if test.as_good == 1 else 'fall'} as fast"
    )
    if test.p <= WEAK:
        return f"{fall} {as_fast}: the explanation is weak evidence for this text."
    return f"{fall} {as_fast}: do not trust this explanation for this text."
