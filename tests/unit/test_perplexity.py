"""Figures of language models: what they are, and what they can be compared with."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heedful.evaluation.checks.language import row_truncation, shared_lines, unknown_tokens
from heedful.evaluation.metrics import PERPLEXITY, functions
from heedful.evaluation.perplexity import Sizes, compute_figures, measure_texts
from heedful.text import train


def test_corpus_perplexity_weighs_tokens_and_the_mean_weighs_sentences() -> None:
    losses, tokens = np.array([2.0, 9.0]), np.array([1, 9])
    found = compute_figures(losses, tokens)
    assert found.perplexity == pytest.approx(math.exp(11 / 10))
    assert found.mean_sentence_perplexity == pytest.approx((math.exp(2) + math.exp(1)) / 2)
    assert (found.tokens, found.texts) == (10, 2)
    assert found.loss == pytest.approx(1.1)


def test_texts_without_a_predicted_token_do_not_count() -> None:
    assert compute_figures([1.0, 0.0, 3.0], [1, 0, 2]) == compute_figures([1.0, 3.0], [1, 2])
    with pytest.raises(ValueError, match="no tokens"):
        compute_figures([0.0], [0])


def test_a_perplexity_that_overflows_is_infinite() -> None:
    assert compute_figures([5000.0], [1]).perplexity == math.inf
    assert PERPLEXITY.interval(np.array([1]), np.array([5000.0])) is None


def test_bits_a_character_do_not_depend_on_how_the_text_is_cut() -> None:
    # Four equally probable characters: two bits each, whether predicted one by one or in pairs of sixteen.
    n, whole = 30, np.ones(3, bool)
    sizes = Sizes(np.full(3, n), np.full(3, n), whole)
    single = compute_figures(np.full(3, n * math.log(4)), np.full(3, n), sizes)
    pairs = compute_figures(np.full(3, n / 2 * math.log(16)), np.full(3, n // 2), sizes)
    assert single.perplexity == pytest.approx(4)
    assert pairs.perplexity == pytest.approx(16)
    assert single.bits_per_character == pytest.approx(2)
    assert pairs.bits_per_character == pytest.approx(2)


def test_texts_that_are_not_read_whole_have_no_bits() -> None:
    sizes = Sizes(np.array([10, 1000]), np.array([10, 1000]), np.array([True, False]))
    found = compute_figures([10 * math.log(2), 5.0], [5, 5], sizes)
    assert found.bits_per_character == pytest.approx(1)
    none = Sizes(np.array([10]), np.array([10]), np.array([False]))
    assert compute_figures([1.0], [1], none).bits_per_byte is None


def test_a_first_token_that_nothing_predicts_stands_for_no_character() -> None:
    texts = ["añb", "ba"]
    characters = train(texts, kind="char")
    firsts = np.array([characters.encode(text).ids[0] for text in texts])
    found = measure_texts(texts, firsts, np.ones(2, bool), characters)
    assert found.characters.tolist() == [2, 1]
    assert found.bytes.tolist() == [3, 1]
    framed = train(texts, kind="word", min_count=1)
    firsts = np.array([framed.encode(text).ids[0] for text in texts])
    assert measure_texts(texts, firsts, np.ones(2, bool), framed).characters.tolist() == [3, 2]


def test_many_texts_give_about_the_interval_of_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    tokens = rng.integers(5, 40, 3000)
    losses = tokens * rng.gamma(9, 0.4, 3000)
    whole = PERPLEXITY.interval(tokens, losses)
    monkeypatch.setattr(functions, "TEXT_GROUPS", 600)
    grouped = PERPLEXITY.interval(tokens, losses)
    assert whole is not None
    assert grouped is not None
    assert grouped.low < compute_figures(losses, tokens).perplexity < grouped.high
    assert grouped.high - grouped.low == pytest.approx(whole.high - whole.low, rel=0.25)


def test_many_unknown_tokens_are_a_warning() -> None:
    assert unknown_tokens({"train": 0.0, "dev": 0.001}).status == "passed"
    found = unknown_tokens({"train": 0.01, "dev": 0.2})
    assert found.status == "warning"
    assert "20 % of dev's tokens" in found.message


def test_packed_documents_are_divided_and_single_ones_cut() -> None:
    lengths = np.array([5, 5, 50, 50])
    assert row_truncation(lengths, 10, 100, packed=False).status == "warning"
    packed = row_truncation(lengths, 10, 100, packed=True)
    assert packed.status == "passed"
    assert "50 % of texts" in packed.message
    assert row_truncation(lengths, 60, 100, packed=True).message == "No text is longer than 60 tokens."


def test_scored_texts_that_were_trained_on_are_found() -> None:
    train_texts = [f"text number {i}" for i in range(50)]
    assert shared_lines({"train": train_texts, "dev": ["another", "and one"]}).status == "passed"
    assert shared_lines({"train": train_texts}).status == "skipped"
    found = shared_lines({"train": train_texts, "dev": ["Text, number 7!", "another"]})
    assert found.status == "warning"
    assert found.value == 0.5
