"""What a task's data is like: sizes, labels, lengths, duplicates, examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from heedful.data.batches import measure_padding
from heedful.data.splits import Split, content_key
from heedful.data.tasks import Task
from heedful.data.tokens import tokenize
from heedful.errors import shorten

if TYPE_CHECKING:
    from heedful.text import Tokenizer

PERCENTILES = (50, 90, 95, 99)
EXAMPLES_PER_LABEL = 3
EXAMPLE_CHARS = 120
COMMON_ANSWERS = 5

Ints = npt.NDArray[np.int64]
Keys = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class TokenCounts:
    """A split in tokens: the length of each row (special tokens included), and how much text there is."""

    lengths: Ints
    tokens: int
    unique: int


def count_tokens(split: Split, tokenizer: Tokenizer | None) -> TokenCounts:
    """Count a split's tokens; without a tokenizer, words between white space."""
    if tokenizer is None:
        return count_words(split)
    found = tokenize(split, tokenizer)
    counts = found.counts(tokenizer.vocab_size)
    counts[list(tokenizer.special_ids)] = 0
    return TokenCounts(found.lengths, int(counts.sum()), int(np.count_nonzero(counts)))


def count_words(split: Split) -> TokenCounts:
    """Count a split's words between white space."""
    lengths, seen = np.empty(len(split), np.int64), set()
    for place, example in enumerate(split):
        words = example.text.split() + (example.pair or "").split()
        seen.update(words)
        lengths[place] = len(words)
    return TokenCounts(lengths, int(lengths.sum()), len(seen))


def describe_task(
    task: Task, counted: dict[str, TokenCounts], max_len: int, batch_size: int | None = None
) -> dict[str, Any]:
    """Gather the facts about a task; `counted` holds each split's `count_tokens`.

    With `batch_size`, also the share of padding in train's batches under each strategy.
    """
    keys = {name: split.hashes(task.seed) for name, split in task.splits.items()}
    facts: dict[str, Any] = {
        "task": task.name,
        "kind": task.kind,
        "labels": task.label_names,
        "columns": task.columns,
        "fingerprint": task.fingerprint,
        "max_len": max_len,
        "splits": {
            name: describe_split(task, split, keys[name], counted[name], max_len)
            for name, split in task.splits.items()
        },
        "shared": count_shared_rows(task, keys),
        "examples": choose_examples(task, keys["train"]),
    }
    if batch_size is not None:
        cut = np.minimum(counted["train"].lengths, max_len)
        facts["padding_waste"] = measure_padding(cut, batch_size=batch_size, seed=task.seed)
    return facts


def describe_split(
    task: Task, split: Split, keys: Keys, counted: TokenCounts, max_len: int
) -> dict[str, Any]:
    """Gather the facts about one split."""
    facts: dict[str, Any] = {
        "rows": len(split),
        "how": split.how,
        "tokens": counted.tokens,
        "unique_tokens": counted.unique,
        "lengths": {
            "min": int(counted.lengths.min()),
            "mean": round(float(counted.lengths.mean()), 1),
            **{f"p{p}": int(np.percentile(counted.lengths, p, method="lower")) for p in PERCENTILES},
            "max": int(counted.lengths.max()),
        },
        "truncated": float(np.mean(counted.lengths > max_len)),
        "duplicates": len(keys) - len(np.unique(keys)),
    }
    if split.labels is not None:
        counts = np.bincount(split.labels, minlength=len(task.label_names))
        facts["label_counts"] = dict(zip(task.label_names, counts.tolist(), strict=True))
        facts["contradictions"] = count_contradictions(keys, split.labels)
    if split.answers is not None:
        answers = Counter(split.answers)
        facts["answers"] = len(answers)
        facts["common_answers"] = dict(answers.most_common(COMMON_ANSWERS))
    return facts


def count_contradictions(keys: Keys, labels: npt.NDArray[np.int32]) -> int:
    """Count the texts that occur with different labels."""
    order = np.lexsort((labels, keys))
    keys, labels = keys[order], labels[order]
    differs = (keys[1:] == keys[:-1]) & (labels[1:] != labels[:-1])
    return len(np.unique(keys[1:][differs]))


def count_shared_rows(task: Task, keys: dict[str, Keys]) -> dict[str, dict[str, int]]:
    """Count what two splits have in common: whole rows, and in pairs also each text alone."""
    found: dict[str, dict[str, int]] = {}
    columns: dict[str, dict[str, Keys]] = {"rows": {}}
    for name, split in task.splits.items():
        columns["rows"][name] = np.unique(keys[name])
        if split.pairs is not None:
            columns.setdefault("first texts", {})[name] = hash_texts(split.texts)
            columns.setdefault("second texts", {})[name] = hash_texts(split.pairs)
    for one, other in combinations(task.splits, 2):
        found[f"{one} and {other}"] = {
            what: len(np.intersect1d(found_in[one], found_in[other], assume_unique=True))
            for what, found_in in columns.items()
        }
    return found


def hash_texts(texts: Iterable[str]) -> Keys:
    """Hash each text, each once."""
    return np.unique(np.fromiter((content_key(0, text, None) for text in texts), np.uint64))


def choose_examples(task: Task, keys: Keys) -> dict[str, list[str]]:
    """Choose three of train a label, those with the smallest hashes, shortened for one line each."""
    train = task.splits["train"]
    order = np.argsort(keys, kind="stable")
    if train.labels is None:
        return {"": [format_example(train, int(place)) for place in order[:EXAMPLES_PER_LABEL]]}
    found = {}
    for number, name in enumerate(task.label_names):
        chosen = order[train.labels[order] == number][:EXAMPLES_PER_LABEL]
        found[name] = [format_example(train, int(place)) for place in chosen]
    return found


def format_example(split: Split, place: int) -> str:
    """Write one example in one line."""
    example = split[place]
    parts = [part for part in (example.text, example.pair, example.answer) if part is not None]
    marks = [shorten(" ".join(part.split()), EXAMPLE_CHARS // len(parts)) for part in parts]
    return (" -> " if example.answer is not None else " | ").join(marks)
