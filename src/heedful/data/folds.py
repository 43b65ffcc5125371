"""Folds of the training rows: a part is held out as dev, the rest is trained on."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from heedful.data.split_columns import assign_groups, count_units
from heedful.data.splits import Index, Split, is_grouped
from heedful.data.tasks import Task
from heedful.data.times import assign_parts, is_timed, read_times
from heedful.errors import UserError, shorten

FOLD = re.compile(r"([1-9]\d*)/([1-9]\d*)", re.ASCII)


def take_fold(task: Task, fold: str, seed: int) -> Task:
    """Return a task whose dev is fold K of N of the training rows, and whose train is the other folds.

    `fold` is K/N. Each fold has the shares of the labels in all rows; rows with the same text, or of the same
    group where the task has groups, are in the same fold. The task's own dev rows are left out, test stays.

    Where rows are split by time, a fold is trained on earlier rows alone: train is cut into N + 1 parts in
    the order of time, fold 1 holds out the last part, fold 2 the part before it, and so on; later rows than
    those held out are left out. So fold 1 has most rows to train on, and fold N only the first part.
    """
    match = FOLD.fullmatch(fold)
    if match is None or not (1 <= int(match[1]) <= int(match[2]) and int(match[2]) > 1):
        raise UserError(f'--fold "{shorten(fold)}": is K/N, such as 2/5 for the second of five folds')
    number, count = int(match[1]), int(match[2])
    train = task.splits["train"]
    learned, held_out = choose_fold_rows(train, number, count, seed)
    if not len(held_out) or not len(learned):
        raise UserError(f"--fold {fold}: {describe_units(train)} are too few for {count} folds")
    before = "what is earlier than" if is_timed(train.rows) else "all but"
    parts = {
        "train": take_rows(train, learned, "train", f"{before} fold {fold}"),
        "dev": take_rows(train, held_out, "dev", f"fold {fold} of train"),
    }
    return replace(task, splits={**task.splits, **parts})


def choose_fold_rows(split: Split, number: int, count: int, seed: int) -> tuple[Index, Index]:
    """Return the rows that fold `number` (1 to `count`) learns from, and those that it holds out.

    `take_fold` says which these are. One of them is empty if there are too few rows, groups or times.
    """
    if not is_timed(split.rows):
        held_out = assign_folds(split, count, seed) == number - 1
        return np.flatnonzero(~held_out), np.flatnonzero(held_out)
    if count_units(split) <= count:
        return np.arange(0), np.arange(0)
    age = count - assign_parts(read_times(split.rows, split.index), count + 1)  # 0 for the latest part
    return np.flatnonzero(age > number - 1), np.flatnonzero(age == number - 1)


def describe_units(split: Split) -> str:
    if is_timed(split.rows):
        return f"{count_units(split)} different times of training rows"
    rows = "groups of training rows" if is_grouped(split.rows) else "training rows"
    return f"{count_units(split)} {rows}"


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
    targets = None if split.targets is None else split.targets[chosen]
    return Split(name, split.rows, index, targets, how)
