"""Times of rows: dates or numbers, by which the latest rows are held out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from heedful.data.dates import read_time
from heedful.data.store import SPLIT_BY, ExampleStore

Index = npt.NDArray[np.int64]
Times = npt.NDArray[np.float64]


def is_timed(rows: ExampleStore) -> bool:
    return rows.by is not None and rows.by.kind == "time"


def read_times(rows: ExampleStore, index: Index | None = None) -> Times:
    """Return the time of each row as a number."""
    texts = (text for (column,) in rows.scan([SPLIT_BY], index) for text in column)
    return np.array([read_time(text).value for text in texts], np.float64)


def find_cuts(times: Times, shares: Sequence[float]) -> Times:
    """Return the first time of each part but the earliest, so that the parts before have about these shares.

    Rows of the same time are in the same part. There must be more different times than shares.
    """
    values, starts = np.unique(np.sort(times), return_index=True)
    cuts = list[int]()
    for place, share in enumerate(shares):
        first, last = (cuts[-1] if cuts else 0) + 1, len(values) - (len(shares) - place)
        nearest = np.argmin(np.abs(starts[first : last + 1] - share * len(times)))
        cuts.append(first + int(nearest))
    return np.asarray(values[cuts])


def split_by_time(rows: ExampleStore, shares: Mapping[str, float]) -> dict[str, Index]:
    """Return the rows of each split, the earliest split first; `shares` are those of all rows.

    The last ones are empty if there are fewer different times than splits.
    """
    times = read_times(rows)
    before = np.cumsum(list(shares.values()))[: min(len(shares), count_times(rows)) - 1]
    part = np.searchsorted(find_cuts(times, before.tolist()), times, side="right")
    return {name: np.flatnonzero(part == place) for place, name in enumerate(shares)}


def count_times(rows: ExampleStore, index: Index | None = None) -> int:
    """Return the number of different times."""
    return len(np.unique(read_times(rows, index)))


def assign_parts(times: Times, count: int) -> npt.NDArray[np.int64]:
    """Return the part of each row, of `count` parts in the order of time with about as many rows each."""
    cuts = find_cuts(times, [place / count for place in range(1, count)])
    return np.asarray(np.searchsorted(cuts, times, side="right"))
