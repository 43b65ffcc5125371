"""The words of a text, or a pair of texts, and the same text without some of them."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass

# In scripts without spaces between words, each character is a word. Every other character that is not a space
# belongs to a word, too.
WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+(?:['’]\w+)*|[^\w\s]")


@dataclass(frozen=True)
class Word:
    text: str
    side: int
    """0 for the first text, 1 for the second of a pair."""
    start: int
    end: int
    """The range of its characters."""


class TextWords:
    """The words of a text, or of both texts of a pair, in order."""

    def __init__(self, text: str, pair: str | None = None) -> None:
        self.texts = [text] if pair is None else [text, pair]
        self.words = [
            Word(match[0], side, match.start(), match.end())
            for side, one in enumerate(self.texts)
            for match in WORD.finditer(one)
        ]
        self._starts = [[w.start for w in self.words if w.side == side] for side in range(len(self.texts))]
        self._first = [0, len(self._starts[0])]

    def __len__(self) -> int:
        return len(self.words)

    def find(self, side: int, start: int, end: int) -> dict[int, int]:
        """Return which words a range of characters overlaps, and by how many characters."""
        starts, first = self._starts[side], self._first[side]
        overlaps: dict[int, int] = {}
        for position in range(max(0, bisect_right(starts, start) - 1), len(starts)):
            word = self.words[first + position]
            if word.start >= end:
                break
            if (shared := min(end, word.end) - max(start, word.start)) > 0:
                overlaps[first + position] = shared
        return overlaps

    def without(self, removed: Collection[int]) -> tuple[str, str | None]:
        """Return the text, or the pair, without some words and the spaces before them."""
        parts: list[list[str]] = [[] for _ in self.texts]
        ends = [0] * len(self.texts)
        for number, word in enumerate(self.words):
            if number not in removed:
                parts[word.side].append(self.texts[word.side][ends[word.side] : word.end])
            ends[word.side] = word.end
        rest = ["".join(part) + text[end:] for part, text, end in zip(parts, self.texts, ends, strict=True)]
        cut = [one.lstrip() if one != whole else one for one, whole in zip(rest, self.texts, strict=True)]
        return cut[0], cut[1] if len(cut) > 1 else None


def group_neighbors(words: Sequence[Word], most: int) -> list[list[int]]:
    """Divide words into about `most` groups of neighbors in one text; each is one word where possible."""
    size = -(-len(words) // most)
    groups: list[list[int]] = []
    for number, word in enumerate(words):
        if groups and len(groups[-1]) < size and words[groups[-1][-1]].side == word.side:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups
