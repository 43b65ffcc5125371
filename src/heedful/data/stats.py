"""Statistics of a task's data: sizes, labels, lengths, duplicates, examples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from heedful.data.answers import describe_answers
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
    """Tokens of a split: the length of each row (with special tokens), and the number of tokens in all."""

    lengths: Ints
    tokens: int
    unique: int


def count_tokens(split: Split, tokenizer: Tokenizer | None) -> TokenCounts:
    if tokenizer is None:
        return count_words(split)
    tokens = tokenize(split, tokenizer)
    counts = tokens.counts(tokenizer.vocab_size)
    counts[list(tokenizer.special_ids)] = 0
    return TokenCounts(tokens.lengths, int(counts.sum()), int(np.count_nonzero(counts)))


def count_words(split: Split) -> TokenCounts:
    lengths, seen = np.empty(len(split), np.int64), set()
    for row, example in enumerate(split):
        words = example.text.split() + (example.pair or "").split()
        seen.update(words)
        lengths[row] = len(words)
    return TokenCounts(lengths, int(lengths.sum()), len(seen))


def describe_task(
    task: Task, counted: dict[str, TokenCounts], max_len: int, batch_size: int | None = None
) -> dict[str, Any]:
    """Return the statistics of a task; `counted` holds the `count_tokens` of each split.

    With `batch_size` they include the share of padding in train's batches for each strategy.
    """
    keys = {name: split.hashes(task.seed) for name, split in task.splits.items()}
    facts: dict[str, Any] = {
        "task": task.name,
        "kind": task.kind,
        "kind_reason": task.answers.reason or "as it was named",
        "labels": task.label_names,
        "columns": task.columns,
        "split_notes": list(task.split_notes),
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
    if split.targets is not None:
        facts |= describe_answers(task.kind, split.targets, tuple(task.label_names))
    if split.labels is not None:
        facts["contradictions"] = count_contradictions(keys, split.labels)
    if split.answers is not None:
        answers = Counter(split.answers)
        facts["answers"] = len(answers)
        facts["common_answers"] = dict(answers.most_common(COMMON_ANSWERS))
    return facts


def count_contradictions(keys: Keys, labels: npt.NDArray[np.int32]) -> int:
    order = np.lexsort((labels, keys))
    keys, labels = keys[order], labels[order]
    differs = (keys[1:] == keys[:-1]) & (labels[1:] != labels[:-1])
    return len(np.unique(keys[1:][differs]))


def count_shared_rows(task: Task, keys: dict[str, Keys]) -> dict[str, dict[str, int]]:
    """Count the rows that two splits share, and for pairs also the first and the second texts."""
    shared: dict[str, dict[str, int]] = {}
    columns: dict[str, dict[str, Keys]] = {"rows": {}}
    for name, split in task.splits.items():
        columns["rows"][name] = np.unique(keys[name])
        if split.pairs is not None:
            columns.setdefault("first texts", {})[name] = hash_texts(split.texts)
            columns.setdefault("second texts", {})[name] = hash_texts(split.pairs)
    for one, other in combinations(task.splits, 2):
        shared[f"{one} and {other}"] = {
            what: len(np.intersect1d(hashes[one], hashes[other], assume_unique=True))
            for what, hashes in columns.items()
        }
    return shared


def hash_texts(texts: Iterable[str]) -> Keys:
    return np.unique(np.fromiter((content_key(0, text, None) for text in texts), np.uint64))


def choose_examples(task: Task, keys: Keys) -> dict[str, list[str]]:
    """Choose three rows of train per label, those with the smallest hashes, each shortened to one line.

    Of a task with numbers, they are rows with a low, a middle and a high number.
    """
    train = task.splits["train"]
    order = np.argsort(keys, kind="stable")
    if task.kind == "labels" and train.targets is not None:
        return {
            name: [format_example(train, int(row)) for row in chosen]
            for number, name in enumerate(task.label_names)
            for chosen in [order[train.targets[order, number] == 1][:EXAMPLES_PER_LABEL]]
        }
    if task.kind == "number" and train.targets is not None:
        ranked = np.argsort(train.targets, kind="stable")
        chosen = ranked[np.linspace(0, len(ranked) - 1, min(EXAMPLES_PER_LABEL, len(ranked))).astype(int)]
        return {f"{train.targets[row]:g}": [format_example(train, int(row))] for row in chosen}
    if train.labels is None:
        return {"": [format_example(train, int(row)) for row in order[:EXAMPLES_PER_LABEL]]}
    examples = {}
    for number, name in enumerate(task.label_names):
        chosen = order[train.labels[order] == number][:EXAMPLES_PER_LABEL]
        examples[name] = [format_example(train, int(row)) for row in chosen]
    return examples


def format_example(split: Split, row: int) -> str:
    example = split[row]
    parts = [part for part in (example.text, example.pair, example.answer) if part is not None]
    shortened = [shorten(" ".join(part.split()), EXAMPLE_CHARS // len(parts)) for part in parts]
    return (" -> " if example.answer is not None else " | ").join(shortened)
