"""Rows that are split by a column: groups, such as authors, that stay on one side, and times."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

import numpy as np
import numpy.typing as npt

from heedful.data.splits import Split, count_groups, is_grouped
from heedful.data.store import SPLIT_BY
from heedful.data.times import count_times, is_timed, read_times

Keys = npt.NDArray[np.uint64]


def describe_split_column(splits: Mapping[str, Split]) -> Iterator[str]:
    """Yield how rows are split by a column; nothing if they are not."""
    train = splits["train"]
    if train.rows.by is None:
        return
    how = f"split by {train.rows.by.name}"
    if train.index is None:
        how = f"split as the files are; folds are {how}"
    if is_grouped(train.rows):
        how += f": {count_groups(train.rows):,} groups"
    elif train.index is not None:
        how += f": {describe_times(splits)}"
    yield how


def describe_times(splits: Mapping[str, Split]) -> str:
    """Say until when, or from when, each split is that comes from train's file."""
    parts = {name: split for name, split in splits.items() if split.rows is splits["train"].rows}
    last = list(parts)[-1]
    return ", ".join(
        f"{name} from {find_time(split, 'first')}"
        if name == last
        else f"{name} until {find_time(split, 'last')}"
        for name, split in parts.items()
    )


def find_time(split: Split, which: Literal["first", "last"]) -> str:
    """Return the first or the last time of a split as it is in the file, without a midnight."""
    times = read_times(split.rows, split.index)
    row = int(np.argmin(times) if which == "first" else np.argmax(times))
    text = str(split.rows.get(SPLIT_BY, row if split.index is None else int(split.index[row])))
    return text.removesuffix("T00:00:00")


def find_leaks(splits: Mapping[str, Split]) -> Iterator[str]:
    """Yield what files that were split before let a model know that it should not."""
    yield from find_shared_groups(splits)
    yield from find_early_rows(splits)


def find_early_rows(splits: Mapping[str, Split]) -> Iterator[str]:
    """Yield a sentence for each split with rows that are earlier than the last row of train."""
    timed = {name: split for name, split in splits.items() if is_timed(split.rows)}
    if "train" not in timed:
        return
    last = read_times(timed["train"].rows, timed["train"].index).max()
    for name, split in timed.items():
        early = int(np.sum(read_times(split.rows, split.index) < last))
        if name != "train" and early:
            yield (
                f"{early:,} of {len(split):,} rows of {name} are earlier than the last of train "
                f'("{split.rows.by and split.rows.by.name}"): scores may be too high for later texts. '
                "Files that are split before stay as they are; one file with all rows is split by time"
            )


def count_units(split: Split) -> int:
    """Return the number of what a fold has whole: rows, groups or times."""
    if is_timed(split.rows):
        return count_times(split.rows, split.index)
    return len(np.unique(split.group_hashes())) if is_grouped(split.rows) else len(split)


def find_shared_groups(splits: Mapping[str, Split]) -> Iterator[str]:
    """Yield a sentence for each two splits that share groups, which only files that are split before can."""
    grouped = {name: split for name, split in splits.items() if is_grouped(split.rows)}
    keys = {name: split.group_hashes() for name, split in grouped.items()}
    names = list(keys)
    for place, held_out in enumerate(names):
        for learned in names[:place]:
            shared = np.isin(keys[held_out], keys[learned])
            if shared.any():
                column = grouped[held_out].rows.by
                yield (
                    f"{np.sum(shared):,} of {len(shared):,} rows of {held_out} are of a group "
                    f'("{column and column.name}") that {learned} has too: scores may be too high. '
                    "Files that are split before stay as they are; one file with all rows is split by group"
                )


def assign_groups(groups: Keys, labels: npt.NDArray[np.int32] | None, count: int) -> npt.NDArray[np.int64]:
    """Return the fold of each row: whole groups, the largest first, each to the fold that lacks its labels.

    Folds so have nearly the shares of the labels in all rows, as far as the groups allow it. Of folds that
    lack the labels equally, the one with the fewest rows takes the group.
    """
    _, which = np.unique(groups, return_inverse=True)
    codes = np.zeros(len(groups), np.int64) if labels is None else np.unique(labels, return_inverse=True)[1]
    cells = np.zeros((which.max() + 1, codes.max() + 1))
    np.add.at(cells, (which, codes), 1)
    shares, sizes = cells / cells.sum(0), cells.sum(1)
    filled, rows = np.zeros((count, cells.shape[1])), np.zeros(count)
    folds = np.empty(len(cells), np.int64)
    for group in np.argsort(-sizes, kind="stable"):
        present = np.round(filled @ shares[group], 12)  # sums in another order are equal, too
        fold = folds[group] = np.lexsort((rows, present))[0]
        filled[fold] += shares[group]
        rows[fold] += sizes[group]
    return np.asarray(folds[which])
