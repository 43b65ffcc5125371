"""Byte-pair encoding under each of the usual conventions: what merges are compared with."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, product

Pair = tuple[str, str]
Words = Counter[tuple[str, ...]]
MARKS = ("</w>", "<w>", "Ġ", "▁", "##", "@@", "_")


@dataclass(frozen=True)
class Style:
    """How a text is cut before pairs are counted."""

    name: str
    words: bool = True
    """Whether pairs reach from one word into the next: False if the text is one row."""
    before: str = ""
    """What is put before a word (a space, or a sign for it), if it is not the first."""
    first_too: bool = False
    after: tuple[str, ...] = ()
    """What is put after a word as a symbol of its own."""
    joined: str = ""
    """What is put after the last character of a word, in one symbol with it."""
    overlapping: bool = True
    """Whether `aaa` has the pair a + a twice."""


def list_styles() -> tuple[Style, ...]:
    """Return all styles, the usual ones first."""
    kinds = [
        Style("words that end in </w>", after=("</w>",)),
        Style("words that end in </w>", joined="</w>"),
        Style("words"),
        Style("words with their space", before=" "),
        Style("words with Ġ", before="Ġ"),
        Style("words with Ġ", before="Ġ", first_too=True),
        Style("words with ▁", before="▁", first_too=True),
        Style("words that end in _", after=("_",)),
        Style("one row of characters or bytes", words=False),
    ]
    return tuple(
        Style(k.name, k.words, k.before, k.first_too, k.after, k.joined, overlapping)
        for overlapping, k in product((True, False), kinds)
    )


STYLES = list_styles()


def cut(texts: Sequence[str], style: Style) -> Words:
    """Return rows of symbols with their counts."""
    words: Words = Counter()
    if not style.words:
        for row in texts if len(texts) > 1 else texts[:1]:
            words[tuple(row)] += 1
        return words
    for text in texts:
        for i, word in enumerate(text.split()):
            words[cut_word(word, style, i == 0)] += 1
    return words


def cut_word(word: str, style: Style, first: bool) -> tuple[str, ...]:
    symbols = list(word)
    if style.joined:
        symbols[-1] += style.joined
    before = [style.before] if style.before and (style.first_too or not first) else []
    return (*before, *symbols, *style.after)


def count_pairs(words: Words, style: Style) -> dict[Pair, int]:
    """Return how often each pair of neighbors occurs."""
    counts: Counter[Pair] = Counter()
    for symbols, number in words.items():
        skip = False
        for i, pair in enumerate(pairwise(symbols)):
            repeated = not style.overlapping and i > 0 and symbols[i - 1] == pair[0] == pair[1]
            skip = repeated and not skip
            if not skip:
                counts[pair] += number
    return dict(counts)


def merge_all(words: Words, pair: Pair) -> Words:
    """Return the rows with a pair merged everywhere, from left to right."""
    merged: Words = Counter()
    for symbols, number in words.items():
        merged[tuple(merge_row(list(symbols), pair))] += number
    return merged


def merge_row(symbols: list[str], pair: Pair) -> list[str]:
    row: list[str] = []
    for symbol in symbols:
        if row and (row[-1], symbol) == pair and row[-1:] != ["\0"]:
            row[-1] = "\0" + row[-1] + symbol
        else:
            row.append(symbol)
    return [symbol.removeprefix("\0") for symbol in row]


def find_style(texts: Sequence[str], merges: Sequence[Pair]) -> tuple[Style | None, int, dict[Pair, int]]:
    """Return the style under which every merge is a most frequent pair.

    Without one: None, the first step that is wrong under the style that fits longest, and the counts then.
    """
    best: tuple[int, dict[Pair, int]] = (-1, {})
    for style in STYLES:
        for rows in (texts, ["\n".join(texts)], [" ".join(texts)]):
            words = cut(rows, style)
            step = 0
            counts: dict[Pair, int] = {}
            for pair in merges:
                counts = count_pairs(words, style)
                if not counts or counts.get(pair, 0) < max(counts.values()):
                    break
                words = merge_all(words, pair)
                step += 1
            if step == len(merges):
                return style, step, counts
            if step > best[0] or (step == best[0] and merges[step] in counts and merges[step] not in best[1]):
                best = (step, counts)
    return None, *best


def apply_merges(text: str, style: Style, merges: Sequence[Pair]) -> list[str]:
    """Return the pieces of a text: in each row the pair that was learned first is merged, again and again."""
    ranks = {pair: i for i, pair in reversed(list(enumerate(merges)))}
    pieces: list[str] = []
    rows = [cut_word(w, style, i == 0) for i, w in enumerate(text.split())] if style.words else [tuple(text)]
    for row in rows:
        symbols = list(row)
        while True:
            pairs = [p for p in pairwise(symbols) if p in ranks]
            if not pairs:
                break
            symbols = merge_row(symbols, min(pairs, key=lambda pair: ranks[pair]))
        pieces += symbols
    return pieces


def strip_marks(piece: str) -> str:
    """Return a piece without signs for the borders of words."""
    for mark in MARKS:
        piece = piece.replace(mark, "")
    return piece.strip(" ")
