"""The merges shown are the merges made."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, pre_tokenizers, trainers

from heedful.text import Tokenizer, train
from heedful.text.merges import format_piece, merge_words, split_words

LINES = ["lower lowest newer newest wider", "low new wide slow slower", "the lower, the newer"] * 4
MADE = train(LINES, kind="bpe", sentinels=0)


@settings(deadline=None)
@given(
    st.text(st.characters(blacklist_categories=["Cs"]), max_size=30)
    | st.lists(st.sampled_from(LINES)).map(" ".join)
)
def test_replaying_the_merges_gives_the_tokenizers_own_pieces(text: str) -> None:
    ends = {tuple(w.symbols): (w.steps[-1].pieces if w.steps else w.symbols) for w in merge_words(MADE, text)}
    for pieces in split_words(MADE, text):
        assert ends[tuple("".join(pieces))] == pieces


def test_each_step_applies_the_rule_learned_first() -> None:
    (word,) = merge_words(MADE, "lowest")
    rules = MADE.description["model"]["merges"]
    pieces = word.symbols
    assert pieces == list("lowest")
    assert word.steps
    for step in word.steps:
        fitting = [rules.index(list(pair)) for pair in zip(pieces, pieces[1:]) if list(pair) in rules]  # noqa: B905, RUF007
        assert step.rule == min(fitting)
        assert rules[step.rule] == [step.left, step.right]
        pieces = step.pieces


def test_a_word_is_shown_once_and_special_tokens_never() -> None:
    words = merge_words(MADE, "low<mask>low</s>", " low low")
    assert [word.symbols for word in words] == [list("low"), ["Ġ", "l", "o", "w"]]


@pytest.mark.parametrize("affixes", [{"end_of_word_suffix": "</w>"}, {"continuing_subword_prefix": "##"}])
def test_marked_pieces_are_replayed_too(affixes: dict[str, str]) -> None:
    backend = Backend(models.BPE(unk_token="<unk>", **affixes))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    backend.train_from_iterator(
        LINES, trainers.BpeTrainer(special_tokens=["<unk>"], show_progress=False, **affixes)
    )
    made = Tokenizer(backend, {"unk": "<unk>"})
    text = "lowest slower the"
    words = merge_words(made, text)
    assert [w.steps[-1].pieces for w in words] == list(split_words(made, text))
    assert len(words) == 3


def test_byte_fallback_pieces_stay_whole() -> None:
    vocabulary = {"<unk>": 0, "a": 1, "b": 2, "ab": 3, **{f"<0x{i:02X}>": 4 + i for i in range(256)}}
    backend = Backend(models.BPE(vocabulary, [("a", "b")], unk_token="<unk>", byte_fallback=True))
    backend.decoder = decoders.ByteFallback()
    (word,) = merge_words(Tokenizer(backend, {"unk": "<unk>"}), "abé")
    assert word.symbols == ["a", "b", "<0xC3>", "<0xA9>"]
    assert [step.pieces for step in word.steps] == [["ab", "<0xC3>", "<0xA9>"]]


def test_pieces_are_written_for_people() -> None:
    assert format_piece(MADE, "Ġlow") == "␣low"
    assert format_piece(MADE, "Ċ") == "\n"
    assert format_piece(MADE, "Ã©") == "é"
    assert format_piece(MADE, "Ã") == "\\xc3"
    assert format_piece(train(LINES, kind="wordpiece"), "##Ã") == "##Ã"
    assert format_piece(train(LINES, kind="char"), " ") == "␣"
