"""The tasks of the world: answers follow from the texts, words alone do not give them, noise is as stated."""

from __future__ import annotations

import json
import re
from collections import Counter

import numpy as np
import pytest

from heedful.data.tasks import load_task
from heedful.data.world import make_task_folder
from heedful.data.world.files import write_birthplaces
from heedful.data.world.messages import DESKS
from heedful.data.world.people import World
from heedful.data.world.phrases import read_phrases
from heedful.data.world.questions import SCENES, YES_SHARE, Questions
from heedful.data.world.reviews import COMPOSED, LABEL_NOISE, SIMPLE, Reviews, count_stars, plan
from heedful.data.world.sentiment import Sentences
from heedful.evaluation.baselines import score_task_baselines
from heedful.linear.model import TfidfModel

WORLD = World(0)
BOOLQ_CEILING = 1.0


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEEDFUL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def load(name):
    return load_task(f"world/{name}")


def test_words_alone_stay_far_below_the_ceiling_on_yes_and_no(cache):
    scores = score_task_baselines(load("boolq"))
    for split in ("dev", "test"):
        assert scores[split]["bag_of_words"] < BOOLQ_CEILING - 0.15
        assert scores[split]["bag_of_words"] < scores[split]["majority"] + 0.05


def test_no_strength_of_regularisation_helps_words_on_yes_and_no():
    made = Questions(WORLD, 0)
    rows = [made.at(i) for i in range(5000)]
    labels = np.array([row.answer for row in rows], np.int64)
    for strength in (0.3, 30.0):
        model = TfidfModel.fit(
            [r.question for r in rows[:4000]],
            [r.passage for r in rows[:4000]],
            labels[:4000],
            ["no", "yes"],
            strengths=[strength],
        )
        found = model.probabilities(
            [r.question for r in rows[4000:]], [r.passage for r in rows[4000:]]
        ).argmax(1)
        assert np.mean(found == labels[4000:]) < BOOLQ_CEILING - 0.15


def test_words_alone_stay_below_the_ceiling_on_reviews_and_sentiment_but_above_the_majority(cache):
    reviews = score_task_baselines(load("reviews"))["dev"]
    assert reviews["majority"] + 0.05 < reviews["bag_of_words"] < 0.9 - 0.15
    sentences = score_task_baselines(load("sentiment"))["dev"]
    # Pairs of words see a negation that is next to its adjective; others are further away.
    assert sentences["majority"] + 0.1 < sentences["bag_of_words"] < 0.97 - 0.05


def test_the_desk_of_a_letter_is_in_its_subject_which_few_labels_do_not_tell(cache):
    subjects = [subject for desk in DESKS.values() for subject in desk]
    assert len(subjects) == len(set(subjects)) == 6 * 80
    task = load("messages")
    assert {name: len(s) for name, s in task.splits.items()} == {"train": 1500, "dev": 300, "test": 600}
    assert task.label_names == sorted(DESKS)
    for split in task.splits.values():
        for text, label in zip(split.texts[:200], split.labels[:200], strict=True):
            desks = {desk for desk, named in DESKS.items() if any(subject in text for subject in named)}
            assert task.label_names[label] in desks
    train, test = task.splits["train"], task.splits["test"]
    for rows, most in ((60, 0.3), (300, 0.55)):  # some subjects share parts of words
        model = TfidfModel.fit(
            train.texts[:rows], None, train.labels[:rows].astype(np.int64), task.label_names
        )
        assert np.mean(model.probabilities(list(test.texts)).argmax(1) == test.labels) < most


def test_the_named_tasks_loaders_read_the_world(cache):
    boolq, reviews, sentiment, births = (load(n) for n in ("boolq", "reviews", "sentiment", "birthplaces"))
    assert {name: len(s) for name, s in boolq.splits.items()} == {"train": 8000, "dev": 2000, "test": 1427}
    assert {name: len(s) for name, s in reviews.splits.items()} == {"train": 6000, "dev": 1000, "test": 1000}
    assert {name: len(s) for name, s in sentiment.splits.items()} == {
        "train": 6000,
        "dev": 1000,
        "test": 1000,
    }
    assert len(births.splits["train"]) == 1400
    assert len(births.splits["dev"]) == 300
    assert reviews.label_names == ["1", "2", "3", "4", "5"]


def test_a_task_folder_is_made_once_and_an_unknown_one_names_the_nearest(cache):
    folder = make_task_folder("world/sentiment")
    made = (folder / "train.tsv").stat().st_mtime_ns
    assert make_task_folder("sentiment") == folder
    assert (folder / "train.tsv").stat().st_mtime_ns == made
    assert (
        json.loads((folder / "world.json").read_text("utf-8"))["tasks"]["sentiment"]["best_possible"] == 0.97
    )
    with pytest.raises(Exception, match="world/boolq"):
        make_task_folder("world/boolk")


def test_no_row_is_in_two_splits(cache):
    for name in ("boolq", "reviews", "sentiment"):
        task = load(name)
        rows = [
            (text, pair)
            for split in task.splits.values()
            for text, pair in zip(split.texts, split.pairs or [None] * len(split), strict=True)
        ]
        assert len(set(rows)) == len(rows)


def facts_of(sentence, templates, **slots):
    """Read a sentence back with the templates that may have written it."""
    for template in templates:
        pattern = re.escape(template)
        for slot in set(re.findall(r"\\{(\w+)\\}", pattern)):
            first = True
            while f"\\{{{slot}\\}}" in pattern:
                part = f"(?P<{slot}>.+?)" if first else f"(?P={slot})"
                pattern = pattern.replace(f"\\{{{slot}\\}}", part, 1)
                first = False
        if found := re.fullmatch(pattern, sentence):
            yield {name.lower().rstrip("_"): value.lower() for name, value in found.groupdict().items()}


def sentences_of(passage):
    return re.split(r"(?<=\.) (?=[A-Z0-9])", passage.partition(" -- ")[2])


def test_answers_about_values_follow_from_the_passage():
    made, checked = Questions(WORLD, 0), Counter()
    for index in range(1500):
        row = made.at(index)
        for scene in (SCENES["materials"], SCENES["dishes"], SCENES["clubs"]):
            for contrary, forms in ((False, scene.questions), (True, scene.contrary)):
                for asked in facts_of(row.question, [f.replace("{town}", "{q}") for f in forms]):
                    if asked["e"] not in scene.things or asked["v"] not in map(str.lower, scene.values):
                        continue
                    stated = {}
                    for sentence in sentences_of(row.passage):
                        for fact in facts_of(sentence, scene.said + scene.denied):
                            if fact["e"] in scene.things and fact["v"] in map(str.lower, scene.values):
                                stated[fact["e"]] = fact["v"]
                    assert ((stated[asked["e"]] == asked["v"]) != contrary) == row.answer, row
                    checked[scene.things[0], contrary, row.answer] += 1
    assert len(checked) == 12
    assert min(checked.values()) >= 5


def test_answers_about_age_follow_from_the_years():
    made, checked = Questions(WORLD, 0), Counter()
    things = SCENES["materials"].things
    for index in range(1500):
        row = made.at(index)
        for contrary, forms in (
            (False, read_phrases("claims")["age_questions"]),
            (True, read_phrases("claims")["age_contrary"]),
        ):
            for asked in facts_of(row.question, [f.replace("{town}", "{q}") for f in forms]):
                if asked["a"] not in things or asked["b"] not in things:
                    continue
                years = {}
                for sentence in sentences_of(row.passage):
                    for fact in facts_of(sentence, read_phrases("claims")["ages"]):
                        years[fact["e"]] = int(fact["v"])
                assert ((years[asked["a"]] < years[asked["b"]]) != contrary) == row.answer, row
                checked[contrary, row.answer] += 1
    assert len(checked) == 4


def test_answers_about_signatures_and_rules_follow_from_the_passage():
    made, checked = Questions(WORLD, 0), Counter()
    for index in range(1500):
        row = made.at(index)
        for contrary, forms in (
            (False, read_phrases("claims")["party_questions"]),
            (True, read_phrases("claims")["party_contrary"]),
        ):
            for asked in facts_of(row.question, [f.replace("{town}", "{q}") for f in forms]):
                if asked["x"] not in read_phrases("claims")["party_members"]:
                    continue
                facts = [
                    f
                    for s in sentences_of(row.passage)
                    for f in facts_of(s, read_phrases("claims")["parties"])
                ]
                assert facts
                assert ((asked["x"] in facts[0]["in"]) != contrary) == row.answer, row
                checked["party", contrary, row.answer] += 1
        for contrary, forms in (
            (False, read_phrases("claims")["rule_questions"]),
            (True, read_phrases("claims")["rule_contrary"]),
        ):
            for asked in facts_of(row.question, [f.replace("{town}", "{q}") for f in forms]):
                if (
                    asked["t"] not in read_phrases("claims")["rule_things"]
                    or asked["x"] not in read_phrases("claims")["rule_places"]
                ):
                    continue
                facts = [
                    f for s in sentences_of(row.passage) for f in facts_of(s, read_phrases("claims")["rules"])
                ]
                allowed = [
                    f["p"] == asked["x"]
                    for f in facts
                    if f["t"] == asked["t"] and f["p"] in read_phrases("claims")["rule_places"]
                ]
                assert (allowed[0] != contrary) == row.answer, row
                checked["rule", contrary, row.answer] += 1
    assert len(checked) == 8


def test_questions_have_boolqs_form_and_share():
    made = Questions(WORLD, 5)
    rows = [made.at(i) for i in range(3000)]
    assert abs(np.mean([r.answer for r in rows]) - YES_SHARE) < 0.04
    for row in rows:
        assert row.question == row.question.lower()
        assert not row.question.endswith("?")
        assert " -- " in row.passage
        assert "{" not in row.question + row.passage
        assert "\n" not in row.passage


def test_the_same_words_stand_in_passages_of_either_answer():
    made = Questions(WORLD, 1)
    seen = {True: Counter(), False: Counter()}
    totals = Counter()
    for i in range(6000):
        row = made.at(i)
        totals[row.answer] += 1
        seen[row.answer].update(set(re.findall(r"\w+", row.passage.lower())))
    for word in ("not", "never", "neither", "no", "but", "although", "only"):
        share = {answer: seen[answer][word] / totals[answer] for answer in (True, False)}
        sigma = np.sqrt(0.25 / min(totals.values())) * 1.5
        assert abs(share[True] - share[False]) < 5 * sigma
        assert share[True] > 0.01


def test_review_labels_move_by_one_star_as_often_as_stated():
    made = Reviews(WORLD, 0)
    rows = [made.at(i) for i in range(6000)]
    moved = [row.label - row.stars for row in rows]
    assert set(moved) == {-1, 0, 1}
    n = sum(map(bool, moved))
    assert abs(n - 6000 * LABEL_NOISE) < 5 * np.sqrt(6000 * LABEL_NOISE * (1 - LABEL_NOISE))
    assert {row.label for row in rows} == {1, 2, 3, 4, 5}
    assert Counter(row.stars for row in rows).most_common(1)[0][0] == 5


def test_stars_are_the_weighted_mean_of_judgements():
    good, but, above, wrong, nothing = (
        SIMPLE[0],
        next(f for f in COMPOSED if "but {b}" in f[0]),
        next(f for f in COMPOSED if f[0].startswith("Above")),
        next(f for f in COMPOSED if "cannot agree" in f[0]),
        next(f for f in COMPOSED if "who cares" in f[0]),
    )
    assert count_stars([(good, 2, 1), (good, 2, 1)]) == 5
    assert count_stars([(good, 2, 1), (good, -2, 1)]) == 3
    assert count_stars([(but, 2, -2)]) == 2
    assert count_stars([(but, -2, 2)]) == 4
    assert count_stars([(wrong, 2, 1)]) == 1
    assert count_stars([(above, 2, 1), (good, -2, 1)]) == 4
    assert count_stars([(nothing, -2, 1), (good, 2, 1)]) == 5
    assert count_stars([(nothing, -2, 1)]) == 0


@pytest.mark.parametrize("target", [1, 2, 3, 4, 5])
def test_a_review_is_planned_for_its_stars(target):
    from heedful.data.world.draws import Source

    assert all(count_stars(plan(target, Source(0, "plan").at(i))) == target for i in range(50))


def test_sentiment_means_what_it_says():
    from heedful.data.world import sentiment

    made = Sentences(WORLD, 0)
    rows = [made.at(i) for i in range(4000)]
    wrong = np.mean([row.label != row.meant for row in rows])
    assert abs(wrong - sentiment.LABEL_NOISE) < 0.015
    assert abs(np.mean([row.meant for row in rows]) - 0.5) < 0.05
    for row in rows:
        assert "{" not in row.text
        assert row.text == row.text.lower()
        words = set(re.findall(r"\w+", row.text))
        good, bad = words & set(sentiment.GOOD), words & set(sentiment.BAD)
        if good and not bad and len(good) > 1:
            assert row.meant == 1  # two words of one kind never stand in a twisted sentence alone
        if bad and not good and len(bad) > 1:
            assert row.meant == 0


def test_known_facts_are_those_of_the_files(tmp_path):
    births, facts = tmp_path, write_birthplaces(tmp_path, World(3), 3, 400)
    rows = {
        split: [line.split("\t") for line in (births / file).read_text("utf-8").splitlines()]
        for split, file in (
            ("train", "birth_places_train.tsv"),
            ("dev", "birth_dev.tsv"),
            ("test", "birth_test_inputs.tsv"),
            ("unseen", "birth_unseen.tsv"),
        )
    }
    wiki = (births / "wiki.txt").read_text("utf-8")
    assert wiki.endswith("\n")
    lines = wiki.splitlines()
    assert facts["rows"] == {"wiki": len(lines)} | {s: len(r) for s, r in rows.items()}
    biographies = {line.partition(".")[0]: line for line in lines}
    named = {s: [re.fullmatch(r"Where was (.+) born\?", r[0])[1] for r in found] for s, found in rows.items()}
    for split in ("train", "dev", "test"):
        assert all(name in biographies for name in named[split])
    assert all(
        answer in biographies[name] for (_, answer), name in zip(rows["dev"], named["dev"], strict=True)
    )
    assert not [name for name in named["unseen"] if name in wiki]
    assert len({name for split in named.values() for name in split}) == 400 + len(rows["unseen"])
    constant = Counter(answer for _, answer in rows["train"]).most_common(1)[0][1]
    told = facts["constant_answer"]
    assert sum(answer == told for _, answer in rows["train"]) == constant
    share = np.mean([answer == told for _, answer in rows["dev"]])
    assert facts["constant_answer_on_dev"] == pytest.approx(share)
