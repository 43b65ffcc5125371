"""Types of options: bounds that the typed parser checks, and marks for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter


@dataclass(frozen=True)
class Bounds:
    """The numbers that an option accepts. `least` and `most` are included, `above` and `below` are not."""

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None

    def contains(self, value: float) -> bool:
        """Return whether a number is within the bounds; NaN is not."""
        return (
            value == value
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )

    def describe(self) -> str:
        """Return the bounds in words: `at least 0 and below 1`."""
        parts = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        return " and ".join(f"{words} {limit:,}" for words, limit in parts.items() if limit is not None)


LARGEST_COUNT = 10**12
"""Nothing that is counted here (steps, rows, tokens) comes near this number."""

Positive = Annotated[int, Bounds(least=1, most=LARGEST_COUNT)]
"""A count of at least one."""
Count = Annotated[int, Bounds(least=0, most=LARGEST_COUNT)]
"""A count that may be zero."""
Seed = Annotated[int, Bounds(least=0, most=2**63 - 1)]
"""A seed of 64 bits, as torch and numpy take it."""
Threads = Annotated[int, Bounds(least=1, most=4096)]
"""A number of threads or processes on one machine."""
Rate = Annotated[float, Bounds(above=0, most=1e6)]
"""A learning rate."""
Share = Annotated[float, Bounds(least=0, below=1)]
"""A share from 0 to below 1."""
ShareBetween = Annotated[float, Bounds(above=0, below=1)]
"""A share between 0 and 1, neither of them included."""
Weight = Annotated[float, Bounds(least=0, most=1e6)]
"""A factor of at least 0."""

Flag = Annotated[bool, Parameter(negative=())]
"""An option that takes no value and has no `--no-` form."""
Argument = Annotated[str, Parameter(parse=False)]
"""An argument that is written without a flag on the command line."""
Several = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative=())]
"""An option that takes all the words that follow it."""
