"""Templates of passages for yes/no questions: things, statements about them, and questions."""

from __future__ import annotations

from dataclasses import dataclass

from heedful.data.world.phrases import read_phrases


@dataclass(frozen=True, slots=True)
class Scene:
    """Things with values, the sentences that state them, and the questions about them."""

    titles: tuple[str, ...]
    openings: tuple[str, ...]
    things: tuple[str, ...]
    values: tuple[str, ...]
    said: tuple[str, ...]
    denied: tuple[str, ...]
    neither: tuple[str, ...]
    questions: tuple[str, ...]
    contrary: tuple[str, ...]
    """Questions whose answer is yes when {v} is not the value."""
    people: bool = False
    """Whether {p0} to {p7} are people and {t0} to {t8} towns."""


SCENES = {name: Scene(**phrases) for name, phrases in read_phrases("scenes").items()}
