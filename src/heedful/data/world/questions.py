"""Yes/no questions with passages, in BoolQ's form.

Every passage gives several things a value each, denies others, and digresses. The answer is drawn first and
decides only *which* value or thing the question is about, never which words occur. So words and their counts
say nothing, and only the relations between them do.
"""

from __future__ import annotations

from dataclasses import dataclass

from heedful.data.world.draws import Draws, Source
from heedful.data.world.people import World
from heedful.data.world.phrases import capitalize, read_phrases

CLAIMS: dict[str, tuple[str, ...]] = read_phrases("claims")
YES_SHARE = 0.58
CONTRARY_SHARE = 0.25
ABSENT_SHARE = 0.4
"""Share of the wrong values that occur nowhere in the passage: the easier part."""


@dataclass(frozen=True, slots=True)
class Scene:
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


@dataclass(frozen=True, slots=True)
class Question:
    question: str
    passage: str
    answer: bool


class Questions:
    def __init__(self, world: World, seed: int) -> None:
        self.world, self.source = world, Source(seed, "questions")

    def at(self, index: int) -> Question:
        draws = self.source.at(index)
        towns = self.world.names.towns
        town = draws.pick(towns).name
        answer = draws.chance(YES_SHARE)
        contrary = draws.chance(CONTRARY_SHARE)
        true = answer != contrary
        kind = draws.below(11)
        if kind < len(SCENES):
            scene = list(SCENES.values())[kind]
            words = {"town": town}
            if scene.people:
                words.update((f"p{i}", name) for i, name in enumerate(self.world.strangers(index, draws)))
                words.update((f"t{i}", t.name) for i, t in enumerate(draws.several(towns, 9)))
            title, sentences, question = bind(scene, words, true, contrary, draws)
        else:
            compose = rules if kind < 8 else parties if kind < 9 else ages
            title, sentences, question = compose(town, true, contrary, draws)
        opening, *facts = sentences
        facts += draws.several(CLAIMS["fillers"], draws.below(3))
        text = " ".join([opening, *draws.several(facts, len(facts))])
        return Question(question.lower(), f"{title} -- {text}", answer)


Parts = tuple[str, list[str], str]


def bind(scene: Scene, words: dict[str, str], true: bool, contrary: bool, draws: Draws) -> Parts:
    """Give three or four things a value each; ask about the first, with its value or a wrong one."""
    n = 3 + draws.below(2)
    things = [t.format_map(words) for t in draws.several(scene.things, n)]
    values = [v.format_map(words) for v in draws.several(scene.values, min(n + 3, len(scene.values)))]
    spare = values[n:]
    wrong = list(values[1:n])
    sentences = [draws.pick(scene.openings).format_map(words)]
    said = draws.several(scene.said, n)
    for at, (thing, value) in enumerate(zip(things, values, strict=False)):
        if len(spare) > 1 and draws.chance(0.4):
            denied = spare.pop()
            sentences.append(write(draws.pick(scene.denied), e=thing, v=value, w=denied))
            if at == 0:
                wrong += [denied] * 2
        else:
            sentences.append(write(said[at], e=thing, v=value))
    if draws.chance(0.5):
        e, f = draws.several(things, 2)
        neither, denied = draws.pick(scene.neither), spare.pop()
        x, y = e.removeprefix("the "), f.removeprefix("the ")
        sentences.append(write(neither, e=e, f=f, w=denied, x=x, y=y))
        if things[0] in (e, f):
            wrong.append(denied)
    if not true and draws.chance(ABSENT_SHARE):
        passage = " ".join(sentences).lower()
        all_values = [v.format_map(words) for v in scene.values]
        wrong = [v for v in all_values if v.lower() not in passage] or wrong
    asked = values[0] if true else draws.pick(wrong)
    form = draws.pick(scene.contrary if contrary else scene.questions)
    question = write(form, e=things[0], v=asked, town=words["town"])
    return draws.pick(scene.titles).format_map(words), sentences, question


def rules(town: str, true: bool, contrary: bool, draws: Draws) -> Parts:
    """Allow each of three things in one place and forbid it in another; ask about the first."""
    things = draws.several(CLAIMS["rule_things"], 3)
    places = draws.several(CLAIMS["rule_places"], 6)
    sentences = [draws.pick(CLAIMS["rule_openings"]).format(town=town)]
    forms = draws.several(CLAIMS["rules"], 3)
    located = zip(forms, things, places[:3], places[3:], strict=True)
    sentences += [write(form, t=thing, p=p, q=q) for form, thing, p, q in located]
    form = draws.pick(CLAIMS["rule_contrary"] if contrary else CLAIMS["rule_questions"])
    question = write(form, t=things[0], x=places[0] if true else places[3], town=town)
    return draws.pick(CLAIMS["rule_titles"]).format(town=town), sentences, question


def parties(town: str, true: bool, contrary: bool, draws: Draws) -> Parts:
    """Let some sign and others refuse; ask about one of them."""
    members = draws.several(CLAIMS["party_members"], 4 + draws.below(3))
    cut = 2 + draws.below(len(members) - 3)
    signed, refused = members[:cut], members[cut:]
    sentences = [draws.pick(CLAIMS["party_openings"]).format(town=town)]
    in_, out = (f"{', '.join(names[:-1])} and {names[-1]}" for names in (signed, refused))
    sentences.append(write(draws.pick(CLAIMS["parties"]), in_=in_, out=out))
    form = draws.pick(CLAIMS["party_contrary"] if contrary else CLAIMS["party_questions"])
    question = write(form, x=draws.pick(signed if true else refused), town=town)
    return f"Treaty of {town}", sentences, question


def ages(town: str, true: bool, contrary: bool, draws: Draws) -> Parts:
    """Give three or four buildings a year each; ask which of two is older."""
    things = draws.several(SCENES["materials"].things, 3 + draws.below(2))
    years = [1500 + 40 * place + draws.below(40) for place in draws.several(range(12), len(things))]
    sentences = [draws.pick(SCENES["materials"].openings).format(town=town)]
    forms = draws.several(CLAIMS["ages"], len(things))
    sentences += [write(f, e=e, v=str(v)) for f, e, v in zip(forms, things, years, strict=True)]
    older, younger = (things[0], things[1]) if years[0] < years[1] else (things[1], things[0])
    # The answer to "is a older than b" is `true`; the contrary form asks whether a is younger.
    a, b = (older, younger) if true else (younger, older)
    form = draws.pick(CLAIMS["age_contrary"] if contrary else CLAIMS["age_questions"])
    question = write(form, a=a, b=b, town=town)
    return draws.pick(SCENES["materials"].titles).format(town=town), sentences, question


def write(form: str, **words: str) -> str:
    """Fill in a template; {E} is {e} with a capital, and so on."""
    for name, word in list(words.items()):
        words[name.capitalize()] = capitalize(word)
    return form.format_map(words)
