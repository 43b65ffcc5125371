"""What a model knows: confidence against outcome, halves kept apart, and strangers whom nobody knows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from heedful.errors import UserError
from heedful.evaluation.knowledge import (
    answer_when_sure,
    find_frame,
    find_mentioned,
    invent_strangers,
    judge_confidence,
    measure_agreement,
    summarize_replies,
)

GIVEN = [f"Given{chr(65 + i)}" for i in range(12)]
SURNAMES = [f"Sur{chr(65 + i)}" for i in range(12)]
QUESTIONS = [f"Where was {g} {s} born?" for g, s in zip(GIVEN, SURNAMES, strict=True)]


def test_an_honest_model_is_calibrated_and_a_boaster_is_not() -> None:
    draws = np.random.default_rng(0)
    sure = draws.random(4000)
    right = draws.random(4000) < sure
    honest, boaster = judge_confidence(sure, right), judge_confidence(np.sqrt(sure), right)
    assert honest.calibration_error < 0.03 < boaster.calibration_error
    assert honest.brier < boaster.brier
    assert honest.auroc == boaster.auroc, "the order is the same"
    assert honest.auroc == pytest.approx(5 / 6, abs=0.02)
    assert honest.brier == pytest.approx(1 / 6, abs=0.01)


def test_where_all_are_right_or_wrong_there_is_nothing_to_tell_apart() -> None:
    assert judge_confidence([0.9, 0.8], [True, True]).auroc is None
    assert judge_confidence([0.9, 0.8], [False, False]).auroc_ci95 is None


def test_the_threshold_comes_from_one_half_and_its_price_from_the_other() -> None:
    draws = np.random.default_rng(1)
    sure = draws.random(4000)
    right = draws.random(4000) < sure
    found = answer_when_sure(sure, right, risk=0.2)
    assert found.threshold is not None
    assert found.n == 2000
    assert found.wrong_share is not None
    assert found.wrong_share < 0.2
    assert 0.1 < found.coverage < 0.5
    again = answer_when_sure(sure, right, risk=0.2)
    assert found == again
    flipped = right.copy()
    order = np.argsort(sure)
    flipped[order[:100]] ^= True
    assert answer_when_sure(sure, flipped, risk=0.2).threshold == pytest.approx(found.threshold, abs=0.1)


def test_a_promise_that_cannot_be_kept_is_not_made() -> None:
    draws = np.random.default_rng(2)
    never = answer_when_sure(draws.random(200), draws.random(200) < 0.3, risk=0.05)
    assert (never.threshold, never.answered, never.coverage) == (None, 0, 0.0)
    assert never.wrong_share is None


def test_replies_say_how_often_the_answer_is_the_constant_one() -> None:
    train = Counter({"Oslo": 5, "Ulm": 5, "Rome": 1})
    found = summarize_replies(["Oslo", "Oslo", "Nowhere", "Ulm"], [0.9, 0.6, 0.1, 0.2], None, train)
    assert (found.constant, found.known, found.distinct, found.sure) == (0.5, 0.75, 3, 0.5)
    assert found.common[0] == ("Oslo", 0.5)
    assert found.right is None
    assert summarize_replies(["Oslo"], [0.9], [True], train).right == 1.0


def test_agreement_finds_an_answer_that_follows_the_surname() -> None:
    draws = np.random.default_rng(3)
    surnames = [f"s{i // 4}" for i in range(200)]
    towns = [f"t{hash_free(s) % 10}" for s in surnames]
    follows = measure_agreement(towns, surnames)
    assert follows.same == 1.0
    assert follows.anybody < 0.2
    assert follows.p < 0.001
    chance = measure_agreement([f"t{i}" for i in draws.integers(0, 10, 200)], surnames)
    assert chance.p > 0.01
    assert chance.same == pytest.approx(chance.anybody, abs=0.06)


def hash_free(text: str) -> int:
    return sum(map(ord, text)) * 7


def test_the_frame_is_what_all_questions_share() -> None:
    frame = find_frame(QUESTIONS)
    assert (frame.before, frame.after) == ("Where was ", " born?")
    assert frame.name(QUESTIONS[0]) == "GivenA SurA"
    assert frame.ask("Bo") == "Where was Bo born?"
    with pytest.raises(UserError, match="not one question"):
        find_frame(["Who is it?", "Who is it?"])
    with pytest.raises(UserError, match="not one question"):
        find_frame(["Where was Bo born?", "Where was born?"])


def test_strangers_have_names_that_exist_but_never_together() -> None:
    corpus = ["GivenA SurB. He was a friend of (GivenC SurD), and of nobody."]
    found = invent_strangers(QUESTIONS, corpus, count=40)
    names = [f"{s.given} {s.surname}" for s in found]
    assert len(names) == len(set(names)) == 40
    assert all(s.given in GIVEN and s.surname in SURNAMES for s in found)
    assert not set(names) & {f"{g} {s}" for g, s in zip(GIVEN, SURNAMES, strict=True)}
    assert not {"GivenA SurB", "GivenC SurD"} & set(names)
    assert max(Counter(s.surname for s in found).values()) == 4
    assert found[0].question == f"Where was {names[0]} born?"
    assert found == invent_strangers(QUESTIONS, corpus, count=40)
    assert found != invent_strangers(QUESTIONS, corpus, count=40, seed=1)


def test_everybody_who_exists_is_found_in_the_corpus() -> None:
    text = "“Ana Maria Lee” met Bo Li; Bo   Li left."
    assert set(find_mentioned(["Ana Maria Lee", "Bo Li", "Lee Li"], [text])) == {"Ana Maria Lee", "Bo Li"}
