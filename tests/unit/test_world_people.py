"""The people of the world: consistent, never two of one name, births independent of names unless asked."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest

from heedful.data.world.biographies import write_biography
from heedful.data.world.draws import Draws, Source, compute_running_sums
from heedful.data.world.names import COUNTRIES, TOWNS_EACH, Names
from heedful.data.world.people import CIRCLE, STRANGERS, World
from heedful.data.world.phrases import read_phrases

SENTENCES = read_phrases("sentences")


@pytest.fixture(scope="module")
def world():
    return World(0)


@pytest.fixture(scope="module")
def people(world):
    return list(world.people(0, 8000))


def test_draws_are_even_and_independent_of_their_neighbours():
    source = Source(0, "test")
    first = np.array([source.at(i).below(10) for i in range(20_000)])
    assert np.abs(np.bincount(first) - 2000).max() < 5 * np.sqrt(2000)
    pairs = np.bincount(first[:-1] * 10 + first[1:], minlength=100)
    assert np.abs(pairs - 200).max() < 5.5 * np.sqrt(200)
    draws = source.at(7)
    run = np.array([draws.below(10) for _ in range(20_000)])
    pairs = np.bincount(run[:-1] * 10 + run[1:], minlength=100)
    assert np.abs(pairs - 200).max() < 5.5 * np.sqrt(200)


def test_weighted_draws_follow_their_weights():
    draws, sums = Draws(1), compute_running_sums([1, 2, 5])
    drawn = Counter(draws.weighted(sums) for _ in range(8000))
    assert [abs(drawn[i] - n) < 5 * np.sqrt(n) for i, n in enumerate([1000, 2000, 5000])] == [True] * 3
    assert sorted(draws.several(range(9), 9)) == list(range(9))


def test_no_two_people_have_the_same_name(world, people):
    names = [p.name for p in people]
    # Roots of surnames are used again after so many households; their people must differ all the same.
    again = len(world.names.roots) // 3 * CIRCLE
    names += [p.name for p in world.people(again, again + 8000)]
    names += [name for i in range(500) for name in world.strangers(i, Source(0, "x").at(i))]
    assert len(set(names)) == len(names)
    assert world.names.most_people > STRANGERS + 100_000


def test_there_are_hundreds_of_thousands_of_surnames():
    names = Names(3)
    surnames = {root + ending for root in names.roots for endings in names.endings for ending in endings}
    assert len(surnames) == len(names.roots) * sum(map(len, names.endings)) > 400_000
    assert not set(names.given["f"]) & set(names.given["m"])


def test_towns_are_distinct_and_none_contains_another():
    for seed in range(5):
        towns = [t.name for t in Names(seed).towns]
        assert len(set(towns)) == COUNTRIES * TOWNS_EACH
        assert not [(a, b) for a in towns for b in towns if a != b and a in b]


def test_another_seed_is_another_world(world):
    other = World(1)
    assert not {t.name for t in world.names.towns[:5]} & {t.name for t in other.names.towns[:5]}
    assert not {p.name for p in world.people(0, 80)} & {p.name for p in other.people(0, 80)}


def test_relations_hold_in_both_directions_and_in_time(people):
    counted = Counter()
    for person in people:
        for parent in person.parents:
            counted["parent"] += 1
            assert any(child is person for child in parent.children)
            assert 20 <= person.birth[0] - parent.birth[0] <= 42
            assert parent.surname == person.surname
            assert parent.death is None or parent.death > person.birth
        for sibling in person.siblings:
            counted["sibling"] += 1
            assert any(other is person for other in sibling.siblings)
            assert sibling.birth[0] != person.birth[0]
            assert {p.index for p in sibling.parents} == {p.index for p in person.parents}
        if person.spouse is not None:
            counted["spouse"] += 1
            assert person.spouse.spouse is person
            assert abs(person.spouse.birth[0] - person.birth[0]) <= 3
        if person.teacher is not None:
            counted["teacher"] += 1
            assert 12 <= person.birth[0] - person.teacher.birth[0] <= 45
            assert person.teacher.trade is person.trade
        if person.friend is not None:
            counted["friend"] += 1
            assert person.friend.friend is person
        assert person.death is None or 48 <= person.death[0] - person.birth[0] <= 97
        assert person.work in person.trade.works
    assert min(counted.values()) > 100
    assert len(counted) == 5


def test_a_person_depends_on_the_seed_and_the_number_alone(world):
    alone = next(iter(world.people(4321, 4322)))
    among = list(world.people(4000, 5000))[321]
    assert (alone.name, alone.birth, alone.birthplace, alone.trade) == (
        among.name,
        among.birth,
        among.birthplace,
        among.trade,
    )
    related = [*alone.parents, *alone.children, *alone.siblings, alone.spouse, alone.teacher, alone.friend]
    assert not [other for other in related if other is not None]


def chi_square(table):
    expected = table.sum(1, keepdims=True) * table.sum(0, keepdims=True) / table.sum()
    return ((table - expected) ** 2 / expected).sum()


def countries(people, world):
    """Count surname endings' countries against birth countries."""
    ending = {e: c for c, endings in enumerate(world.names.endings) for e in endings}
    longest = sorted(ending, key=len, reverse=True)
    country = {t.country: at // TOWNS_EACH for at, t in enumerate(world.names.towns)}
    roots = set(world.names.roots)
    found = []
    for p in people:
        last = next(e for e in longest if p.surname.endswith(e) and p.surname.removesuffix(e) in roots)
        found.append((ending[last], country[p.birthplace.country]))
    return np.array(found)


def test_names_and_places_are_independent_without_a_signal_and_not_with_one(world, people):
    pairs = countries(people, world)
    generator = np.random.default_rng(0)

    def statistic(first, second):
        return chi_square(np.histogram2d(first, second, bins=COUNTRIES)[0] + 1e-9)

    # Whoever shares a surname shares a household: permuting places of people keeps names' clusters.
    shuffled = [statistic(pairs[:, 0], generator.permutation(pairs[:, 1])) for _ in range(200)]
    assert np.mean(np.array(shuffled) >= statistic(*pairs.T)) > 0.01
    hinted = World(0, name_signal=0.3)
    pairs = countries(list(hinted.people(0, 8000)), hinted)
    assert statistic(*pairs.T) > 3 * max(shuffled)
    assert abs(np.mean(pairs[:, 0] == pairs[:, 1]) - (0.3 + 0.7 * same_by_chance(world))) < 0.03


def same_by_chance(world):
    shares = np.array([t.share for t in world.names.towns]).reshape(COUNTRIES, TOWNS_EACH).sum(1)
    return float((shares**2).sum())


def test_the_signal_changes_places_and_nothing_else(people):
    hinted = list(World(0, name_signal=1.0).people(0, 800))
    for plain, other in zip(people, hinted, strict=False):
        assert (plain.name, plain.birth, plain.trade, plain.lived) == (
            other.name,
            other.birth,
            other.trade,
            other.lived,
        )


@pytest.mark.parametrize("signal", [0.0, 0.5, 1.0])
def test_the_best_guess_from_a_surname_is_as_good_as_promised(signal):
    world = World(2, name_signal=signal)
    people = list(world.people(0, 16_000))
    places = countries(people, world)[:, 0]
    firsts = [world.names.towns[c * TOWNS_EACH].name for c in range(COUNTRIES)]
    top = max(world.names.towns, key=lambda t: t.share).name
    right = sum(
        p.birthplace.name == (firsts[c] if signal else top) for p, c in zip(people, places, strict=True)
    )
    assert abs(right / len(people) - world.best_guess()) < 0.015
    assert world.best_guess() > 0.3 if signal == 1 else world.best_guess() < 0.3


def test_births_follow_the_shares_of_towns_with_and_without_a_signal():
    for signal in (0.0, 1.0):
        world = World(0, name_signal=signal)
        born = Counter(p.birthplace.name for p in world.people(0, 16_000))
        for town in world.names.towns[:4]:
            # People of a household share a surname, so with a signal their places are not independent.
            assert abs(born[town.name] - 16_000 * town.share) < 9 * np.sqrt(16_000 * town.share)


def test_biographies_state_the_birth_place_mostly_early_and_mean_one_line(world, people):
    source = Source(0, "biographies")
    lines = [write_biography(p, source.at(p.index)) for p in people]
    assert len(set(lines)) == len(lines)
    early = 0
    for person, line in zip(people, lines, strict=True):
        assert line.startswith(f"{person.name}. ")
        assert person.birthplace.name in line
        assert "\n" not in line
        assert "{" not in line
        assert not re.search(r" [,.]|,,|\.\.|  ", line)
        assert line.endswith(".")
        early += line.find(person.birthplace.name) + len(person.birthplace.name) <= 112
    assert 0.9 < early / len(people) < 1
    several = sum(sum(t.name in line for t in world.names.towns) > 1 for line in lines)
    assert several > len(lines) / 2


def test_pronouns_agree_with_the_person(people):
    source = Source(0, "biographies")
    wrong = {
        "f": re.compile(r"\b(he|him|his|himself|man)\b", re.I),
        "m": re.compile(r"\b(she|herself|woman)\b", re.I),
    }
    for person in people[:4000]:
        assert not wrong[person.gender].search(write_biography(person, source.at(person.index)))


def test_every_fact_has_dozens_of_sentences_and_none_is_written_twice():
    dozens = ["birth", "late_birth", "opening", "trade", "work", "study", "home", "death"]
    relations = ["child_of", "parent_of", "sibling_of", "married_to", "pupil_of", "friend_of"]
    assert all(len(SENTENCES[name]) >= 24 for name in dozens)
    assert sum(len(SENTENCES[name]) for name in relations) >= 48
    every = [template for name in dozens + relations for template in SENTENCES[name]]
    assert len(set(every)) == len(every)


def test_every_sentence_can_be_written(people):
    used = set()

    class Picky(Draws):
        """Remembers the templates that are picked."""

        def pick(self, items):
            found = super().pick(items)
            if isinstance(found, str) and "{" in found:
                used.add(found)
            return found

    for person in people[:6000]:
        write_biography(person, Picky(person.index * 2654435761))
    every = {t for templates in SENTENCES.values() for t in templates}
    assert used == every
