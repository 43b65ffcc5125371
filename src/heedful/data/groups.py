"""Groups of rows, such as those of one author, that must not be on both sides of a split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from heedful.data.splits import Split, count_groups, is_grouped

Keys = npt.NDArray[np.uint64]


def describe_groups(splits: Mapping[str, Split]) -> Iterator[str]:
    """Yield how rows are split by their groups; nothing if they are not."""
    rows = splits["train"].rows
    if rows.by is None or not is_grouped(rows):
        return
    groups = f"{count_groups(rows):,} groups"
    if splits["train"].index is not None:
        yield f"split by {rows.by.name}: {groups}"
    else:
        yield f"split as the files are; folds are split by {rows.by.name}: {groups}"


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

    Folds so have nearly the shares of the labels in all rows, as far as the groups allow it.
    """
    _, which = np.unique(groups, return_inverse=True)
    codes = np.zeros(len(groups), np.int64) if labels is None else np.unique(labels, return_inverse=True)[1]
    cells = np.zeros((which.max() + 1, codes.max() + 1))
    np.add.at(cells, (which, codes), 1)
    shares = cells / cells.sum(0)
    filled, folds = np.zeros((count, cells.shape[1])), np.empty(len(cells), np.int64)
    for group in np.argsort(-cells.sum(1), kind="stable"):
        folds[group] = np.argmin(filled @ shares[group])
        filled[folds[group]] += shares[group]
    return np.asarray(folds[which])
