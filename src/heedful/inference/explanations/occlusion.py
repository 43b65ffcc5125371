"""What each word is worth: how much the score falls when it is removed. Works for every model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np

from heedful.inference.explanations.words import TextWords, group_neighbors
from heedful.inference.predictor import Floats

MOST_GROUPS = 128
"""Longer texts lose several neighboring words at a time, each of which gets the same share."""

Score = Callable[[Sequence[Collection[int]]], Floats]
"""Returns the score of the text without each of some sets of words."""


def occlude(words: TextWords, score: Score) -> tuple[Floats, int]:
    """Return the fall of the score without each word, and how many words were removed at a time."""
    groups = group_neighbors(words.words, MOST_GROUPS)
    scores = score([(), *groups])
    contributions = np.zeros(len(words))
    for group, value in zip(groups, scores[1:], strict=True):
        contributions[group] = (scores[0] - value) / len(group)
    return contributions, max(map(len, groups), default=1)
