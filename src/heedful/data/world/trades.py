"""The professions of the people of the world, and what they are known for."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.data.world.phrases import read_phrases


@dataclass(frozen=True, slots=True)
class Trade:
    """A profession, the same with its article, and the works that people of its field are known for."""

    noun: str
    phrase: str
    works: tuple[str, ...]


TRADES: tuple[Trade, ...] = tuple(
    Trade(noun, f"an {noun}" if noun[0] in "aeiou" else f"a {noun}", field["works"])
    for field in read_phrases("trades")["fields"]
    for noun in field["nouns"]
)
