"""Notes in guest books: text without labels, in which words of one kind keep each other's company.

Whoever writes into a guest book is of one mind: all judgements of a note are equally good or equally bad. So
a model that fills in hidden words can learn what the words of the reviews mean, and what denials make of
them, before it has seen a single star.
"""

from __future__ import annotations

from collections.abc import Iterator

from heedful.data.world.draws import Draws, Source
from heedful.data.world.reviews import EVERYWHERE, PLACES, SIMPLE, STRONGER, WEAKER, WORDS, judge
from heedful.data.world.text import capital

VALUES = (2, 1, -1, -2)
FEWEST, MOST = 3, 6
"""Judgements in a note."""


class Notes:
    """The guest books of a world, a note by its number."""

    def __init__(self, seed: int) -> None:
        self.source = Source(seed, "notes")

    def at(self, index: int) -> str:
        """Write the note of a number: jotted down, or in whole sentences."""
        draws = self.source.at(index)
        value, count = draws.pick(VALUES), FEWEST + draws.below(MOST - FEWEST + 1)
        jotted = draws.chance(0.5)
        judged = draws.several(PLACES[draws.pick(tuple(PLACES))] + EVERYWHERE, count)
        if jotted:
            return capital(", ".join(f"{aspect} {plainly(value, draws)}" for aspect, _ in judged) + ".")
        sentences = []
        for (form, _, _), (aspect, verb) in zip(draws.several(SIMPLE, count), judged, strict=True):
            x = judge(value, draws)
            words = {"a": aspect, "A": capital(aspect), "was": verb, "x": x, "X": capital(x)}
            sentences.append(form.format_map(words))
        return " ".join(sentences)

    def texts(self, count: int) -> Iterator[str]:
        """Write so many notes."""
        return map(self.at, range(count))


def plainly(value: int, draws: Draws) -> str:
    """Word a judgement without denying anything."""
    size = abs(value)
    if draws.below(10) < 3:
        return draws.pick(STRONGER if size == 2 else WEAKER).format(draws.pick(WORDS[value // size]))
    return draws.pick(WORDS[value])
