"""Letters to a newspaper, and the desk that should read each: a task for models that have read before.

The sentences say nothing about the desk; what the letter is about does. There are so many things to write
about that with up to 300 labels most of those in a new letter were in no labeled one. A bag of words can only
guess then, but a pretrained model knows what they mean.
"""

from __future__ import annotations

from dataclasses import dataclass

from heedful.data.world.draws import Source
from heedful.data.world.people import World
from heedful.data.world.phrases import read_phrases

SENTENCES: tuple[str, ...] = read_phrases("messages")["sentences"]
DESKS: dict[str, tuple[str, ...]] = read_phrases("messages")["desks"]
NAMES = tuple(DESKS)


@dataclass(frozen=True, slots=True)
class Message:
    text: str
    label: str


class Messages:
    def __init__(self, world: World, seed: int) -> None:
        self.towns, self.source = world.names.towns, Source(seed, "messages")

    def at(self, index: int) -> Message:
        draws = self.source.at(index)
        desk = draws.pick(NAMES)
        words = {"x": draws.pick(DESKS[desk]), "town": draws.pick(self.towns).name}
        return Message(draws.pick(SENTENCES).format_map(words), desk)
