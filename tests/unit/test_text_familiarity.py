from __future__ import annotations

import numpy as np

from heedful.text import load
from heedful.text.familiarity import find_script, measure_familiarity

ENGLISH = [
    "The food was cold and the service slow, we will never come back.",
    "i feel like depression is winning today, nobody at work noticed anything #tired",
    "ok",
    "?!",
    "",
]
OTHERS = [
    "Das Essen war leider kalt und die Bedienung sehr unfreundlich, wir kommen nicht wieder.",
    "Le service était lent et la nourriture froide, nous ne reviendrons jamais dans ce restaurant.",
    "Ruoka oli kylmää ja palvelu hidasta, emme tule koskaan takaisin tähän ravintolaan.",
    "Еда была холодной, а обслуживание медленным.",
    "食べ物は冷たく、サービスも遅かった",
    "我 的 大 人 中 国",  # characters that the vocabulary has
    "Привет",
]


def test_other_languages_and_scripts_are_unfamiliar_to_an_english_model() -> None:
    familiarity = measure_familiarity([*ENGLISH, *OTHERS], load("minilm"))
    assert familiarity.unfamiliar.tolist() == [False] * len(ENGLISH) + [True] * len(OTHERS)
    assert familiarity.scripts == ("LATIN",)
    assert familiarity.foreign[-1] == 1.0
    assert familiarity.pieces[0] == 1.0  # every word has a piece of its own


def test_what_the_vocabulary_lacks_is_counted() -> None:
    familiarity = measure_familiarity(["good ᚠᚢᚦ", "good"], load("minilm"))
    np.testing.assert_allclose(familiarity.unknown, [0.5, 0.0])
    assert familiarity.unfamiliar.tolist() == [True, False]


def test_letters_have_a_script_and_other_characters_do_not() -> None:
    assert [find_script(c) for c in "aß早д1!_"] == ["LATIN", "LATIN", "CJK", "CYRILLIC", "", "", ""]
