"""Notes in guest books: text without labels, from which the meaning of words can be learned.

In half of the notes all judgments are equally good or equally bad. The others are mixed, as reviews are, and
end with a verdict in words. So a model that fills in hidden words can learn which words mean the same, what a
negation does to them, and what a whole note amounts to, before it has seen a single star.
"""

from __future__ import annotations

from collections.abc import Iterator

from heedful.data.world.draws import Draws, Source
from heedful.data.world.phrases import capitalize
from heedful.data.world.reviews import (
    EVERYWHERE,
    PHRASES,
    PLACES,
    SIMPLE,
    STRONGER,
    WEAKER,
    WORDS,
    plan,
    write,
)

VALUES = (2, 1, -1, -2)
FEWEST, MOST = 3, 6
"""Number of judgments in a unanimous note."""
VERDICTS = {5: WORDS[2], 4: WORDS[1], 3: PHRASES["mixed_verdicts"], 2: WORDS[-1], 1: WORDS[-2]}
VERDICTS_PER_NOTE = 3


class Notes:
    def __init__(self, seed: int) -> None:
        self.source = Source(seed, "notes")

    def at(self, index: int) -> str:
        draws = self.source.at(index)
        return write_unanimous_note(draws) if draws.chance(0.5) else write_note_with_verdict(draws)

    def texts(self, count: int) -> Iterator[str]:
        return map(self.at, range(count))


def write_unanimous_note(draws: Draws) -> str:
    """Write judgments of one value, as a list or in sentences."""
    value, count = draws.pick(VALUES), FEWEST + draws.below(MOST - FEWEST + 1)
    judged = draws.several(PLACES[draws.pick(tuple(PLACES))] + EVERYWHERE, 9)
    if draws.chance(0.5):
        return capitalize(
            ", ".join(f"{aspect} {word_plainly(value, draws)}" for aspect, _ in judged[:count]) + "."
        )
    parts = [(form, value, value) for form in draws.several(SIMPLE, count)]
    return " ".join(write(parts, judged, draws))


def write_note_with_verdict(draws: Draws) -> str:
    """Write judgments of all kinds, and a verdict that sums them up."""
    stars = 1 + draws.below(5)
    judged = draws.several(PLACES[draws.pick(tuple(PLACES))] + EVERYWHERE, 9)
    sentences = write(plan(stars, draws), judged, draws)
    for form in draws.several(PHRASES["verdict_forms"], VERDICTS_PER_NOTE):
        sentences.append(form.format(draws.pick(VERDICTS[stars])))
    return " ".join(sentences)


def word_plainly(value: int, draws: Draws) -> str:
    size = abs(value)
    if draws.below(10) < 3:
        return draws.pick(STRONGER if size == 2 else WEAKER).format(draws.pick(WORDS[value // size]))
    return draws.pick(WORDS[value])
