"""Tf-idf of words and of characters: what scikit-learn's TfidfVectorizer computes, without scikit-learn.

A row of features is made of blocks of length 1 each: the words and pairs of words of the text, the runs of 2
to 5 characters within its words, and the same two of the second text where texts come in pairs. Languages
without spaces are covered by the characters.
"""

from __future__ import annotations

import re
from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix, hstack

Analyzer = Literal["words", "characters"]
ANALYZERS: tuple[Analyzer, ...] = ("words", "characters")
Floats = npt.NDArray[np.float64]

# In scripts without spaces between words, each character is a word.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+")
SHORTEST_RUN, LONGEST_RUN = 2, 5
MOST_TERMS = 100_000
"""Largest number of terms of one block: the ones that most texts have."""
MOST_WEIGHTS = 1_000_000
"""Largest number of terms of one block times classes, so that a model with many labels stays small."""
MANY_ROWS = 1_000
"""From this many rows on, a term that only one of them has is left out."""
CHUNK = 4_096
"""Texts whose terms are counted together, so that memory does not grow with their number."""


@dataclass(frozen=True)
class Block:
    """The tf-idf features of one text of each row: sublinear counts, and rows of length 1."""

    analyzer: Analyzer
    terms: tuple[str, ...]
    idf: Floats

    @cached_property
    def index(self) -> dict[str, int]:
        return {term: column for column, term in enumerate(self.terms)}

    def weigh_texts(self, texts: Iterable[str]) -> csr_matrix:
        counts, runs, _ = count_terms(texts, self.analyzer, self.index)
        return weigh(counts if runs is None else counts @ runs, self.idf)


@dataclass(frozen=True)
class TfidfFeatures:
    """The blocks of the first text, and those of the second text where texts come in pairs."""

    blocks: tuple[Block, ...]
    pair_blocks: tuple[Block, ...] = ()

    def transform(self, texts: Sequence[str], pairs: Sequence[str] | None = None) -> csr_matrix:
        """Return the features `[n, n_features]`; terms that were not seen while fitting are dropped."""
        parts = [block.weigh_texts(texts) for block in self.blocks]
        if self.pair_blocks:
            second = [""] * len(texts) if pairs is None else pairs
            parts += [block.weigh_texts(second) for block in self.pair_blocks]
        return hstack(parts, format="csr") if parts else csr_matrix((len(texts), 0))


def fit_tfidf(
    texts: Sequence[str], pairs: Sequence[str] | None, n_classes: int
) -> tuple[TfidfFeatures, csr_matrix]:
    """Choose the terms of texts, and return them with the features of the same texts."""
    sides = [texts] if pairs is None else [texts, pairs]
    fitted = [[fit_block(side, analyzer, n_classes) for analyzer in ANALYZERS] for side in sides]
    features = hstack([matrix for side in fitted for _, matrix in side], format="csr")
    return TfidfFeatures(*(tuple(block for block, _ in side) for side in fitted)), features


def fit_block(texts: Sequence[str], analyzer: Analyzer, n_classes: int) -> tuple[Block, csr_matrix]:
    """Choose the terms that most texts have, and return them with the features of the same texts."""
    counts, runs, terms = count_terms(texts, analyzer)
    n, documents = counts.shape[0], np.zeros(len(terms), np.int64)
    for start in range(0, n, CHUNK):
        part = counts[start : start + CHUNK]
        part = part if runs is None else part @ runs
        documents += np.bincount(part.indices, minlength=len(terms))
    ranked = np.argsort(-documents, kind="stable")[: min(MOST_TERMS, MOST_WEIGHTS // n_classes)]
    kept = ranked[documents[ranked] > (n >= MANY_ROWS)]
    chosen = np.array(sorted(kept.tolist(), key=terms.__getitem__), np.int64)
    idf = np.log((1 + n) / (1 + documents[chosen])) + 1
    block = Block(analyzer, tuple(terms[column] for column in chosen), idf)
    return block, weigh(counts[:, chosen] if runs is None else counts @ runs[:, chosen], idf)


def count_terms(
    texts: Iterable[str], analyzer: Analyzer, index: Mapping[str, int] | None = None
) -> tuple[csr_matrix, csr_matrix | None, list[str]]:
    """Count the terms of each text: those in `index`, or all of them.

    Returns the counts, what they have to be multiplied by if that is not None, and the terms. The runs of
    characters are found once per word, not each time that it occurs, and multiplied by the words of texts.
    """
    if analyzer == "words":
        counts, terms = count_items(map(split_words, texts), index)
        return counts, None, terms
    words, distinct = count_items(text.lower().split() for text in texts)
    runs, terms = count_items(map(split_runs, distinct), index)
    return words, runs, terms


def count_items(
    rows: Iterable[Sequence[str]], index: Mapping[str, int] | None = None
) -> tuple[csr_matrix, list[str]]:
    """Return a matrix that counts the items of each row, and the items that its columns stand for."""
    columns, ends = array("q"), array("q", [0])
    if index is None:
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__  # the next item gets the next number
        index = numbers
        for row in rows:
            columns.extend(map(numbers.__getitem__, row))
            ends.append(len(columns))
    else:
        for row in rows:
            columns.extend([index[item] for item in row if item in index])
            ends.append(len(columns))
    ones, shape = np.ones(len(columns)), (len(ends) - 1, len(index))
    counts = csr_matrix((ones, np.array(columns, np.int64), np.array(ends, np.int64)), shape=shape)
    counts.sum_duplicates()
    return counts, list(index)


def split_words(text: str) -> list[str]:
    """Return the words of a text, and the pairs of words that follow each other."""
    words = WORD.findall(text.lower())
    return words + [f"{first} {second}" for first, second in pairwise(words)]


def split_runs(word: str) -> list[str]:
    """Return the runs of characters of a word, whose beginning and end are marked by a space."""
    word = f" {word} "
    lengths = range(SHORTEST_RUN, min(LONGEST_RUN, len(word)) + 1)
    return [word[start : start + n] for n in lengths for start in range(len(word) - n + 1)]


def weigh(counts: csr_matrix, idf: Floats) -> csr_matrix:
    """Return (1 + log count) * idf, each row divided by its length."""
    counts = counts.tocsr()
    logs = 1 + np.log(np.arange(1, counts.data.max(initial=1) + 1))
    values = logs[counts.data.astype(np.int64) - 1] * idf[counts.indices]
    squares = csr_matrix((values**2, counts.indices, counts.indptr), shape=counts.shape)
    lengths = np.sqrt(squares @ np.ones(len(idf)))
    values /= np.repeat(lengths, np.diff(counts.indptr))
    return csr_matrix((values, counts.indices, counts.indptr), shape=counts.shape)
