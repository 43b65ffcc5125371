"""Findings about a task's texts that need no model: what two splits share, and what gives a label away."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, islice

import numpy as np

from heedful.data.splits import Split
from heedful.data.tasks import Task
from heedful.errors import shorten
from heedful.evaluation.give_away_words import find_give_away_words
from heedful.evaluation.near_duplicates import NearDuplicate, find_near_duplicates
from heedful.runs.answers import Note, Table
from heedful.solve.insight.findings import Insight
from heedful.text import Tokenizer
from heedful.text.familiarity import measure_familiarity

MOST_ROWS = 50_000
"""Rows of a split that are looked at, the first ones; that many take seconds."""
SHARED_WARNS = 0.01
"""The share of nearly known rows from which on a score flatters."""
UNFAMILIAR_WARNS = 0.05
LISTED, LETTERS = 10, 80
"""Rows of a table, and letters of each text."""


def examine_data(task: Task, tokenizer: Tokenizer | None = None) -> Insight:
    """Look for near-duplicates across splits, words that give a label away, and texts the encoder lacks.

    `tokenizer` is that of a pretrained encoder; without it the last question is not asked.
    """
    texts = {name: read_rows(split) for name, split in task.splits.items()}
    parts = [
        *compare_splits(texts),
        *examine_words(task, texts["train"]),
        *([] if tokenizer is None else examine_familiarity(texts["train"], tokenizer)),
    ]
    notes = tuple(part for part in parts if isinstance(part, Note))
    return Insight(notes, tuple(part for part in parts if isinstance(part, Table)))


def read_rows(split: Split) -> list[str]:
    """Read the texts of a split, pairs as one text."""
    if split.pairs is None:
        return list(islice(split.texts, MOST_ROWS))
    return [f"{text} {pair}" for text, pair in islice(zip(split.texts, split.pairs, strict=True), MOST_ROWS)]


def compare_splits(texts: dict[str, list[str]]) -> Iterator[Note | Table]:
    rows: list[tuple[float, str, str, str, str]] = []
    for earlier, later in combinations(texts, 2):
        pairs: list[NearDuplicate] = find_near_duplicates(texts[earlier], texts[later])
        share = len(pairs) / max(1, len(texts[later]))
        if not pairs:
            continue
        if share >= SHARED_WARNS:
            yield Note(
                f"{len(pairs):,} of {later}'s {len(texts[later]):,} rows ({share:.1%}) are nearly the same "
                f"as a row of {earlier}: a score on them flatters the model",
                "warning",
            )
        rows += [
            (
                round(pair.similarity, 2),
                later,
                shorten(texts[later][pair.later], LETTERS),
                earlier,
                shorten(texts[earlier][pair.earlier], LETTERS),
            )
            for pair in pairs[:LISTED]
        ]
    if rows:
        columns = ("similarity", "split", "text", "other split", "other text")
        yield Table(
            columns,
            tuple(sorted(rows, key=lambda row: -row[0])[:LISTED]),
            "rows that two splits share, nearly",
        )


def examine_words(task: Task, texts: list[str]) -> Iterator[Table]:
    labels = task.splits["train"].labels
    if labels is None:
        return
    words = find_give_away_words(texts, np.asarray(labels)[: len(texts)])
    if words:
        cells = [
            (
                shorten(word.word, LETTERS),
                task.label_names[word.label],
                f"{word.with_label:,} of {word.texts:,}",
            )
            for word in words[:LISTED]
        ]
        title = "words that give a label away: will new texts have them?"
        yield Table(("word", "label", "rows of train with the word that have the label"), tuple(cells), title)


def examine_familiarity(texts: list[str], tokenizer: Tokenizer) -> Iterator[Note]:
    unfamiliar = measure_familiarity(texts, tokenizer).unfamiliar
    if len(texts) and unfamiliar.mean() >= UNFAMILIAR_WARNS:
        example = shorten(texts[int(unfamiliar.argmax())], LETTERS)
        yield Note(
            f"the encoder probably does not know the language or notation of {unfamiliar.mean():.0%} of "
            f'train\'s texts, such as "{example}"; --model names one that does',
            "warning",
        )
