"""Types of options: bounds that the typed parser checks, and marks for the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from cyclopts import Parameter

ExplanationMethod = Literal["exact", "gradients", "occlusion"]
LongTexts = Literal["cut", "head-tail"]
"""What is read of a text that is longer than `max_len` tokens."""


@dataclass(frozen=True)
class Bounds:
    """The numbers that an option accepts. `least` and `most` are included, `above` and `below` are not.

    No reasonable value is beyond `floor` and `cap`; they are named only in the error of a number that is.
    """

    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    floor: float | None = None
    cap: float | None = None

    def violation(self, value: float) -> str | None:
        """Return in words what a number must be, where it is not within the bounds; NaN never is."""
        if self.cap is not None and value > self.cap:
            return f"at most {self.cap:,}" if self.cap < 2**64 else f"at most {self.cap:g}"
        if self.floor is not None and value < self.floor:
            return f"at least {self.floor:,}"
        inside = (
            value == value
            and (self.least is None or value >= self.least)
            and (self.most is None or value <= self.most)
            and (self.above is None or value > self.above)
            and (self.below is None or value < self.below)
        )
        return None if inside else self.describe()

    def describe(self) -> str:
        """Return the bounds in words: `at least 0 and below 1`."""
        parts = {"at least": self.least, "above": self.above, "at most": self.most, "below": self.below}
        return " and ".join(f"{words} {limit:,}" for words, limit in parts.items() if limit is not None)


@dataclass(frozen=True)
class Characters(Bounds):
    """The largest number of characters of a text."""

    limit: int = 1000

    def __init__(self, limit: int) -> None:
        object.__setattr__(self, "limit", limit)

    def violation(self, value: Any) -> str | None:
        return None if len(value) <= self.limit else f"text of at most {self.limit:,} characters"

    def describe(self) -> str:
        return ""


LARGEST_COUNT = 10**9
"""Nothing that is counted here (steps, rows, tokens of a batch) comes near this number."""

Positive = Annotated[int, Bounds(least=1, cap=LARGEST_COUNT)]
"""A count of at least one."""
Count = Annotated[int, Bounds(least=0, cap=LARGEST_COUNT)]
"""A count that may be zero."""
ClassCount = Annotated[int, Bounds(least=2, cap=LARGEST_COUNT)]
Length = Annotated[int, Bounds(least=4, cap=LARGEST_COUNT)]
"""A number of tokens that leaves room for the special ones."""
Seed = Annotated[int, Bounds(floor=-(2**63), cap=2**64 - 1)]
"""A seed of 64 bits, as torch takes it."""
Threads = Annotated[int, Bounds(least=1, cap=1024)]
"""A number of threads or processes of one machine."""
Rate = Annotated[float, Bounds(above=0, cap=1e30)]
"""A learning rate, or another small factor."""
Factor = Annotated[float, Bounds(above=0, cap=1_000_000)]
Share = Annotated[float, Bounds(least=0, below=1)]
"""A share from 0 to below 1."""
OpenShare = Annotated[float, Bounds(above=0, below=1)]
"""A share between 0 and 1, neither of them included."""
Weight = Annotated[float, Bounds(least=0, cap=LARGEST_COUNT)]
"""A finite number of at least 0."""
Decay = Annotated[float, Bounds(least=0, cap=1000)]
"""The weight of a term that is added to a loss or to an update."""
Remark = Annotated[str, Characters(1000)]
Minutes = Annotated[float, Bounds(above=0, cap=10_000_000)]

MODEL_HELP = "A folder in Hub form, minilm, a preset (heedful list models), or a Hub id."
TASK_HELP = (
    "boolq, sst2, world/reviews, ..., a file, a folder of splits or classes, or a Hub data set (imdb)."
)
Flag = Annotated[bool, Parameter(negative=())]
"""An option that takes no value and has no `--no-` form."""
Argument = Annotated[str, Parameter(parse=False)]
"""An argument that is written without a flag on the command line."""
Several = Annotated[tuple[str, ...], Parameter(consume_multiple=True, negative=())]
"""An option that takes all the words that follow it."""


class CommaSeparated:
    """Marks text that lists several values, `1e-4,1e-3`; from Python it may be a list."""


Choices = Annotated[str, CommaSeparated()]
"""An option that takes several values, separated by commas."""
