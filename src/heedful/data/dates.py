"""Read a time from a text: an ISO date or date with time, or a number such as a year or Unix time."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

MONTH = re.compile(r"\d{4}-\d{2}")


@dataclass(frozen=True)
class Time:
    kind: Literal["date", "number"]
    value: float
    """Seconds since 1970 for a date (UTC, unless it says another zone), or the number."""


def parse_time(text: str) -> Time | None:
    """Return the time that a text says, or None if it says none.

    >>> parse_time("2021-03") == parse_time("2021-03-01 00:00")
    True
    >>> parse_time("1999.5")
    Time(kind='number', value=1999.5)
    >>> parse_time("3/1/2021") is None
    True
    """
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        pass
    else:
        return Time("number", number) if math.isfinite(number) else None
    try:
        moment = datetime.fromisoformat(f"{text}-01" if MONTH.fullmatch(text) else text)
    except ValueError:
        return None
    return Time("date", (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def read_time(text: str) -> Time:
    """Return the time of a text that was checked before."""
    time = parse_time(text)
    assert time is not None
    return time
