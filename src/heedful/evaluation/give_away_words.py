"""Words that give a label away: almost all texts that have the word have the same label.

Such a word may be what the label means, or an accident of how the data was made (a signature, a source, a
template), which new texts will not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

# In scripts without spaces between words, each character is a word.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|[^\w\s]")
FEWEST = 10
"""Texts without which a word is not looked at."""
PURE = 0.95
"""The share of texts with the same label from which on a word gives it away."""
ALPHA = 0.01
PER_LABEL = 5


@dataclass(frozen=True)
class GiveAwayWord:
    word: str
    label: int
    texts: int
    """Number of texts that have the word."""
    with_label: int
    """Number of these that have the label."""
    base: float
    """The share of all texts that have the label."""
    p: float
    """How probable such a share is by chance, corrected for the number of words and labels."""


def find_give_away_words(
    texts: Iterable[str],
    labels: npt.ArrayLike,
    *,
    fewest: int = FEWEST,
    pure: float = PURE,
    per_label: int = PER_LABEL,
) -> list[GiveAwayWord]:
    """Find words whose texts nearly all have one label, beyond chance; at most `per_label` for each label.

    A word counts once per text, without case. The test is an exact binomial one. Words are ordered by the
    number of texts whose label they give away beyond the share that the label has anyway.
    """
    truth = np.asarray(labels, np.int64)
    words, counts = count_presence(texts, truth)
    if not len(words):
        return []
    base = np.bincount(truth, minlength=counts.shape[1]) / len(truth)
    total, label = counts.sum(1), counts.argmax(1)
    hits = counts.max(1)
    chance = base[label]
    p = np.minimum(1.0, special.bdtrc(hits - 1, total, chance) * counts.size)
    chosen = np.flatnonzero((total >= fewest) & (hits >= pure * total) & (p < ALPHA) & (chance < 1))
    order = chosen[np.lexsort((p[chosen], -(hits - chance * total)[chosen]))]
    found: list[GiveAwayWord] = []
    room = np.full(counts.shape[1], per_label)
    for i in order.tolist():
        if room[label[i]] > 0:
            room[label[i]] -= 1
            numbers = int(label[i]), int(total[i]), int(hits[i]), float(chance[i]), float(p[i])
            found.append(GiveAwayWord(words[i], *numbers))
    return found


def count_presence(
    texts: Iterable[str], labels: npt.NDArray[np.int64]
) -> tuple[Sequence[str], npt.NDArray[np.int64]]:
    """Count for each word the texts of each label that have it, `[words, labels]`."""
    columns: dict[str, int] = {}
    rows: list[int] = []
    labels_of_words: list[int] = []
    for text, label in zip(texts, labels.tolist(), strict=True):
        present = set(WORD.findall(text.lower()))
        rows.extend(columns.setdefault(word, len(columns)) for word in present)
        labels_of_words.extend([label] * len(present))
    n_labels = int(labels.max(initial=0)) + 1
    cells = np.array(rows, np.int64) * n_labels + np.array(labels_of_words, np.int64)
    return list(columns), np.bincount(cells, minlength=len(columns) * n_labels).reshape(-1, n_labels)
