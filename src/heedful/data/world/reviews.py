"""Reviews with one to five stars, whose label noise is known.

A review judges several aspects. The stars are the rounded mean of its judgments, in which the clause after a
"but" counts double, what matters most to the writer counts three times, hearsay is reversed if the writer
disagrees, and what the writer does not care about counts nothing. Then, with a known probability, the label
moves by one star, which bounds the accuracy that any reader can reach.
"""

from __future__ import annotations

from dataclasses import dataclass

from heedful.data.world.draws import Draws, Source, compute_running_sums
from heedful.data.world.people import World
from heedful.data.world.phrases import capitalize, read_phrases

LABEL_NOISE = 0.1
STAR_SUMS = compute_running_sums((0.15, 0.12, 0.16, 0.25, 0.32))
POSITIVE_SHARE = (0.04, 0.26, 0.5, 0.74, 0.96)
COMPOSED_SHARE = 0.35
Form = tuple[str, int, int]
"""A template, and how much the judgments {x} and {y} in it count."""


def add_verbs(aspects: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((f"the {a.rstrip('*')}", "were" if a.endswith("*") else "was") for a in aspects)


PHRASES = read_phrases("reviews")
WORDS: dict[int, tuple[str, ...]] = {int(value): words for value, words in PHRASES["words"].items()}
PLACES = {place: add_verbs(aspects) for place, aspects in PHRASES["places"].items()}
EVERYWHERE = add_verbs(PHRASES["everywhere"])
STRONGER: tuple[str, ...] = PHRASES["stronger"]
WEAKER: tuple[str, ...] = PHRASES["weaker"]
DENIALS: dict[int, tuple[str, ...]] = {int(size): forms for size, forms in PHRASES["denials"].items()}
SIMPLE: tuple[Form, ...] = PHRASES["simple"]
COMPOSED: tuple[Form, ...] = PHRASES["composed"]


@dataclass(frozen=True, slots=True)
class Review:
    """A review with the stars of its text and those of its label."""

    text: str
    stars: int
    label: int


class Reviews:
    def __init__(self, world: World, seed: int) -> None:
        self.towns, self.source = world.names.towns, Source(seed, "reviews")

    def at(self, index: int) -> Review:
        draws = self.source.at(index)
        target = 1 + draws.weighted(STAR_SUMS)
        parts = plan(target, draws)
        place = draws.pick(tuple(PLACES))
        judged = draws.several(PLACES[place] + EVERYWHERE, 9)
        sentences = [draws.pick(PHRASES["openings"]).format(place=place, town=draws.pick(self.towns).name)]
        sentences += write(parts, judged, draws)
        if draws.chance(0.4):
            sentences.append(draws.pick(PHRASES["closings"]))
        joint = "\\n" if draws.chance(0.1) else " "
        label = target
        if draws.chance(LABEL_NOISE):
            label += 1 if target == 1 or (target < 5 and draws.below(2)) else -1
        return Review(joint.join(sentences), target, label)


def plan(target: int, draws: Draws) -> list[tuple[Form, int, int]]:
    """Draw forms and judgments until they amount to the target stars."""
    share = POSITIVE_SHARE[target - 1]
    while True:
        parts = []
        simple, composed = draws.several(SIMPLE, 4), draws.several(COMPOSED, 4)
        for _ in range(2 + draws.below(3)):
            form = (composed if draws.chance(COMPOSED_SHARE) else simple).pop()
            x = (1 + draws.below(2)) * (1 if draws.chance(share if form[1] >= 0 else 1 - share) else -1)
            y = (1 + draws.below(2)) * (1 if draws.chance(share) else -1)
            if form[2] and not form[1]:
                x = -y
            parts.append((form, x, y))
        if count_stars(parts) == target:
            return parts


def write(parts: list[tuple[Form, int, int]], judged: list[tuple[str, str]], draws: Draws) -> list[str]:
    """Word the judgments, each about different aspects, which are taken from `judged`."""
    sentences = []
    for (form, _, _), x, y in parts:
        a, b = judged.pop(), judged[0]
        words = {"a": a[0], "was": a[1], "b": b[0], "were": b[1], "x": judge(x, draws), "y": judge(y, draws)}
        words |= {"A": capitalize(a[0]), "B": capitalize(b[0]), "X": capitalize(words["x"])}
        sentences.append(form.format_map(words))
        if "{b}" in form or "{B}" in form:
            judged.pop(0)
    return sentences


def count_stars(parts: list[tuple[Form, int, int]]) -> int:
    """Return the weighted mean of a review's judgments, from 1 to 5; 0 if nothing counts."""
    total = sum(form[1] * x + form[2] * y for form, x, y in parts)
    weight = sum(abs(form[1]) + form[2] for form, _, _ in parts)
    # Five equal parts of the range from -2 to 2, in whole numbers.
    return 1 + min(4, (total + 2 * weight) * 5 // (4 * weight)) if weight else 0


def judge(value: int, draws: Draws) -> str:
    """Word a judgment: directly, made stronger or weaker, or by negating its opposite."""
    size = abs(value)
    style = draws.below(10)
    if style < 2:
        return draws.pick(DENIALS[size]).format(draws.pick(WORDS[-value]))
    if style < 5:
        # "very good" is as strong as "superb"; "fairly good" is no stronger than "good".
        return draws.pick(STRONGER if size == 2 else WEAKER).format(draws.pick(WORDS[value // size]))
    return draws.pick(WORDS[value])
