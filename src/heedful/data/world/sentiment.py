"""Sentences with positive or negative sentiment about invented films and plays, in the form of SST-2.

Most of them mean what their adjectives say; in the others a negation, a contrast or a twist decides. A label
is wrong with a known probability.
"""

from __future__ import annotations

from dataclasses import dataclass

from heedful.data.world.draws import Source
from heedful.data.world.people import World
from heedful.data.world.text import split_phrases

LABEL_NOISE = 0.03
PLAIN_SHARE = 0.7

GOOD = split_phrases(
    "moving, witty, gripping, tender, playful, radiant, graceful, funny, thrilling, truthful, "
    "stylish, warm, clever, vivid, charming, fresh"
)
BAD = split_phrases(
    "dull, clumsy, shrill, stale, hollow, tedious, sloppy, lifeless, smug, muddled, tiresome, bland, "
    "crude, forced, gloomy, leaden"
)
KINDS = split_phrases(
    "film, comedy, thriller, romance, western, musical, documentary, drama, sequel, debut, fable, mystery"
)
PARTS = split_phrases(
    "the script, the cast, the camera, the score, the ending, the dialogue, the first act, the lead, "
    "the editing, the plot"
)
# {x} and {z} are words of the label's sentiment, {o} of the opposite.
PLAIN = (
    "a {x} and {z} {kind}",
    "{part} is {x} , and so is everything else",
    "{x} from start to finish",
    "this {kind} is {x} , {z} and {x2}",
    "{part} stays {x} throughout",
    "one leaves this {kind} thinking how {x} it was",
    "as {x} a {kind} as one can find this year",
    "{part} alone makes this a {x} {kind}",
    "a {kind} with {x} moments , all of them {z}",
    "rarely has {part} been so {x}",
    "the word for this {kind} is {x}",
    "{x} , {z} , and proud of it",
)
TWISTED = (
    "not a {o} minute in this {kind}",
    "{part} is anything but {o}",
    "this {kind} could have been {o} , but it turns out {x}",
    "for all its {o} scenes , the {kind} is {x} in the end",
    "calling this {kind} {o} would miss the point",
    "{part} looks {o} at first and proves {x}",
    "those who find {part} {o} have not paid attention",
    "less {o} than its poster , and far more {x}",
    "never {o} , even when {part} tries to be",
    "i was told it was {o} , and i was told wrong",
    "{o} ? this {kind} ? on the contrary",
    "one waits in vain for a {o} scene",
    "although {part} is {o} , the whole is {x}",
    "the trailer is {o} ; the {kind} itself is not",
    "nobody who has seen {part} would call this {kind} {o}",
    "by the second act the {o} tone has given way to something {x}",
    "{part} may be {o} , yet nothing else is",
    "this is what a {kind} looks like when it refuses to be {o}",
)
SETTINGS = (
    "set in {town} : {text}",
    "from the studios of {town} : {text}",
    "{text} , say the papers in {town}",
    "{text} ( seen in {town} )",
    "shown in {town} last week : {text}",
    "{text} ; the audience in {town} thought so too",
)
SETTING_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, its sentiment (1 is positive) and its label."""

    text: str
    meant: int
    label: int


class Sentences:
    """The sentiment sentences of a world, by number."""

    def __init__(self, world: World, seed: int) -> None:
        self.towns, self.source = world.names.towns, Source(seed, "sentiment")

    def at(self, index: int) -> Sentence:
        """Write the sentence of a number."""
        draws = self.source.at(index)
        meant = draws.below(2)
        same, opposite = (GOOD, BAD) if meant else (BAD, GOOD)
        x, z, x2 = draws.several(same, 3)
        words = {"x": x, "z": z, "x2": x2, "o": draws.pick(opposite)}
        words |= {"kind": draws.pick(KINDS), "part": draws.pick(PARTS)}
        text = draws.pick(PLAIN if draws.chance(PLAIN_SHARE) else TWISTED).format_map(words)
        if draws.chance(SETTING_SHARE):
            text = draws.pick(SETTINGS).format(text=text, town=draws.pick(self.towns).name.lower())
        return Sentence(text, meant, 1 - meant if draws.chance(LABEL_NOISE) else meant)
