"""N-gram baselines: proper probabilities, the same tokens as the model's, and a check that fires."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from heedful.cli.pretrain import show_figures
from heedful.evaluation import ngrams
from heedful.evaluation.checks.language import beats_ngrams
from heedful.evaluation.ngrams import KneserNey, NgramBaselines, estimate_discounts, join_grams
from heedful.objectives import Causal, Masked
from heedful.objectives.packed import TokenLists
from heedful.runs.schemas import SplitResult
from heedful.text import train

VOCABULARY = 9


def draw_tokens(n: int, seed: int = 0) -> np.ndarray:
    """Return tokens of which each is often the sum of the last two."""
    rng, ids = np.random.default_rng(seed), [1, 2]
    while len(ids) < n:
        ids.append((ids[-1] + ids[-2]) % VOCABULARY if rng.random() < 0.7 else int(rng.integers(VOCABULARY)))
    return np.array(ids)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_probabilities_of_all_tokens_add_up_to_one(order: int) -> None:
    grams = join_grams(draw_tokens(80), np.array([0, 40]), np.array([39, 39]), VOCABULARY)
    model, width = KneserNey(grams, order, VOCABULARY), VOCABULARY + 1
    for first in range(width):
        for second in range(VOCABULARY):
            p = model.probabilities((first * width + second) * width + np.arange(VOCABULARY))
            assert p.sum() == pytest.approx(1)
            assert p.min() > 0


def test_the_trigram_is_that_of_the_formula() -> None:
    """Chen and Goodman's recursion, written with dictionaries."""
    ids = draw_tokens(300)
    grams = [tuple(ids[i : i + 3].tolist()) for i in range(len(ids) - 2)]
    tables = {3: Counter(grams)}
    tables[2] = Counter(gram[1:] for gram in tables[3])
    tables[1] = Counter(gram[1:] for gram in tables[2])

    def probability(gram: tuple[int, ...]) -> float:
        if not gram:
            return 1 / VOCABULARY
        table = tables[len(gram)]
        discounts = estimate_discounts(np.array(list(table.values())))
        after = {other: count for other, count in table.items() if other[:-1] == gram[:-1]}
        if not after:
            return probability(gram[1:])
        left = sum(discounts[min(count, 3) - 1] for count in after.values())
        own = after[gram] - discounts[min(after[gram], 3) - 1] if gram in after else 0.0
        return float(own + left * probability(gram[1:])) / sum(after.values())

    width = VOCABULARY + 1
    keys = np.array([(a * width + b) * width + c for a, b, c in grams])
    asked = [(a, b, c) for a in range(3) for b in range(4) for c in range(VOCABULARY)]
    p = KneserNey(keys, 3, VOCABULARY).probabilities(
        np.array([(a * width + b) * width + c for a, b, c in asked])
    )
    assert p == pytest.approx([probability(gram) for gram in asked])


def test_a_text_of_second_order_needs_the_trigram() -> None:
    grams, unseen = (
        join_grams(draw_tokens(n, seed), np.array([0]), np.array([n - 1]), VOCABULARY)
        for n, seed in ((60_000, 0), (5_000, 1))
    )
    one, two, three = (
        float(-np.log2(KneserNey(grams, k, VOCABULARY).probabilities(unseen)).mean()) for k in (1, 2, 3)
    )
    width = VOCABULARY + 1
    expected = (unseen // width**2 + unseen // width % width) % VOCABULARY == unseen % width
    truth = float(-np.log2(np.where(expected, 0.7 + 0.3 / VOCABULARY, 0.3 / VOCABULARY)).mean())
    # Frequencies of 60,000 tokens are not exact, and the counts spread over more cells with each order.
    assert one == pytest.approx(math.log2(VOCABULARY), abs=0.01)
    assert two == pytest.approx(math.log2(VOCABULARY), abs=0.02)
    assert three == pytest.approx(truth, abs=0.03)


def make_texts() -> tuple[dict[str, TokenLists], object]:
    lines = [f"the {a} sees the {b}" for a in ("river", "hill", "cloud") for b in ("lamp", "stone", "sea")]
    tokenizer = train(lines, kind="char")
    rows = [tokenizer.encode(line).ids for line in lines]
    return {"train": TokenLists.of(rows[:6]), "dev": TokenLists.of([*rows[6:], []])}, tokenizer


@pytest.mark.parametrize("block", [64, 7])
@pytest.mark.parametrize("together", [True, False])
def test_the_same_tokens_are_predicted_as_by_the_model(block: int, together: bool) -> None:
    texts, tokenizer = make_texts()
    objective = Causal(texts, tokenizer, block=block, together=together)
    baselines = NgramBaselines(objective)
    assert baselines.counted == (objective.packings["train"].sizes.sum(),) * 2
    grams, of = baselines.scored_grams("dev")
    width = tokenizer.vocab_size + 1
    labels = [part.tensors["labels"].numpy() for part, _ in objective.evaluation_batches("dev", None, None)]
    predicted = np.concatenate([part[part >= 0] for part in labels])
    owners = np.concatenate([owner for _, owner in objective.evaluation_batches("dev", None, None)])
    assert sorted(zip(of, grams % width, strict=True)) == sorted(zip(owners, predicted, strict=True))
    sums = baselines.score("dev")
    assert list(sums) == ["unigram", "bigram", "trigram"]
    assert all(len(s) == 4 and s[3] == 0 for s in sums.values())
    assert sums["trigram"].sum() < sums["bigram"].sum() < sums["unigram"].sum()


def test_masked_tokens_have_a_unigram_without_special_tokens() -> None:
    texts, tokenizer = make_texts()
    baselines = NgramBaselines(Masked(texts, tokenizer, block=32, rate=0.3))
    assert list(baselines.models) == ["unigram"]
    special = np.array(sorted(tokenizer.special_ids))
    assert baselines.models["unigram"].probabilities(special).max() < 0.01
    assert np.isfinite(baselines.score("dev")["unigram"]).all()


def test_very_many_tokens_are_counted_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngrams, "MOST_TOKENS", 50)
    texts, tokenizer = make_texts()
    counted, total = NgramBaselines(Causal(texts, tokenizer, block=8)).counted
    assert 40 <= counted <= 60 < total
    check = beats_ngrams(
        np.array([9, 9]), np.array([1.0, 1.0]), {"trigram": np.array([9.0, 8.0])}, (counted, total)
    )
    assert f"counted {counted} of {total} tokens" in check.message


@pytest.mark.parametrize(
    ("bits", "status", "words"),
    [
        (3.77, "failed", "Worse than a trigram"),
        (2.95, "warning", "No better than a trigram"),
        (2.2, "passed", "Better"),
    ],
)
def test_a_model_no_better_than_a_trigram_is_found(bits: float, status: str, words: str) -> None:
    rng, tokens = np.random.default_rng(0), np.full(200, 50)
    simple = {
        name: 50 * math.log(2) * (value + 0.2 * rng.standard_normal(200))
        for name, value in (("unigram", 4.5), ("trigram", 2.95))
    }
    losses = 50 * math.log(2) * (bits + 0.2 * rng.standard_normal(200))
    check = beats_ngrams(tokens, losses, simple, (10, 10))
    assert (check.status, check.message.startswith(words)) == (status, True)
    assert f"{losses.sum() / tokens.sum() / math.log(2):.3f} bits per token" in check.message
    # A single text has no interval.
    alone = beats_ngrams(tokens[:1], losses[:1], {"trigram": losses[:1] + 1}, (10, 10))
    assert (alone.status, "interval" in alone.message) == ("passed", False)
    assert beats_ngrams(tokens, losses, {}, (0, 0)).status == "skipped"


def test_the_table_has_the_baselines_below_each_split(capsys: pytest.CaptureFixture[str]) -> None:
    dev = SplitResult("perplexity", 8.0, 100, bits_per_character=3.0, bits_per_byte=2.0)
    simple = {"unigram": 32.0, "trigram": 4.0}
    bits = {"unigram": 5.0, "trigram": 2.0}
    show_figures("a run", {"dev": replace(dev, baselines=simple, baseline_bits_per_character=bits)})
    table = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["unigram", "32.00", "5.000", "3.333"] in table
    assert ["trigram", "4.00", "2.000", "1.333"] in table
