"""Comparing: each number on a text small enough to count by hand, and each answer."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from heedful.errors import UserError
from heedful.text import train
from heedful.text.compare import Sample, TokenizerMeasurement, advise, compare, measure, split_sample

RNG = random.Random(7)
WORDS = ["".join(RNG.choices(["ka", "lo", "mi", "ten", "ra", "sto"], k=3)) for _ in range(60)]
CORPUS = [" ".join(RNG.choices(WORDS, k=10)) for _ in range(600)]
LINES = ["ab cd", "ab  xyz é"]


def test_words_bytes_and_unknowns_are_counted() -> None:
    made = measure("words", train(["ab cd ab cd", "é é"], kind="word"), LINES)
    assert made.tokens_per_word == 1
    assert made.unknown == 1 / 5
    assert made.whole_words == 4 / 5
    assert made.bytes_per_token == (5 + 10) / 5
    assert made.vocab_used == 4 / 7  # ab cd é <UNK> of these and <START> <STOP> <PAD>
    assert made.line_tokens == [2, 3]
    assert made.mb_per_second > 0


def test_spaces_and_pieces_are_counted_as_tokens_but_never_as_words() -> None:
    characters = measure("characters", train(LINES, kind="char"), LINES)
    assert characters.line_tokens == [5, 9]
    assert characters.tokens_per_word == 14 / 5
    assert characters.whole_words == 1 / 5  # é
    pieces = measure("bytes", train(["ab cd"] * 9, kind="bpe"), LINES)
    assert pieces.unknown == 0
    assert pieces.whole_words == 3 / 5  # "ab" and " cd" were learned, xyz and é are parts


@pytest.mark.parametrize("kind", ["bpe", "wordpiece", "unigram"])
def test_whole_words_are_those_that_are_one_piece_by_themselves(kind: str) -> None:
    made = train(CORPUS, kind=kind, vocab_size=320 if kind == "bpe" else 90, sentinels=0)
    lines = ["ka " + line for line in CORPUS[:50]]
    space = " " if kind == "bpe" else ""
    words = [word for line in lines for word in line.split()[1:]]
    split = [made.pieces(made.encode(space + word, special=False).ids) for word in words]
    whole = sum(len([piece for piece in pieces if piece != "Ġ"]) == 1 for pieces in split)
    whole += 50 * (len(made.encode("ka", special=False).ids) == 1)
    assert 0.05 < whole / len(words) < 0.95, "the corpus shows no difference"
    assert measure(kind, made, lines).whole_words == pytest.approx(whole / (len(words) + 50))


def test_copies_of_a_line_are_on_one_side() -> None:
    sample = split_sample([*CORPUS, *CORPUS, "", "  "])
    assert not set(sample.train) & set(sample.held_out)
    assert len(sample.train) + len(sample.held_out) == 2 * len(CORPUS)
    assert 0.05 < len(sample.held_out) / (2 * len(CORPUS)) < 0.15
    assert not sample.cut
    assert sample.bytes == 2 * sum(len(line) for line in CORPUS)


def test_a_large_corpus_is_read_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heedful.text.compare.SAMPLE_BYTES", 10_000)
    monkeypatch.setattr("heedful.text.compare.HELD_OUT_BYTES", 300)
    sample = split_sample(CORPUS * 100)
    assert sample.cut
    assert sample.bytes < 11_000
    assert sum(map(len, sample.held_out)) < 500


def test_too_few_lines_are_an_error() -> None:
    with pytest.raises(UserError, match="3 different lines"):
        split_sample(["a", "b", "c", "c", "c"])


def test_a_tokenizer_of_another_language_loses_to_ones_own() -> None:
    other = train(["xu gyp zzor wub"] * 30, kind="bpe", vocab_size=400)
    found, verdict = compare({"other": other}, split_sample(CORPUS))
    assert [one.name for one in found] == ["other", "trained on this text"]
    assert verdict.train_own == "only from nothing"
    assert verdict.saving_ci95[0] <= verdict.saving <= verdict.saving_ci95[1]
    assert verdict.saving == pytest.approx(1 - found[1].tokens_per_word / found[0].tokens_per_word)
    assert "MB of text is little" in verdict.reason


def test_a_tokenizer_that_fits_already_is_kept() -> None:
    good = train(CORPUS, kind="bpe", vocab_size=500)
    bad = train(["xu gyp"] * 30, kind="char")
    found, verdict = compare({"bad": bad, "good": good}, split_sample(CORPUS))
    assert verdict.train_own == "no"
    assert verdict.best == "good"
    assert found[-1].vocab_size <= 512


def test_a_tokenizer_without_a_model_is_not_called_one() -> None:
    sample = split_sample(CORPUS)
    good = train(CORPUS, kind="bpe", vocab_size=300, sentinels=0)
    other = train(["xu gyp zzor"] * 30, kind="bpe")
    for made, verdict in ((good, "no"), (other, "only from nothing")):
        _, bare = compare({"it": made}, sample, 290, bare=["it"])
        _, shipped = compare({"it": made}, sample, 290)
        assert bare.train_own == shipped.train_own == verdict
        assert "a tokenizer of its own already" in bare.reason
        assert "give up a pretrained model" not in bare.reason
        assert "tokenizer of its own already" not in shipped.reason
        assert "pretrained model" in shipped.reason


def test_the_same_tokenizer_once_more_gains_nothing() -> None:
    sample = split_sample(CORPUS)
    same = train(sample.train, kind="bpe", vocab_size=600, sentinels=0)
    _, verdict = compare({"it": same}, sample, 600)
    assert (verdict.train_own, verdict.saving) == ("no", 0)
    assert verdict.reason.endswith("it is a tokenizer of its own for such text already")


def test_many_unknowns_are_a_reason_whatever_the_length() -> None:
    words = train(["one word only"] * 9, kind="word")
    _, verdict = compare({"words": words}, split_sample(CORPUS), 400)
    assert verdict.train_own == "yes"
    assert "unknown even to words" in verdict.reason


def test_case_is_dropped_only_where_the_best_drops_it() -> None:
    corpus = [line.title() for line in CORPUS]
    for lowercase in (False, True):
        found, _ = compare({"it": train(corpus, kind="bpe", lowercase=lowercase)}, split_sample(corpus))
        assert [one.lowercases for one in found] == [lowercase, lowercase]


def test_a_difference_within_chance_is_no_reason() -> None:
    best = TokenizerMeasurement("it", "bpe", 500, 2.0, 0.0, 0.5, 4.0, 1.0, 1.0, False, [10, 10])
    sample = Sample(["a"], ["b"], 10, cut=True)
    noisy = replace(best, name="own", line_tokens=[3, 13])
    steady = replace(best, name="own", line_tokens=[8, 8])
    assert advise(best, noisy, sample).saving == advise(best, steady, sample).saving == pytest.approx(0.2)
    assert advise(best, noisy, sample).train_own == "no"
    assert advise(best, steady, sample).train_own == "only from nothing"
