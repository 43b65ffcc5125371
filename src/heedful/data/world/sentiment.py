"""Sentences with positive or negative sentiment about invented films and plays, in the form of SST-2.

Most of them mean what their adjectives say; in the others a negation, a contrast or a twist decides. A label
is wrong with a known probability.
"""

from __future__ import annotations

from dataclasses import dataclass

from heedful.data.world.draws import Source
from heedful.data.world.people import World
from heedful.data.world.phrases import read_phrases

LABEL_NOISE = 0.03
PLAIN_SHARE = 0.7
SETTING_SHARE = 0.6
PHRASES: dict[str, tuple[str, ...]] = read_phrases("sentiment")
GOOD, BAD = PHRASES["good"], PHRASES["bad"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, its sentiment (1 is positive) and its label."""

    text: str
    meant: int
    label: int


class Sentences:
    def __init__(self, world: World, seed: int) -> None:
        self.towns, self.source = world.names.towns, Source(seed, "sentiment")

    def at(self, index: int) -> Sentence:
        draws = self.source.at(index)
        meant = draws.below(2)
        same, opposite = (GOOD, BAD) if meant else (BAD, GOOD)
        x, z, x2 = draws.several(same, 3)
        words = {"x": x, "z": z, "x2": x2, "o": draws.pick(opposite)}
        words |= {"kind": draws.pick(PHRASES["kinds"]), "part": draws.pick(PHRASES["parts"])}
        text = draws.pick(PHRASES["plain" if draws.chance(PLAIN_SHARE) else "twisted"]).format_map(words)
        if draws.chance(SETTING_SHARE):
            text = draws.pick(PHRASES["settings"]).format(text=text, town=draws.pick(self.towns).name.lower())
        return Sentence(text, meant, 1 - meant if draws.chance(LABEL_NOISE) else meant)
