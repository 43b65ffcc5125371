"""The professions of the people of the world, and what they are known for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trade:
    """A profession, the same with its article, and the works that people of its field are known for."""

    noun: str
    phrase: str
    works: tuple[str, ...]


FIELDS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("painter", "engraver", "sculptor", "illustrator", "muralist"),
        (
            "a cycle of harbour scenes",
            "portraits of ferrymen",
            "a ceiling full of herons",
            "small drawings of frost",
            "a blue room without shadows",
            "a bronze hare",
            "pictures of empty markets",
            "the great map of the tides",
        ),
    ),
    (
        ("composer", "violinist", "organist", "singer", "conductor"),
        (
            "a mass for nine voices",
            "three quartets in minor keys",
            "an opera about a lighthouse keeper",
            "songs for the grape harvest",
            "a slow march that is still played",
            "lullabies from the marshes",
            "a symphony without drums",
            "a book of dances for two hands",
        ),
    ),
    (
        ("novelist", "poet", "playwright", "essayist", "translator"),
        (
            "a novel about a flooded valley",
            "a comedy of lost umbrellas",
            "letters from a northern winter",
            "sonnets on bees and salt",
            "a long poem about railways",
            "tales told by a miller",
            "a diary of the siege years",
            "a history of silence in four volumes",
        ),
    ),
    (
        ("botanist", "zoologist", "entomologist", "geologist", "naturalist"),
        (
            "a catalogue of alpine mosses",
            "the first study of cave crickets",
            "a theory of river stones",
            "a herbarium of nine thousand sheets",
            "field notes on migrating cranes",
            "a key to freshwater snails",
            "a map of buried volcanoes",
            "work on the sleep of bats",
        ),
    ),
    (
        ("physicist", "astronomer", "mathematician", "chemist", "meteorologist"),
        (
            "a table of double stars",
            "a proof about knotted curves",
            "measurements of the northern lights",
            "a green dye that does not fade",
            "the law of cooling lakes",
            "a comet seen in daylight",
            "an early barometer network",
            "a lens ground from rock crystal",
        ),
    ),
    (
        ("engineer", "bridge builder", "clockmaker", "shipwright", "locksmith"),
        (
            "a swing bridge with one arm",
            "a pump that ran on tides",
            "a tower clock with four moons",
            "the first iron ferry",
            "a tunnel under the old town",
            "a lock that nobody opened",
            "a canal with eleven gates",
            "a weaving frame for sailcloth",
        ),
    ),
    (
        ("physician", "surgeon", "midwife", "apothecary", "dentist"),
        (
            "a cure for marsh fever",
            "a hospital for sailors",
            "a handbook on broken bones",
            "clean water in the poor quarters",
            "an ointment of pine resin",
            "a school for nurses",
            "a study of sleepless patients",
            "the first winter clinic",
        ),
    ),
    (
        ("judge", "lawyer", "diplomat", "mayor", "senator"),
        (
            "a treaty about fishing grounds",
            "the reform of the salt tax",
            "a ruling on common land",
            "twelve years without a war",
            "a law against debtors' prisons",
            "the peace of the two valleys",
            "a famous speech on bread",
            "the opening of the archives",
        ),
    ),
    (
        ("runner", "swimmer", "cyclist", "rower", "wrestler", "footballer", "archer"),
        (
            "five national titles",
            "a record that stood for thirty years",
            "a race won with a broken shoe",
            "an unbeaten season",
            "a crossing of the cold strait",
            "the longest match on record",
            "a bronze medal in the snow",
            "a sprint that nobody filmed",
        ),
    ),
    (
        ("baker", "brewer", "winemaker", "cook", "cheesemaker"),
        (
            "a dark loaf with caraway",
            "a beer aged in cherry wood",
            "a wine from frozen grapes",
            "a kitchen that fed a whole strike",
            "a cheese wrapped in nettles",
            "a cookbook for lean years",
            "a honey cake for weddings",
            "an inn with no sign",
        ),
    ),
    (
        ("teacher", "historian", "linguist", "archaeologist", "librarian", "philosopher"),
        (
            "a grammar of two hill dialects",
            "a school without benches",
            "the dig at the amber graves",
            "a dictionary of insults",
            "a chronicle of forgotten floods",
            "lectures on doubt",
            "the saving of a burnt library",
            "an atlas of lost roads",
        ),
    ),
    (
        ("sailor", "explorer", "pilot", "cartographer", "beekeeper", "gardener"),
        (
            "a voyage round the ice shelf",
            "charts of a reef with no name",
            "a night flight over the mountains",
            "a garden on a rubbish heap",
            "the search for a vanished brig",
            "a hive made of glass",
            "a walk across the salt desert",
            "an island that was found twice",
        ),
    ),
)

TRADES: tuple[Trade, ...] = tuple(
    Trade(noun, f"an {noun}" if noun[0] in "aeiou" else f"a {noun}", works)
    for nouns, works in FIELDS
    for noun in nouns
)
