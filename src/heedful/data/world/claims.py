"""Templates of passages of other kinds: what is allowed, who signed, what is older; and fillers."""

from __future__ import annotations

from heedful.data.world.text import split_phrases

FILLERS = (
    "The weather played no part in it.",
    "Opinions about this still differ.",
    "A local newspaper wrote about it at length.",
    "There are photographs from later years.",
    "The records are kept in the cellar of the archive.",
    "School classes learn about it in the third year.",
    "Much of this was forgotten for a long time.",
    "Two of the witnesses wrote memoirs.",
    "A song about it is still heard at weddings.",
    "The rest of the story is less certain.",
    "Tourists seldom hear of this.",
    "A small exhibition opened some years ago.",
    "The council has discussed a memorial.",
    "Older people tell it differently.",
    "Nothing like it is known from the next valley.",
    "A second volume was planned and never printed.",
)

# Who may do what where: {t} is a group of things, {p} where it is allowed, {q} where it is forbidden.
RULES = (
    "{T} are allowed in {p} but not in {q}.",
    "{T} may enter {p}; {q} is closed to them.",
    "Nobody minds {t} in {p}, whereas in {q} they are forbidden.",
    "{Q} bans {t}, and {p} welcomes them.",
    "A sign keeps {t} out of {q}, but none does so in {p}.",
    "Although {t} are not permitted in {q}, they are in {p}.",
    "{T} have no place in {q}, yet every right to be in {p}.",
    "In {p} one sees {t} daily, in {q} never, because of the rules.",
)
RULE_QUESTIONS = (
    "are {t} allowed in {x} of {town}",
    "can you take {t} into {x}",
    "are {t} permitted in {x}",
    "may {t} enter {x} in {town}",
    "is {x} open to {t}",
)
RULE_CONTRARY = (
    "are {t} banned from {x} in {town}",
    "are {t} forbidden in {x}",
    "is it against the rules to have {t} in {x}",
)
RULE_TITLES = ("House rules of {town}", "{town} public order", "Parks of {town}", "{town} by-laws")
RULE_OPENINGS = (
    "The by-laws of {town} fill a thick book.",
    "Each public place in {town} has rules of its own.",
    "A new warden in {town} takes the rules seriously.",
    "In {town} the rules changed after a noisy summer.",
)
RULE_THINGS = split_phrases(
    "dogs, bicycles, drums, ball games, horses, picnics, kites, barrows, prams, open fires, market "
    "stalls, choirs"
)
RULE_PLACES = split_phrases(
    "the park, the boat house, the churchyard, the arcade, the orchard, the castle yard, the meadow, "
    "the rose garden, the old harbour, the cloister, the stadium, the town forest"
)

# Who took part and who did not: {in_} and {out} are lists.
PARTIES = (
    "{In_} signed, while {out} refused.",
    "Of those invited, {in_} signed; {out} stayed away.",
    "Although {out} would not sign, {in_} did.",
    "{Out} walked out before the end, and only {in_} signed.",
    "The signatures of {in_} can be read on it; those of {out} are missing.",
    "{In_} put their names to it, but not {out}.",
    "Everyone signed except {out}; that left {in_}.",
    "It was signed by {in_} and never by {out}.",
)
PARTY_QUESTIONS = (
    "did {x} sign the treaty of {town}",
    "was the treaty of {town} signed by {x}",
    "is the signature of {x} on the treaty of {town}",
    "were {x} among those who signed at {town}",
)
PARTY_CONTRARY = (
    "did {x} refuse to sign the treaty of {town}",
    "is the signature of {x} missing from the treaty of {town}",
    "did the treaty of {town} do without {x}",
)
PARTY_OPENINGS = (
    "The treaty of {town} ended a long quarrel about water.",
    "The treaty was drawn up in {town} within a week.",
    "A copy of the treaty of {town} hangs in the town hall.",
    "The treaty of {town} regulates who may fish where.",
)
PARTY_MEMBERS = split_phrases(
    "the bakers, the coopers, the smiths, the tanners, the weavers, the fishers, the masons, the "
    "millers, the brewers, the carters, the glaziers, the ropemakers"
)

# Which is older: {a} and {b} with their years.
AGES = (
    "{E} dates from {v}.",
    "{E} was finished in {v}.",
    "Work on {e} ended in {v}.",
    "In {v} {e} was opened.",
    "{E} has stood since {v}.",
    "The date on {e} is {v}.",
    "{V} is the year of {e}.",
    "A stone on {e} says {v}.",
)
AGE_QUESTIONS = (
    "is {a} in {town} older than {b}",
    "was {a} built before {b}",
    "did {a} in {town} open earlier than {b}",
    "is the age of {a} greater than that of {b}",
)
AGE_CONTRARY = (
    "is {a} in {town} younger than {b}",
    "was {a} built after {b}",
    "did {a} in {town} open later than {b}",
    "is {a} newer than {b}",
)
