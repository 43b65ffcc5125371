"""What was found: sentences that ask for attention, the rows behind them, and what would help."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from heedful.runs.answers import Note, Table

MOST_HELP = 3
"""Number of sentences about what would help."""


@dataclass(frozen=True)
class Help:
    """Something that could be done, and what the metric would gain; 0 if no gain is shown."""

    gain: float
    sentence: str


@dataclass(frozen=True)
class Insight:
    """Findings about the data: sentences that ask for attention, and the rows behind them."""

    notes: tuple[Note, ...] = ()
    tables: tuple[Table, ...] = ()
    helps: tuple[Help, ...] = ()


def rank_helps(helps: Iterable[Help]) -> list[str]:
    """Return what would help as lines, the largest gain first."""
    ranked = sorted(helps, key=lambda one: -one.gain)[:MOST_HELP]
    if not ranked:
        return []
    shown = ranked[0].gain > 0
    title = "What would help most, by the gain to expect:" if shown else "What would help is not shown:"
    return [title, *(f"  {one.sentence}" for one in ranked)]
