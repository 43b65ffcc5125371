"""Checks of a task's splits: what they share, and which labels they lack."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import combinations, repeat
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from heedful.data.splits import content_key
from heedful.data.tasks import Task
from heedful.evaluation.checks.findings import percent, quote
from heedful.runs.schemas import Check

SHARED_WARNS = 0.005
"""Half a point of accuracy at most: less is far below what evaluation sets of usual size can tell."""
SHARED_FAILS = 0.1
"""This many known rows can move a score by more than most methods differ: it is a score of memory."""
PARTS_WARN = 0.1
"""Part of a row gives no answer away, so it takes as many of these as of whole rows to make a score void."""
REPEATS = 0.1
"""A column with fewer different texts than this per row is a form (a fixed question), shared by intent."""
LISTED = 3
WORDS = re.compile(r"\w+")

Keys = npt.NDArray[np.uint64]


class Overlap(NamedTuple):
    """What two splits share: the share of the later one's rows, and which these are."""

    share: float
    earlier: str
    later: str
    both: npt.NDArray[np.bool_]


def normalize_text(text: str) -> str:
    """Remove case, white space and punctuation; a text of nothing else keeps its marks."""
    text = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(WORDS.findall(text) or text.split())


def hash_rows(texts: Iterable[str], pairs: Iterable[str] | None = None, count: int = -1) -> Keys:
    """Hash each row, its texts normalized."""
    texts = map(normalize_text, texts)
    rows = zip(texts, repeat(None)) if pairs is None else zip(texts, map(normalize_text, pairs), strict=True)
    return np.fromiter((content_key(0, text, pair) for text, pair in rows), np.uint64, count)


def find_overlaps(keys: Mapping[str, Keys]) -> list[Overlap]:
    """Find the rows of each split that an earlier one has too, the largest share first."""
    overlaps = []
    for earlier, later in combinations(keys, 2):
        both = np.isin(keys[later], keys[earlier])
        if both.any():
            overlaps.append(Overlap(float(both.mean()), earlier, later, both))
    return sorted(overlaps, key=lambda overlap: -overlap.share)


def shared_texts(task: Task) -> Check:
    """Is a row (a text, or a whole pair) of one split in another too, but for case, spaces or punctuation?"""
    name = "shared_texts"
    if len(task.splits) < 2:
        return Check(name, "skipped", "There is only one split.")
    keys = {split: hash_rows(part.texts, part.pairs, len(part)) for split, part in task.splits.items()}
    overlaps = find_overlaps(keys)
    if not overlaps:
        return Check(name, "passed", "No text is in two splits.", 0.0, SHARED_WARNS)
    shares = []
    for share, earlier, later, both in overlaps:
        exact = np.isin(task.splits[later].hashes(), task.splits[earlier].hashes()).sum()
        shares.append(
            f"{both.sum():,} of {later}'s {len(both):,} rows also in {earlier} ({percent(share)}, {exact:,} "
            f"of them letter for letter)"
        )
    share, earlier, later, both = overlaps[0]
    example = task.splits[later].texts[int(both.argmax())]
    listed = f"{', '.join(shares)}, such as {quote(example, 60)}"
    if share < SHARED_WARNS:
        return Check(name, "passed", f"Few texts are in two splits: {listed}.", share, SHARED_WARNS)
    sentence = (
        f"Splits share texts: {listed}; a score on texts that were seen before flatters the model; take them "
        f"out of {earlier}."
    )
    return Check(name, "failed" if share >= SHARED_FAILS else "warning", sentence, share, SHARED_WARNS)


def shared_parts(task: Task) -> Check:
    """Of pairs: do two splits share a text of one column, such as a passage, under different questions?"""
    name = "shared_parts"
    if len(task.splits) < 2 or any(part.pairs is None for part in task.splits.values()):
        return Check(name, "skipped", "The task has no pairs of texts in two splits.")
    overlaps: list[tuple[float, str]] = []
    for which in ("first", "second"):
        columns = {s: part.texts if which == "first" else part.pairs for s, part in task.splits.items()}
        keys = {s: hash_rows(texts, count=len(texts)) for s, texts in columns.items() if texts is not None}
        if min(len(np.unique(k)) / len(k) for k in keys.values()) < REPEATS:
            continue
        for share, earlier, later, both in find_overlaps(keys):
            distinct = len(np.unique(keys[later][both]))
            rows = f"in {both.sum():,} of {len(both):,} rows, {percent(share)}"
            overlaps.append((share, f"of {later}'s {which} texts {distinct:,} also in {earlier} ({rows})"))
    if not overlaps:
        return Check(name, "passed", "No text of a pair is in two splits.", 0.0, PARTS_WARN)
    overlaps.sort(reverse=True)
    share, listed = overlaps[0][0], ", ".join(words for _, words in overlaps[:LISTED])
    if share < PARTS_WARN:
        return Check(name, "passed", f"Few texts of pairs are in two splits: {listed}.", share, PARTS_WARN)
    sentence = (
        f"Pairs of two splits share one of their texts: {listed}; whole rows are counted apart, but the "
        f"score says less of texts that are new altogether; compare it with the score on the other rows."
    )
    return Check(name, "warning", sentence, share, PARTS_WARN)


def labels_everywhere(task: Task) -> Check:
    """Has every split every label? Says also when one label has nearly all rows of train."""
    name = "labels_everywhere"
    counts = {
        split: part.targets.sum(0, dtype=np.int64)
        if task.kind == "labels"
        else np.bincount(part.targets, minlength=len(task.label_names))
        for split, part in task.splits.items()
        if part.targets is not None and task.label_names and len(part)
    }
    if "train" not in counts or not task.label_names:
        return Check(name, "skipped", "The task has no labels.")
    lacking = {
        split: [quote(task.label_names[i]) for i in np.flatnonzero(each == 0)]
        for split, each in counts.items()
        if not each.all()
    }
    missing = float(sum(map(len, lacking.values())))
    listed = ", ".join(f"{split} lacks {list_some(labels)}" for split, labels in lacking.items())
    if "train" in lacking:
        sentence = (
            f"Labels are missing: {listed}; what train never shows cannot be learned; give it rows of every "
            f"label, or choose another split."
        )
        return Check(name, "failed", sentence, missing, 0.0)
    if lacking:
        sentence = (
            f"Labels are missing: {listed}; a score says nothing about a label that does not occur; give "
            f"rows of every label."
        )
        return Check(name, "warning", sentence, missing, 0.0)
    share = float(counts["train"].max() / len(task.splits["train"]))
    if task.kind == "labels":
        most = quote(task.label_names[int(counts["train"].argmax())])
        sentence = f"Every split has every label; the most frequent, {most}, is on {percent(share)} of train."
        return Check(name, "passed", sentence, share)
    sentence = f"Every split has every label, and the most frequent is {percent(share)} of train."
    return Check(name, "passed", sentence, share)


def list_some(labels: list[str]) -> str:
    """List a few labels, and how many more there are."""
    more = f" and {len(labels) - LISTED:,} more" if len(labels) > LISTED else ""
    return ", ".join(labels[:LISTED]) + more
