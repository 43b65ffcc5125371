from __future__ import annotations

import random
import time

import numpy as np
import pytest

from heedful.evaluation.give_away_words import find_give_away_words
from heedful.evaluation.near_duplicates import find_near_duplicates, measure_similarity

VOCABULARY = [
    f"{a}{b}{c}" for a in "bdfgklm" for b in "aeiou" for c in ("n", "r", "st", "ck", "lp", "ss", "mble")
]


def write_texts(n: int, seed: int, words: int = 20) -> list[str]:
    draws = random.Random(seed)
    return [" ".join(draws.choices(VOCABULARY, k=words)) for _ in range(n)]


def test_copies_with_a_word_changed_are_found_and_others_are_not() -> None:
    earlier, later = write_texts(300, 0), write_texts(300, 1)
    later[5] = earlier[100].upper() + "!!"
    later[6] = earlier[101].replace(" ", "  ", 3) + " bast"
    later[7] = "unlike " + earlier[102]
    later[8] = " ".join(earlier[103].split()[:8])  # less than half of it
    pairs = {pair.later: pair for pair in find_near_duplicates(earlier, later)}
    assert {row: pair.earlier for row, pair in pairs.items()} == {5: 100, 6: 101, 7: 102}
    assert pairs[5].similarity == 1
    assert 0.8 <= pairs[7].similarity < 1


def test_every_pair_above_the_limit_is_found_as_by_comparing_all() -> None:
    draws = random.Random(3)
    earlier = write_texts(60, 4)
    later = []
    for text in earlier:
        words = text.split()
        for _ in range(draws.randrange(5)):
            words[draws.randrange(len(words))] = draws.choice(VOCABULARY)
        later.append(" ".join(words))
    exact = {
        i for i, text in enumerate(later) if max(measure_similarity(text, old) for old in earlier) >= 0.8
    }
    assert 10 < len(exact) < 60
    assert {pair.later for pair in find_near_duplicates(earlier, later)} == exact


@pytest.mark.parametrize("text", ["", "a", "早い", "\ud800", "?!"])
def test_short_and_odd_texts_equal_themselves(text: str) -> None:
    [pair] = find_near_duplicates(["something else entirely", text], [text])
    assert (pair.earlier, pair.similarity) == (1, 1.0)
    assert find_near_duplicates([], [text]) == find_near_duplicates([text], []) == []


def test_many_texts_take_little_time() -> None:
    texts = write_texts(6000, 5)
    start = time.process_time()
    assert len(find_near_duplicates(texts[:5000], texts[4500:])) >= 500
    assert time.process_time() - start < 5


def test_a_word_that_gives_its_label_away_is_found_with_its_counts() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 600)
    texts = write_texts(600, 6)
    marked = np.flatnonzero(labels == 1)[:40]
    for row in marked:
        texts[row] += " Reuters"
    texts[int(np.flatnonzero(labels == 0)[0])] += " reuters"
    [word] = find_give_away_words(texts, labels)
    assert (word.word, word.label, word.texts, word.with_label) == ("reuters", 1, 41, 40)
    assert word.base == pytest.approx(labels.mean())
    assert word.p < 1e-6


def test_words_that_are_pure_by_chance_are_not_reported() -> None:
    labels = np.r_[np.zeros(950, int), np.ones(50, int)]  # with 95 % of one label, most words are pure
    assert find_give_away_words(write_texts(1000, 7), labels) == []
    assert find_give_away_words([], []) == []
    assert find_give_away_words(["same word"] * 30, [0] * 30) == []
