"""Invented names of people, towns and countries, from syllables that each seed combines differently."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from heedful.data.world.draws import Draws, Source, compute_running_sums, mix
from heedful.data.world.phrases import read_phrases

SYLLABLES = read_phrases("names")
SHORT_MIDDLES = SYLLABLES["middles"][:12]
SURNAME_ENDINGS: tuple[str, ...] = SYLLABLES["surname_endings"]
TOWN_FORMS = ("{}",) * 24 + ("Port {}", "Upper {}", "New {}", "{} Sands", "{} Hill", "Lower {}")
COUNTRIES, TOWNS_EACH = 20, 10
GIVEN_NAMES = 1000
"""Number per gender."""
ENDINGS_EACH = len(SURNAME_ENDINGS) // COUNTRIES
HOUSEHOLD = 8
"""Number of given names that a household takes from its surname's stock; no household is larger."""


@dataclass(frozen=True, slots=True)
class Town:
    name: str
    country: str
    adjective: str
    share: float


class Names:
    """The names of one seed.

    A surname is a root and an ending, and the ending belongs to a country. No two people have the same name:
    a household's number determines its root and, once all roots are used, the next given names of that root.
    """

    def __init__(self, seed: int) -> None:
        draws = Source(seed, "names").at(0)
        onsets = draws.several(SYLLABLES["onsets"], 34)
        vowels = [*SYLLABLES["vowels"], *draws.several(SYLLABLES["diphthongs"], 2)]
        middles = draws.several(SYLLABLES["middles"], 40)
        accent = draws.pick(SYLLABLES["accented"])
        self.roots: list[str] = [o + v + m for v in vowels for o in onsets for m in middles]
        self.roots += [o + accent + m for o in onsets[::2] for m in middles]
        self.stride = find_stride(len(self.roots))
        endings = draws.several(SURNAME_ENDINGS, len(SURNAME_ENDINGS))
        self.endings = [endings[at : at + ENDINGS_EACH] for at in range(0, len(endings), ENDINGS_EACH)]
        stems = [o + v + m for o in onsets for v in vowels for m in SHORT_MIDDLES]
        self.given: dict[str, list[str]] = {
            gender: [stem + draws.pick(endings) for stem in draws.several(stems, GIVEN_NAMES)]
            for gender, endings in SYLLABLES["given_endings"].items()
        }
        self.towns = self.make_towns(draws, onsets)
        shares = [t.share for t in self.towns]
        self.country_sums = compute_running_sums(
            sum(shares[at : at + TOWNS_EACH]) for at in range(0, len(shares), TOWNS_EACH)
        )
        self.town_sums = compute_running_sums(shares)
        self.town_sums_within = compute_running_sums(shares[:TOWNS_EACH])

    def make_towns(self, draws: Draws, onsets: list[str]) -> list[Town]:
        """Create the towns: a few countries, and the first town of each, have most of the people."""
        all_stems = [o + v + m for o in onsets for v in SYLLABLES["vowels"] for m in SHORT_MIDDLES]
        stems = iter(draws.several(all_stems, COUNTRIES * (TOWNS_EACH + 1)))
        country_weights = [1 / (rank + 4) for rank in range(COUNTRIES)]
        town_weights = [1 / (rank + 1) ** 1.3 for rank in range(TOWNS_EACH)]
        total = sum(country_weights) * sum(town_weights)
        towns = []
        for country_weight in country_weights:
            noun, adjective = draws.pick(SYLLABLES["country_endings"])
            root = next(stems)
            for town_weight in town_weights:
                name = draws.pick(TOWN_FORMS).format(next(stems) + draws.pick(SYLLABLES["town_endings"]))
                towns.append(Town(name, root + noun, root + adjective, country_weight * town_weight / total))
        return towns

    @property
    def most_people(self) -> int:
        """The number of people for whom names are distinct, in circles of eight with three households."""
        return len(self.roots) * (GIVEN_NAMES // HOUSEHOLD) // 3 * 8

    def surname(self, household: int, country: int, which: int) -> str:
        """Return a household's surname; `which` chooses among the country's endings."""
        return self.roots[household * self.stride % len(self.roots)] + self.endings[country][which]

    def given_name(self, household: int, member: int, gender: str) -> str:
        """Return a given name that no other household with the same root uses."""
        rounds, root = divmod(household, len(self.roots))
        return self.given[gender][(mix(root) + rounds * HOUSEHOLD + member) % GIVEN_NAMES]


def find_stride(n: int) -> int:
    """Return a step that visits all of 0 .. n - 1 and spreads neighbors: near the golden section of n."""
    step = max(1, int(n * 0.6180339887498949))
    while gcd(step, n) != 1:
        step += 1
    return step
