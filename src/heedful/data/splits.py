"""Splits: parts of a task's rows; the hash of a row's content or group, or its time, decides which part."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np
import numpy.typing as npt

from heedful.data import cache
from heedful.data.store import SPLIT_BY, ExampleStore
from heedful.data.times import count_times, is_timed, split_by_time
from heedful.errors import UserError

Index = npt.NDArray[np.int64]
Mode = Literal["hash", "first", "none"]
TRAIN_SHARE, DEV_SHARE = 0.8, 0.1


@dataclass(frozen=True)
class Example:
    """One row: a text or a pair of texts, with its label's number, or its answer in a text-to-text task.

    `target` is its entry in `Split.targets`: the label's number, 0 or 1 per label, or the number.
    """

    text: str
    pair: str | None = None
    label: int | None = None
    answer: str | None = None
    target: Any = None


class Column(Sequence[str]):
    """One column of a split, read on access; iterating reads the file in order."""

    def __init__(self, rows: ExampleStore, index: Index | None, name: str) -> None:
        self.rows, self.chosen, self.name = rows, index, name

    def __len__(self) -> int:
        return len(self.rows) if self.chosen is None else len(self.chosen)

    @overload
    def __getitem__(self, item: int) -> str: ...
    @overload
    def __getitem__(self, item: slice) -> list[str]: ...
    def __getitem__(self, item: int | slice) -> str | list[str]:
        indices = range(len(self))
        if isinstance(item, slice):
            return [self[i] for i in indices[item]]
        row = indices[item] if self.chosen is None else int(self.chosen[indices[item]])
        value = self.rows.get(self.name, row)
        assert value is not None
        return value

    def __iter__(self) -> Iterator[str]:
        for (values,) in self.rows.scan([self.name], self.chosen):
            yield from values


class Split:
    """A part of a task; missing columns are None.

    `targets` has what is to be predicted, per row: the index of its label in the task's label names; with
    several labels per text, 0 or 1 per label; or a number. `labels` are the same indices, and None otherwise.
    """

    of: int | None = None
    """Number of rows of the whole split, if this is a sample of it."""

    def __init__(
        self,
        name: str,
        rows: ExampleStore,
        index: Index | None,
        targets: npt.NDArray[Any] | None,
        how: str = "",
    ) -> None:
        self.name, self.rows, self.index, self.targets, self.how = name, rows, index, targets, how
        is_label = targets is not None and targets.ndim == 1 and targets.dtype.kind == "i"
        self.labels: npt.NDArray[np.int32] | None = targets if is_label else None
        self.texts = Column(rows, index, "text")
        self.pairs = self.optional("pair")
        self.answers = self.optional("answer")
        chosen = "" if index is None else hashlib.blake2b(index.tobytes(), digest_size=16).hexdigest()
        self.fingerprint = cache.digest("split", rows.fingerprint, chosen)

    def optional(self, name: str) -> Column | None:
        is_present = len(self) and self.rows.get(name, 0) is not None
        return Column(self.rows, self.index, name) if is_present else None

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, item: int) -> Example:
        row = range(len(self))[item]
        return Example(
            self.texts[row],
            self.pairs[row] if self.pairs is not None else None,
            int(self.labels[row]) if self.labels is not None else None,
            self.answers[row] if self.answers is not None else None,
            self.targets[row] if self.targets is not None else None,
        )

    def __iter__(self) -> Iterator[Example]:
        row = 0
        for texts, pairs, answers in self.rows.scan(["text", "pair", "answer"], self.index):
            for text, pair, answer in zip(texts, pairs, answers, strict=True):
                label = int(self.labels[row]) if self.labels is not None else None
                target = self.targets[row] if self.targets is not None else None
                yield Example(text, pair, label, answer, target)
                row += 1

    def iterate_texts(self) -> Iterator[tuple[list[str], list[str] | None]]:
        """Yield (texts, pairs), some megabytes at a time, in order."""
        for texts, pairs in self.rows.scan(["text", "pair"], self.index):
            yield texts, pairs if self.pairs is not None else None

    def hashes(self, seed: int = 0) -> npt.NDArray[np.uint64]:
        return hash_rows(self.rows, seed, self.index)

    def group_hashes(self, seed: int = 0) -> npt.NDArray[np.uint64]:
        return hash_groups(self.rows, seed, self.index)


def content_key(seed: int, text: str, pair: str | None) -> int:
    """Return a 64-bit hash of a row's content and a seed, without the label: copies stay together."""
    content = f"{seed}\0{text}" if pair is None else f"{seed}\0{text}\0{pair}"
    return int.from_bytes(hashlib.blake2b(content.encode(), digest_size=8).digest(), "big")


def hash_rows(rows: ExampleStore, seed: int, index: Index | None = None) -> npt.NDArray[np.uint64]:
    hashes = np.empty(len(rows) if index is None else len(index), np.uint64)
    start = 0
    for texts, pairs in rows.scan(["text", "pair"], index):
        keys = [content_key(seed, text, pair) for text, pair in zip(texts, pairs, strict=True)]
        hashes[start : start + len(keys)] = keys
        start += len(keys)
    return hashes


def hash_groups(rows: ExampleStore, seed: int, index: Index | None = None) -> npt.NDArray[np.uint64]:
    """Return a hash of each row's group and a seed; a row without a group is its own, by its content."""
    if not is_grouped(rows):
        return hash_rows(rows, seed, index)
    keys = [
        content_key(seed, text, pair) if group is None else content_key(seed, f"\0{group}", None)
        for columns in rows.scan(["text", "pair", SPLIT_BY], index)
        for text, pair, group in zip(*columns, strict=True)
    ]  # no text has the first character of a group's key
    return np.array(keys, np.uint64)


def is_grouped(rows: ExampleStore) -> bool:
    return rows.by is not None and rows.by.kind == "group"


def count_groups(rows: ExampleStore) -> int:
    return len(np.unique(hash_groups(rows, 0)))


def compute_sort_keys(rows: ExampleStore, seed: int, mode: Mode) -> npt.NDArray[np.uint64]:
    """Return what the rows are ordered by: the hash of their group or content, or their number."""
    return np.arange(len(rows), dtype=np.uint64) if mode == "first" else hash_groups(rows, seed)


def compute_bounds(rows: ExampleStore, mode: Mode, *shares: float) -> list[np.uint64]:
    whole = len(rows) if mode == "first" else 2**64
    return [np.uint64(round(share * whole)) for share in shares]


def split_train_dev_test(rows: ExampleStore, seed: int, mode: Mode) -> dict[str, Index]:
    if is_timed(rows):
        test_share = 1 - TRAIN_SHARE - DEV_SHARE
        return split_by_time(rows, {"train": TRAIN_SHARE, "dev": DEV_SHARE, "test": test_share})
    low, high = compute_bounds(rows, mode, TRAIN_SHARE, TRAIN_SHARE + DEV_SHARE)
    keys = compute_sort_keys(rows, seed, mode)
    return {
        "train": np.flatnonzero(keys < low),
        "dev": np.flatnonzero((keys >= low) & (keys < high)),
        "test": np.flatnonzero(keys >= high),
    }


def split_off_dev(rows: ExampleStore, seed: int, mode: Mode) -> dict[str, Index]:
    if is_timed(rows):
        return split_by_time(rows, {"train": 1 - DEV_SHARE, "dev": DEV_SHARE})
    (low,) = compute_bounds(rows, mode, 1 - DEV_SHARE)
    keys = compute_sort_keys(rows, seed, mode)
    return {"train": np.flatnonzero(keys < low), "dev": np.flatnonzero(keys >= low)}


def choose_smallest(rows: ExampleStore, count: int, seed: int, mode: Mode) -> tuple[Index, Index]:
    """Return the `count` rows with the smallest hashes (or the first or earliest ones), and the rest.

    Groups and rows of the same time stay together, so that there may be some rows more or fewer.
    """
    if is_timed(rows):
        share = count / len(rows)
        early, late = split_by_time(rows, {"train": share, "test": 1 - share}).values()
        return early, late
    keys = compute_sort_keys(rows, seed, mode)
    order = np.argsort(keys, kind="stable")
    if is_grouped(rows):
        count = int(np.sum(keys <= keys[order[count - 1]]))
    return np.sort(order[:count]), np.sort(order[count:])


def sample(split: Split, count: int, seed: int) -> Split:
    """Choose `count` rows by their content hash, with the label shares of the whole split, in order.

    A larger sample contains the smaller ones, and the same rows are chosen every time.
    """
    labels = np.zeros(len(split), np.int32) if split.labels is None else split.labels
    order = np.argsort(split.hashes(seed), kind="stable")
    turn = np.empty(len(split))  # how far down the order a row is among those of its label, from 0 to 1
    for label in np.unique(labels):
        rows = order[labels[order] == label]
        turn[rows] = (np.arange(len(rows)) + 0.5) / len(rows)
    chosen = np.sort(order[np.argsort(turn[order], kind="stable")][:count])
    index = chosen if split.index is None else split.index[chosen]
    how = f"{len(chosen):,} of {len(split):,} ({split.how}), by content hash, seed {seed}"
    part = Split(split.name, split.rows, index, None if split.targets is None else split.targets[chosen], how)
    part.of = len(split)
    return part


def refuse_empty(where: str, parts: dict[str, Index], rows: ExampleStore) -> None:
    for name, index in parts.items():
        if not len(index):
            count, what, advice = len(rows), "row", "more rows"
            if is_grouped(rows):
                count, what, advice = count_groups(rows), "group", "more groups, another --split-seed"
            elif is_timed(rows):
                count, what, advice = count_times(rows), "different time", "rows of more times"
            elif (different := len(np.unique(hash_rows(rows, 0)))) < count:  # copies stay together
                count, what, advice = different, "different text", "rows with other texts"
            few = f"{count} {what}{'s are' if count != 1 else ' is'} too few to split"
            raise UserError(
                f"{where}: {few}, {name} gets none; give {advice}, or a folder with train, dev and test files"
            )
