"""Fast random draws for text, on Python integers: one congruential generator per person, question or review.

A numpy generator costs more to create than a whole biography, and these draws cannot change with a library,
so that a seed always gives the same bytes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TypeVar

from heedful.data.random import key

T = TypeVar("T")

MASK = 2**64 - 1
STEP = 0x9E3779B97F4A7C15
MULTIPLIER = 0xD1342543DE82EF95


def mix(x: int) -> int:
    """Scramble 64 bits, one to one, as splitmix64 does (Steele et al. 2014)."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class Draws:
    """A sequence of random draws from 64 bits of state, of which the better upper half is used.

    The multiplier is one of Steele and Vigna (2021), "Computationally easy, spectrally good multipliers". The
    step is written out in each method because a call costs more than the arithmetic.
    """

    __slots__ = ("state",)

    def __init__(self, state: int) -> None:
        self.state = state

    def below(self, n: int) -> int:
        """Draw from 0 to n - 1."""
        self.state = state = (self.state * MULTIPLIER + STEP) & MASK
        return ((state >> 32) * n) >> 32

    def pick(self, items: Sequence[T]) -> T:
        self.state = state = (self.state * MULTIPLIER + STEP) & MASK
        return items[((state >> 32) * len(items)) >> 32]

    def chance(self, p: float) -> bool:
        self.state = state = (self.state * MULTIPLIER + STEP) & MASK
        return state >> 32 < p * 2**32

    def weighted(self, ends: Sequence[float]) -> int:
        """Draw an index by its weight; `ends` are the running sums of the weights, the last of which is 1."""
        self.state = state = (self.state * MULTIPLIER + STEP) & MASK
        return bisect_right(ends, (state >> 32) * 2**-32, 0, len(ends) - 1)

    def several(self, items: Iterable[T], n: int) -> list[T]:
        """Draw n different items, in random order."""
        pool = list(items)
        for at in range(n):
            other = at + self.below(len(pool) - at)
            pool[at], pool[other] = pool[other], pool[at]
        return pool[:n]


class Source:
    """Independent draws for every index, which depend on the seed, the purpose and the index alone."""

    def __init__(self, seed: int, purpose: str) -> None:
        self.base = key(seed, f"world {purpose}") & MASK

    def at(self, index: int) -> Draws:
        return Draws(mix((self.base + index * STEP) & MASK))


def compute_running_sums(weights: Iterable[float]) -> list[float]:
    """Return the running sums of weights, scaled to end at 1, for `Draws.weighted`."""
    sums = list(accumulate(weights))
    return [s / sums[-1] for s in sums]
