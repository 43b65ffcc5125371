"""Folds of the training rows: a part is held out as dev, the rest is trained on."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from heedful.data.groups import assign_groups
from heedful.data.splits import Index, Split, is_grouped
from heedful.data.tasks import Task
from heedful.errors import UserError, shorten

FOLD = re.compile(r"([1-9]\d*)/([1-9]\d*)", re.ASCII)


def take_fold(task: Task, fold: str, seed: int) -> Task:
    """Return a task whose dev is fold K of N of the training rows, and whose train is the other folds.

    `fold` is K/N. Each fold has the shares of the labels in all rows; rows with the same text, or of the same
    group where the task has groups, are in the same fold. The task's own dev rows are left out, test stays.
    """
    match = FOLD.fullmatch(fold)
    if match is None or not (1 <= int(match[1]) <= int(match[2]) and int(match[2]) > 1):
        raise UserError(f'--fold "{shorten(fold)}": is K/N, such as 2/5 for the second of five folds')
    number, count = int(match[1]), int(match[2])
    train = task.splits["train"]
    held_out = assign_folds(train, count, seed) == number - 1
    if not held_out.any() or held_out.all():
        few = f"{len(train)} training rows"
        if is_grouped(train.rows):
            few = f"{len(np.unique(train.group_hashes()))} groups of training rows"
        raise UserError(f"--fold {fold}: {few} are too few for {count} folds")
    parts = {
        "train": take_rows(train, np.flatnonzero(~held_out), "train", f"all but fold {fold}"),
        "dev": take_rows(train, np.flatnonzero(held_out), "dev", f"fold {fold} of train"),
    }
    return replace(task, splits={**task.splits, **parts})


def assign_folds(split: Split, count: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the fold of each row: rows of a label take turns, in the order of their content hashes."""
    if is_grouped(split.rows):
        return assign_groups(split.group_hashes(seed), split.labels, count)
    hashes, first, which = np.unique(split.hashes(seed), return_index=True, return_inverse=True)
    labels = np.zeros(len(hashes), np.int64) if split.labels is None else split.labels[first]
    folds, turn = np.empty(len(hashes), np.int64), 0
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        folds[rows] = (turn + np.arange(len(rows))) % count
        turn += len(rows)  # the next label begins where this one ended, so that folds are equally large
    return np.asarray(folds[which])


def take_rows(split: Split, chosen: Index, name: str, how: str) -> Split:
    index = chosen if split.index is None else split.index[chosen]
    labels = None if split.labels is None else split.labels[chosen]
    return Split(name, split.rows, index, labels, how)
