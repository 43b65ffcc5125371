"""Templates of passages for yes/no questions: things, statements about them, and questions.

In every scene several things have a value each. {e} is a thing, {v} its value, {w} a value that is denied;
{E} is {e} with a capital. Questions have no capitals and no question mark, like those of BoolQ.
"""

from __future__ import annotations

from dataclasses import dataclass

from heedful.data.world.text import split_phrases


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


MATERIALS = Scene(
    titles=("Buildings of {town}", "{town} old town", "Architecture of {town}", "{town} harbour"),
    openings=(
        "{town} has kept more of its old buildings than its neighbours.",
        "Visitors to {town} usually begin at the market square.",
        "The old town of {town} burnt down twice and was rebuilt each time.",
        "Few streets in {town} are wider than a cart.",
        "{town} grew rich on salt and spent its money on building.",
        "The centre of {town} has been closed to traffic for years.",
    ),
    things=split_phrases(
        "the mill, the bridge, the chapel, the library, the market hall, the lighthouse, the "
        "theatre, the station, the granary, the town hall, the bath house, the school, the "
        "hospital, the customs house"
    ),
    values=split_phrases(
        "granite, brick, oak, slate, marble, limestone, concrete, sandstone, iron, timber, basalt, copper"
    ),
    said=(
        "{E} is built of {v}.",
        "{E} was raised in {v}.",
        "For {e} the masons used {v}.",
        "{V} was chosen for {e}.",
        "{E} stands out for its {v}.",
        "The walls of {e} are of {v}.",
        "Everyone notices the {v} of {e}.",
        "In the case of {e} the council paid for {v}.",
    ),
    denied=(
        "{E} is not built of {w}, as is often said, but of {v}.",
        "Contrary to the guide books, {e} is of {v} and not of {w}.",
        "Plans to build {e} in {w} were dropped, and {v} was used.",
        "{E} looks like {w} from afar, yet it is {v}.",
        "Nobody could afford {w} for {e}, so it was made of {v}.",
        "{V}, never {w}, was the material of {e}.",
    ),
    neither=(
        "Neither {e} nor {f} contains any {w}.",
        "No {w} was used for {e} or for {f}.",
        "Both {e} and {f} were built without {w}.",
        "There is no {w} in {e}, and none in {f}.",
    ),
    questions=(
        "is {e} in {town} made of {v}",
        "was {e} in {town} built of {v}",
        "are the walls of {e} of {v}",
        "did they use {v} for {e} in {town}",
        "is {v} the material of {e}",
    ),
    contrary=(
        "is {e} in {town} made of anything other than {v}",
        "was something else than {v} used for {e}",
        "is it wrong to say that {e} is built of {v}",
    ),
)

CONTESTS = Scene(
    titles=("{town} midsummer games", "Games of {town}", "{town} harvest fair", "{town} winter festival"),
    openings=(
        "The games of {town} are held every fourth year.",
        "Rain spoilt the first day of the games in {town}.",
        "The fair at {town} drew more visitors than ever.",
        "All events in {town} were decided on a single Sunday.",
        "Prizes in {town} are modest: a wreath and a round of cheese.",
        "The judges of {town} came from three countries.",
    ),
    things=split_phrases(
        "the boat race, the choir contest, the archery round, the baking prize, the long run, the "
        "chess final, the swimming relay, the kite contest, the log sawing, the poetry prize, the "
        "dog show, the sack race"
    ),
    values=split_phrases("{p0}, {p1}, {p2}, {p3}, {p4}, {p5}, {p6}, {p7}"),
    said=(
        "{E} was won by {v}.",
        "{V} won {e}.",
        "First place in {e} went to {v}.",
        "In {e} nobody could beat {v}.",
        "{V} came out on top in {e}.",
        "The wreath for {e} was handed to {v}.",
        "{E} ended with a clear win for {v}.",
        "{V} took {e} by a narrow margin.",
    ),
    denied=(
        "{W} had trained hard for {e} but lost it to {v}.",
        "In {e} {w} led until the end, when {v} passed.",
        "It was not {w} but {v} who won {e}.",
        "{W} was declared the winner of {e} by mistake; the wreath belongs to {v}.",
        "Newspapers named {w} as winner of {e}, although it was {v}.",
        "{V} won {e}, while {w} did not even finish it.",
    ),
    neither=(
        "{W} won neither {e} nor {f}.",
        "{W} withdrew from both {e} and {f}.",
        "In {e} and in {f}, {w} came last.",
        "Neither {e} nor {f} brought {w} any luck.",
    ),
    questions=(
        "did {v} win {e} in {town}",
        "was {v} the winner of {e}",
        "was {e} in {town} won by {v}",
        "did first place in {e} go to {v}",
        "is {v} the person who won {e}",
    ),
    contrary=(
        "was {e} in {town} won by someone other than {v}",
        "did {v} fail to win {e}",
        "did {e} go to anyone but {v}",
    ),
    people=True,
)

DISHES = Scene(
    titles=("Cuisine of {town}", "{town} market kitchen", "Cooking in {town}", "{town} street food"),
    openings=(
        "The cooking of {town} is plain and filling.",
        "Every family in {town} guards its own recipes.",
        "The kitchen of {town} knows little sugar and much pepper.",
        "Travellers have praised the inns of {town} for centuries.",
        "In {town} lunch is the main meal of the day.",
        "Cooks in {town} waste nothing.",
    ),
    things=split_phrases(
        "the harbour soup, the wedding cake, the shepherd's pie, the black bread, the winter "
        "stew, the green sauce, the monk's dumpling, the festival sausage, the miller's porridge, "
        "the pilgrim's pancake, the widow's salad"
    ),
    values=split_phrases(
        "barley, leek, walnut, fennel, honey, beetroot, garlic, mustard, plum, cabbage, caraway, mushroom"
    ),
    said=(
        "{E} is made with {v}.",
        "{V} goes into {e}.",
        "The secret of {e} is {v}.",
        "No cook would make {e} without {v}.",
        "{E} owes its taste to {v}.",
        "One can smell the {v} in {e}.",
        "What makes {e} special is {v}.",
        "{E} gets a spoonful of {v}.",
    ),
    denied=(
        "{E} takes {v} but never {w}.",
        "Instead of {w}, {e} is made with {v}.",
        "Strangers add {w} to {e}; proper cooks take {v} and leave the {w} out.",
        "{E} used to contain {w}, which {v} has replaced.",
        "Despite its colour, {e} has no {w} in it, only {v}.",
        "{V} belongs in {e}, and {w} does not.",
    ),
    neither=(
        "Neither {e} nor {f} contains {w}.",
        "There is no {w} in {e} or in {f}.",
        "Anyone who dislikes {w} may eat both {e} and {f}.",
        "{W} is used neither for {e} nor for {f}.",
    ),
    questions=(
        "is there {v} in {e} of {town}",
        "is {e} made with {v}",
        "does {e} contain {v}",
        "do cooks in {town} put {v} into {e}",
        "does {v} belong in {e}",
    ),
    contrary=(
        "is {e} made without {v}",
        "is {e} safe for people who cannot eat {v}",
        "do cooks in {town} leave {v} out of {e}",
    ),
)

CLUBS = Scene(
    titles=("Clubs of {town}", "{town} community house", "{town} parish hall", "Evenings in {town}"),
    openings=(
        "The community house of {town} is open every evening.",
        "{town} has more clubs than pubs.",
        "Since the flood all clubs of {town} share one hall.",
        "The hall in {town} was a stable once.",
        "Keys to the hall of {town} are kept by the baker.",
        "On the notice board of {town} nothing is ever taken down.",
    ),
    things=split_phrases(
        "the choir, the chess club, the sewing circle, the rowing team, the brass band, the book "
        "club, the drama group, the bee club, the fire brigade, the dance class, the debating "
        "club, the photo club"
    ),
    values=split_phrases("Monday, Tuesday, Wednesday, Thursday, Friday, Saturday, Sunday"),
    said=(
        "{E} meets on {v}.",
        "{V} is the evening of {e}.",
        "On {v} the hall belongs to {e}.",
        "{E} gathers every {v}.",
        "Members of {e} keep {v} free.",
        "{E} has the room on {v}.",
        "Those who like {e} come on {v}.",
        "{E} has always chosen {v}.",
    ),
    denied=(
        "{E} no longer meets on {w}; it has moved to {v}.",
        "{E} wanted {w} but got {v}.",
        "It is on {v}, not on {w}, that {e} meets.",
        "{E} gave up {w} and now comes on {v}.",
        "Posters still show {w} for {e}, which really meets on {v}.",
        "{E} may use the hall on {v}, though not on {w}.",
    ),
    neither=(
        "Neither {e} nor {f} can come on {w}.",
        "On {w} there is no {x} and no {y}.",
        "{E} and {f} both avoid {w}.",
        "{W} suits neither {e} nor {f}.",
    ),
    questions=(
        "does {e} of {town} meet on {v}",
        "is {v} the day of {e}",
        "can i go to {e} in {town} on {v}",
        "does {e} have the hall on {v}",
        "is {e} on {v}",
    ),
    contrary=(
        "does {e} of {town} meet on a day other than {v}",
        "is it false that {e} meets on {v}",
        "is {v} the wrong day for {e}",
    ),
)

OWNERS = Scene(
    titles=("{town} lost property", "{town} guest house", "Court of {town}", "{town} auction"),
    openings=(
        "The inventory was taken in {town} after a wet autumn.",
        "The notary of {town} wrote everything down twice.",
        "In {town} an old house was cleared last week.",
        "The clerk of {town} asked each guest in turn.",
        "A list of objects hangs in the office of {town}.",
        "Much was carried through {town} on that morning.",
    ),
    things=split_phrases("{p0}, {p1}, {p2}, {p3}, {p4}, {p5}, {p6}, {p7}"),
    values=split_phrases(
        "the silver lamp, the cello, the red trunk, the globe, the parrot, the green coat, the "
        "walking stick, the telescope, the sewing machine, the stamp album, the brass kettle, the "
        "rocking chair, the typewriter"
    ),
    said=(
        "{E} owns {v}.",
        "{V} belongs to {e}.",
        "{E} is the owner of {v}.",
        "Everybody agrees that {v} is {e}'s.",
        "{E} came to collect {v}.",
        "{V} was bought by {e}.",
        "{E} inherited {v} from an aunt.",
        "It is {e} to whom {v} belongs.",
    ),
    denied=(
        "{E} owns {v}, but not {w}.",
        "{W} was offered to {e}, who took {v} in its place.",
        "{E} claimed {w} in vain and had to be content with {v}.",
        "{V} is {e}'s, whatever one hears about {w}.",
        "{E} sold {w} long ago and has only {v} now.",
        "What {e} owns is not {w} but {v}.",
    ),
    neither=(
        "{W} belongs neither to {e} nor to {f}.",
        "Neither {e} nor {f} has ever owned {w}.",
        "{E} and {f} both deny that {w} is theirs.",
        "{W} was refused by {e} and by {f}.",
    ),
    questions=(
        "does {e} own {v}",
        "is {v} in {town} the property of {e}",
        "does {v} belong to {e}",
        "is {e} the owner of {v}",
        "is {v} {e}'s",
    ),
    contrary=(
        "does {v} belong to someone other than {e}",
        "is it untrue that {e} owns {v}",
        "is {e} without {v}",
    ),
    people=True,
)

BIRTHS = Scene(
    titles=("{p0}", "{p1}", "{p2} and friends", "The circle of {p3}"),
    openings=(
        "A group of friends met every winter in {town}.",
        "Their letters were found in an attic in {town}.",
        "The club in {town} took in people from everywhere.",
        "A photograph from {town} shows them on a terrace.",
        "They shared a house in {town} for some years.",
        "In {town} they were known as the foreigners.",
    ),
    things=split_phrases("{p0}, {p1}, {p2}, {p3}, {p4}, {p5}, {p6}, {p7}"),
    values=split_phrases("{t0}, {t1}, {t2}, {t3}, {t4}, {t5}, {t6}, {t7}, {t8}"),
    said=(
        "{E} was born in {v}.",
        "{E} was a native of {v}.",
        "{V} was the birthplace of {e}.",
        "{E} came into the world in {v}.",
        "In {v} one can see the house where {e} was born.",
        "{E}, born in {v}, wrote little.",
        "The life of {e} began in {v}.",
        "It was in {v} that {e} was born.",
    ),
    denied=(
        "{E} was not born in {w} but in {v}.",
        "{E} grew up in {w}, although {v} was the birthplace.",
        "Born in {v}, {e} moved to {w} at the age of two.",
        "{E} liked to claim {w} as home; the register says born in {v}.",
        "{E} died in {w}, far from {v}, the place of birth.",
        "{W} has a statue of {e}, who was born in {v}.",
    ),
    neither=(
        "Neither {e} nor {f} ever saw {w}.",
        "{E} and {f} both studied in {w}.",
        "{E} met {f} in {w}.",
        "Later {e} and {f} lived in {w}.",
    ),
    questions=(
        "was {e} born in {v}",
        "is {v} the birthplace of {e}",
        "did {e} come into the world in {v}",
        "was {e} a native of {v}",
        "did the life of {e} begin in {v}",
    ),
    contrary=(
        "was {e} born outside {v}",
        "was {e} born anywhere else than in {v}",
        "is it a mistake to call {v} the birthplace of {e}",
    ),
    people=True,
)

BINDINGS = (MATERIALS, CONTESTS, DISHES, CLUBS, OWNERS, BIRTHS)
