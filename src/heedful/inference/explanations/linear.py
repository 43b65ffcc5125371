"""What each word contributes to the score of a linear model of words, exactly."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from heedful.inference.explanations.target import Target
from heedful.inference.explanations.words import TextWords
from heedful.inference.predictor import Floats
from heedful.linear.model import TfidfModel
from heedful.linear.tfidf import LONGEST_RUN, SHORTEST_RUN, WORD, Block

Spans = list[tuple[int, int]]
"""Ranges of characters that one feature is made of: two for a pair of words."""


def contribute(model: TfidfModel, words: TextWords, target: Target) -> tuple[Floats, float]:
    """Return the contribution of each word, and the score of a text without any known term.

    Their sum is the score. What a term contributes is divided equally among the places where it occurs,
    and within such a place among its words by the number of their characters.
    """
    weight, bias = model.linear.weight, model.linear.bias
    direction, start = weight[target.label].astype(np.float64), float(bias[target.label])
    if target.against is not None:
        direction, start = direction - weight[target.against], start - float(bias[target.against])
    contributions, column = np.zeros(len(words)), 0
    sides = [model.features.blocks, *([model.features.pair_blocks] if model.reads_pairs else [])]
    for side, blocks in enumerate(sides):
        text = words.texts[side] if side < len(words.texts) else ""
        for block in blocks:
            row = block.weigh_texts([text])
            effects = row.data * direction[column + row.indices]
            by_term = dict(zip(row.indices.tolist(), effects.tolist(), strict=True))
            if side < len(words.texts):
                spread_terms(contributions, words, side, block, by_term)
            column += len(block.terms)
    return contributions, start


def spread_terms(
    contributions: Floats, words: TextWords, side: int, block: Block, effects: dict[int, float]
) -> None:
    """Add the effect of each term of a block to the words that it is made of."""
    places: defaultdict[int, list[Spans]] = defaultdict(list)
    for term, spans in find_terms(words.texts[side], block):
        if term in effects:
            places[term].append(spans)
    for term, occurrences in places.items():
        for spans in occurrences:
            for start, end in spans:
                shares = words.find(side, start, end)
                effect = effects[term] / len(occurrences) / len(spans)
                for word, characters in shares.items():
                    contributions[word] += effect * characters / sum(shares.values())


def find_terms(text: str, block: Block) -> Iterator[tuple[int, Spans]]:
    """Yield the number of each term in a text, as `Block.weigh_texts` counts them, and where it is."""
    # Lower case may have more characters than the text.
    origin = [number for number, character in enumerate(text) for _ in character.lower()]
    origin.append(len(text))
    lower = text.lower()
    if block.analyzer == "words":
        matches = [(m[0], origin[m.start()], origin[m.end() - 1] + 1) for m in WORD.finditer(lower)]
        for i, (word, start, end) in enumerate(matches):
            if word in block.index:
                yield block.index[word], [(start, end)]
            if i + 1 < len(matches):
                following, after, last = matches[i + 1]
                if (both := f"{word} {following}") in block.index:
                    yield block.index[both], [(start, end), (after, last)]
        return
    for match in re.finditer(r"\S+", lower):
        padded, first = f" {match[0]} ", match.start()
        for length in range(SHORTEST_RUN, min(LONGEST_RUN, len(padded)) + 1):
            for i in range(len(padded) - length + 1):
                if (run := padded[i : i + length]) in block.index:
                    # The first and the last character are spaces, which the text may not have.
                    start, end = max(i - 1, 0), min(i - 1 + length, len(match[0]))
                    yield block.index[run], [(origin[first + start], origin[first + end - 1] + 1)]
