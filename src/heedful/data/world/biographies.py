"""Biographies: the facts about a person in one line of prose, in many paraphrases.

The line begins with the name. The birthplace is in the first sentence, mostly, or in the second. Towns where
the person studied, lived or died are also named, so that a town alone says nothing.
"""

from __future__ import annotations

from heedful.data.world.draws import Draws
from heedful.data.world.people import Date, Person
from heedful.data.world.phrases import capitalize, read_phrases

SENTENCES: dict[str, tuple[str, ...]] = read_phrases("sentences")
MONTHS: tuple[str, ...] = read_phrases("names")["months"]
SEASONS = ("winter", "spring", "summer", "autumn")


def write_biography(person: Person, draws: Draws) -> str:
    words = collect_words(person, draws)
    if draws.below(100) < 92:
        lead = draws.pick(SENTENCES["birth"]).format_map(words)
    else:
        opening = draws.pick(SENTENCES["opening"]).format_map(words)
        lead = f"{opening} {write_sentence(SENTENCES['late_birth'], words, draws)}"
    more: list[str] = []
    for kind, fact in (("trade", person.trade.noun), ("work", person.work), ("study", None), ("home", None)):
        if draws.below(100) < 45 and (fact is None or fact not in lead):
            more.append(write_sentence(SENTENCES[kind], words, draws))
    if draws.below(100) < 65:
        add_relation_sentence(person, words, draws, more)
    if len(more) > 1:
        more = draws.several(more, len(more))
    if person.death is not None and draws.below(100) < 60:
        more.append(write_sentence(SENTENCES["death"], words, draws))
    return f"{person.name}. {' '.join([lead, *more])}"


def write_sentence(templates: tuple[str, ...], words: dict[str, str], draws: Draws) -> str:
    words["S"] = words["surname"] if draws.below(100) < 30 else words["He"]
    return draws.pick(templates).format_map(words)


def add_relation_sentence(person: Person, words: dict[str, str], draws: Draws, sentences: list[str]) -> None:
    relations: list[tuple[str, Person]] = [("child_of", p) for p in person.parents]
    relations += [("parent_of", p) for p in person.children]
    relations += [("sibling_of", p) for p in person.siblings]
    single = (("married_to", person.spouse), ("pupil_of", person.teacher), ("friend_of", person.friend))
    relations += [(kind, other) for kind, other in single if other is not None]
    if not relations:
        return
    kind, other = draws.pick(relations)
    hers, theirs = person.gender == "f", other.gender == "f"
    older = person.birth < other.birth
    words.update(
        other=other.name,
        other_trade=other.trade.noun,
        a_other_trade=other.trade.phrase,
        parent="mother" if theirs else "father",
        parent_self="mother" if hers else "father",
        son="daughter" if hers else "son",
        other_son="daughter" if theirs else "son",
        brother="sister" if hers else "brother",
        other_brother="sister" if theirs else "brother",
        elder="elder" if older else "younger",
        other_elder="younger" if older else "elder",
        wife="wife" if theirs else "husband",
    )
    sentences.append(write_sentence(SENTENCES[kind], words, draws))


def collect_words(person: Person, draws: Draws) -> dict[str, str]:
    town = person.birthplace
    style = draws.below(10)
    if style < 6:
        at = at_first = town.name
    elif style < 8:
        at = at_first = f"{town.name}, {town.country}"
    elif style < 9:
        at = at_first = f"{town.name} in {town.country}"
    else:
        at, at_first = f"the town of {town.name}", f"The town of {town.name}"
    when = spell_date(person.birth, draws)
    words = {
        "name": person.name,
        "surname": person.surname,
        "town": town.name,
        "at": at,
        "at_first": at_first,
        "adjective": town.adjective,
        "when": when,
        "When": capitalize(when),
        "year": str(person.birth[0]),
        "trade": person.trade.noun,
        "a_trade": person.trade.phrase,
        "work": person.work,
        "studied": person.studied.name,
        "lived": person.lived.name,
        "died": person.died.name,
    }
    words.update(zip(MALE_WORDS, FEMALE_WORDS if person.gender == "f" else MALE_WORDS, strict=True))
    death = person.death
    if death is None:
        return words | {"is": "is", "years": f"born {person.birth[0]}"}
    words |= {"is": "was", "years": f"{person.birth[0]}–{death[0]}"}
    when = spell_date(death, draws)
    words["dead_when"], words["When_dead"] = when, capitalize(when)
    words["age"] = str(death[0] - person.birth[0] - (death[1:] < person.birth[1:]))
    words["after_death"] = str(death[0] + 1)
    return words


MALE_WORDS = ("he", "He", "him", "his", "His", "himself", "man")
FEMALE_WORDS = ("she", "She", "her", "her", "Her", "herself", "woman")


def spell_date(date: Date, draws: Draws) -> str:
    year, month, day = date
    style = draws.below(8)
    if style < 3:
        return f"on {day} {MONTHS[month]} {year}"
    if style < 5:
        return f"in {year}"
    if style < 6:
        return f"in {MONTHS[month]} {year}"
    if style < 7:
        return f"on {MONTHS[month]} {day}, {year}"
    return f"in the {SEASONS[(month + 1) // 3 % 4]} of {year}"
