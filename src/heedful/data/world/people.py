"""The people of the world and how they are related.

Eight people form a circle of three households. All their facts follow from the seed and the number of their
circle, so that a world of any size needs no memory. People of a household share a surname and are related; a
pupil and a teacher, or two friends, come from different households of a circle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from heedful.data.world.draws import Draws, Source
from heedful.data.world.names import TOWNS_EACH, Names, Town
from heedful.data.world.phrases import read_phrases

CIRCLE = 8
STRANGERS = 3_000_000
"""People from this number on have no biography; they are named in the passages of questions."""
HOUSEHOLDS = ((4, 3, 1), (3, 3, 2), (5, 2, 1), (4, 2, 2), (2, 5, 1), (3, 4, 1), (2, 3, 3), (5, 1, 2))
# For each size of a household, who its members are: head, (s)pouse, (b)rother or sister, (c)hild of a member.
FAMILIES: dict[int, tuple[tuple[str, ...], ...]] = {
    1: (("head",),),
    2: (("head", "c0"), ("head", "s0"), ("head", "b0")),
    3: (("head", "c0", "c0"), ("head", "s0", "c0"), ("head", "b0", "c0")),
    4: (("head", "s0", "c0", "c0"), ("head", "c0", "c1", "c1"), ("head", "b0", "s0", "c0")),
    5: (("head", "s0", "c0", "c0", "c2"), ("head", "b0", "c0", "c0", "c2"), ("head", "s0", "c0", "c2", "c2")),
}
FIRST_YEAR, LAST_HEAD, GENERATION = 1740, 1975, 35
PRESENT = 2015
Date = tuple[int, int, int]
"""Year, month from 0, day: dates can be compared."""


@dataclass(frozen=True, slots=True)
class Trade:
    """A profession, the same with its article, and the works that people of its field are known for."""

    noun: str
    phrase: str
    works: tuple[str, ...]


TRADES = tuple(
    Trade(noun, f"an {noun}" if noun[0] in "aeiou" else f"a {noun}", field["works"])
    for field in read_phrases("trades")["fields"]
    for noun in field["nouns"]
)


@dataclass(slots=True)
class Person:
    index: int
    name: str
    surname: str
    gender: str
    birth: Date
    death: Date | None
    birthplace: Town
    trade: Trade
    work: str
    studied: Town
    lived: Town
    died: Town
    parents: list[Person] = field(default_factory=list)
    children: list[Person] = field(default_factory=list)
    siblings: list[Person] = field(default_factory=list)
    spouse: Person | None = None
    teacher: Person | None = None
    friend: Person | None = None


class World:
    def __init__(self, seed: int = 0, name_signal: float = 0.0) -> None:
        self.names = Names(seed)
        self.name_signal = name_signal
        self.circles, self.places = Source(seed, "circles"), Source(seed, "birth places")

    def people(self, start: int, stop: int) -> Iterator[Person]:
        """Yield people by number; people outside the range are not mentioned in their relations."""
        for number in range(start // CIRCLE, -(-stop // CIRCLE)):
            yield from self.circle(number, start, stop)

    def circle(self, number: int, start: int, stop: int) -> list[Person]:
        """Return the people of a circle, related to each other, whose numbers are from `start` to `stop`."""
        draws = self.circles.at(number)
        towns, town_sums = self.names.towns, self.names.town_sums
        people: list[Person] = []
        index = number * CIRCLE
        for place, size in enumerate(draws.pick(HOUSEHOLDS)):
            household = number * 3 + place
            country = draws.weighted(self.names.country_sums)
            surname = self.names.surname(household, country, draws.below(len(self.names.endings[country])))
            roles = draws.pick(FAMILIES[size])
            years = birth_years(roles, draws)
            first = len(people)
            for member, role in enumerate(roles):
                other = people[first + int(role[1])] if role != "head" else None
                if role[0] == "s" and other is not None:
                    gender = "f" if other.gender == "m" else "m"
                else:
                    gender = "f" if draws.below(2) else "m"
                given = self.names.given_name(household, member, gender)
                trade = draws.pick(TRADES) if role[0] != "c" or draws.below(3) else people[first].trade
                born = (years[member], draws.below(12), 1 + draws.below(28))
                last_year = born[0] + 48 + draws.below(50)
                death = (last_year, draws.below(12), 1 + draws.below(28)) if last_year < PRESENT else None
                person = Person(
                    index=index,
                    name=f"{given} {surname}",
                    surname=surname,
                    gender=gender,
                    birth=born,
                    death=death,
                    birthplace=self.birthplace(index, country),
                    trade=trade,
                    work=draws.pick(trade.works),
                    studied=towns[draws.weighted(town_sums)],
                    lived=towns[draws.weighted(town_sums)],
                    died=towns[draws.weighted(town_sums)],
                )
                if other is not None:
                    relate(person, role[0], other)
                people.append(person)
                index += 1
            acquaint(people, first, draws)
        inside = [p for p in people if start <= p.index < stop]
        if len(inside) < len(people):
            for person in inside:
                forget(person, start, stop)
        return inside

    def strangers(self, number: int, draws: Draws) -> list[str]:
        """Return the names of a circle of people who occur nowhere else."""
        names, strangers = self.names, []
        for place, size in enumerate(draws.pick(HOUSEHOLDS)):
            household = (STRANGERS // CIRCLE + number) * 3 + place
            country = draws.weighted(names.country_sums)
            surname = names.surname(household, country, draws.below(len(names.endings[country])))
            for member in range(size):
                strangers.append(f"{names.given_name(household, member, 'fm'[draws.below(2)])} {surname}")
        return strangers

    def birthplace(self, index: int, country: int) -> Town:
        """Draw a birthplace: in the surname's country with probability `name_signal`, else by size alone.

        Both have the same distribution over all people: surnames' countries are as frequent as births.
        """
        draws = self.places.at(index)
        if self.name_signal and draws.chance(self.name_signal):
            return self.names.towns[country * TOWNS_EACH + draws.weighted(self.names.town_sums_within)]
        return self.names.towns[draws.weighted(self.names.town_sums)]

    def best_guess(self) -> float:
        """Return the accuracy of the best answer from the surname alone, for people without a biography."""
        towns, s = self.names.towns, self.name_signal
        top = max(t.share for t in towns)
        total = 0.0
        for at in range(0, len(towns), TOWNS_EACH):
            share = sum(t.share for t in towns[at : at + TOWNS_EACH])
            first = towns[at].share
            total += share * max(s * first / share + (1 - s) * first, (1 - s) * top)
        return total


def birth_years(roles: tuple[str, ...], draws: Draws) -> list[int]:
    """Draw birth years: parents are 20 to 42 years older than their children, and siblings differ."""
    depth = len({role for role in roles if role[0] == "c"})
    years: list[int] = []
    for at, role in enumerate(roles):
        if role == "head":
            years.append(FIRST_YEAR + draws.below(LAST_HEAD - FIRST_YEAR - GENERATION * depth))
        elif role[0] == "s":
            years.append(years[int(role[1])] - 3 + draws.below(7))
        elif role[0] == "b":
            years.append(years[int(role[1])] + 1 + draws.below(9))
        elif role in roles[:at]:
            years.append(years[roles.index(role)] + 1 + draws.below(7))
        else:
            years.append(years[int(role[1])] + 23 + draws.below(10))
    return years


def relate(person: Person, kind: str, other: Person) -> None:
    """Record a relation for both people; a couple's children belong to both."""
    if kind == "s":
        person.spouse, other.spouse = other, person
    elif kind == "b":
        person.siblings, other.siblings = [other], [person]
    else:
        person.siblings = list(other.children)
        for sibling in other.children:
            sibling.siblings = [*sibling.siblings, person]
        person.parents = [other, other.spouse] if other.spouse is not None else [other]
        for parent in person.parents:
            parent.children = [*parent.children, person]


def acquaint(people: list[Person], first: int, draws: Draws) -> None:
    """Make members of a new household pupils or friends of members of the circle's earlier households."""
    for person in people[first:]:
        if not first or draws.below(2):
            continue
        other = people[draws.below(first)]
        gap = person.birth[0] - other.birth[0]
        if 12 <= gap <= 45:
            person.teacher, person.trade = other, other.trade
            person.work = draws.pick(other.trade.works)
        elif -10 <= gap <= 10 and other.friend is None:
            person.friend, other.friend = other, person


def forget(person: Person, start: int, stop: int) -> None:
    """Drop relations with people outside the range, who have no biography."""
    for name in ("parents", "children", "siblings"):
        setattr(person, name, [p for p in getattr(person, name) if start <= p.index < stop])
    for name in ("spouse", "teacher", "friend"):
        other = getattr(person, name)
        setattr(person, name, other if other and start <= other.index < stop else None)
