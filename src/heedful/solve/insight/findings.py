"""What was found: sentences that ask for attention, and the rows behind them."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.runs.answers import Note, Table


@dataclass(frozen=True)
class Insight:
    """Findings about the data: sentences that ask for attention, and the rows behind them."""

    notes: tuple[Note, ...] = ()
    tables: tuple[Table, ...] = ()
