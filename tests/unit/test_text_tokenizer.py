"""Encoding, cutting, decoding and saving, on tokenizers trained here."""

from __future__ import annotations

import json
import pickle
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend

from heedful.errors import UserError
from heedful.text import KINDS, Tokenizer, load, train
from heedful.text.tokenizer import divide_room

RNG = random.Random(3)
WORDS = ["".join(RNG.choices(["ba", "lo", "ri", "en", "st", "um"], k=RNG.randint(1, 4))) for _ in range(120)]
CORPUS = [" ".join(RNG.choices(WORDS, k=9)) + "." for _ in range(200)]
MADE = {kind: train(CORPUS, kind=kind, sentinels=3) for kind in KINDS}

kinds = pytest.mark.parametrize("kind", KINDS)
# What a special token stands for cannot be text again; a surrogate is no text at all.
plain_text = st.text(st.characters(blacklist_categories=["Cs"]), max_size=40).filter(lambda t: "<" not in t)


@kinds
def test_a_batch_gives_what_each_text_gives(kind: str) -> None:
    made = MADE[kind]
    assert made.encode_batch(CORPUS[:20]) == [made.encode(text) for text in CORPUS[:20]]
    pairs = list(reversed(CORPUS[:20]))
    both = made.encode_batch(CORPUS[:20], pairs, max_len=12)
    assert both == [made.encode(a, b, max_len=12) for a, b in zip(CORPUS[:20], pairs, strict=True)]
    assert made.encode_batch([]) == []


def test_pairs_must_be_as_many_as_texts() -> None:
    with pytest.raises(ValueError, match="shorter"):
        MADE["bpe"].encode_batch(["a", "b"], ["c"])


@kinds
def test_half_a_surrogate_pair_is_one_line_here_and_in_training(kind: str) -> None:
    with pytest.raises(UserError, match=r'not valid Unicode: "a \\ud800"'):
        MADE[kind].encode_batch(["fine"], ["a \ud800"])
    with pytest.raises(UserError, match=r'not valid Unicode: "a \\ud800"'):
        train([*CORPUS, "a \ud800"], kind=kind)
    with pytest.raises(TypeError, match="must be a string, not NoneType"):
        MADE[kind].encode_batch(["fine", None])  # type: ignore[list-item]


@kinds
@pytest.mark.parametrize("max_len", [3, 5, 8, 30])
def test_cutting_keeps_the_frame_and_counts_what_it_cut(kind: str, max_len: int) -> None:
    made = MADE[kind]
    for pair in (None, CORPUS[1]):
        whole, cut = made.encode(CORPUS[0], pair), made.encode(CORPUS[0], pair, max_len=max_len)
        assert len(cut.ids) == len(cut.types) == min(max_len, len(whole.ids))
        assert cut.truncated == len(whole.ids) - len(cut.ids)
        frame = [i for i in whole.ids if i in made.special_ids]
        assert [i for i in cut.ids if i in made.special_ids] == frame


@kinds
@pytest.mark.parametrize("max_len", [3, 5, 8, 12])
def test_head_and_tail_are_the_beginning_and_the_end_of_what_is_cut(kind: str, max_len: int) -> None:
    made = MADE[kind]
    bare, whole = made.encode(CORPUS[0], special=False).ids, made.encode(CORPUS[0]).ids
    read = made.encode(CORPUS[0], max_len=max_len, long_texts="head-tail")
    room = max_len - (len(whole) - len(bare))
    head = -(-room // 4)
    assert [i for i in read.ids if i not in made.special_ids] == (
        [*bare[:head], *bare[len(bare) - (room - head) :]] if room < len(bare) else bare
    )
    assert len(read.ids) == min(max_len, len(whole)) == len(read.types)
    assert read.truncated == len(whole) - len(read.ids)
    # Of a pair, the first stays whole as long as it can.
    short = made.encode("ba", special=False).ids
    pair = made.encode("ba", CORPUS[0], max_len=max_len + 4, long_texts="head-tail")
    assert [i for i in pair.ids if i not in made.special_ids][: len(short)] == short
    assert [i for i in pair.ids if i not in made.special_ids][-1] == bare[-1]
    assert made.encode(CORPUS[0], long_texts="head-tail") == made.encode(CORPUS[0])


def test_no_room_for_the_frame_is_an_error() -> None:
    with pytest.raises(UserError, match="adds 3 special tokens"):
        MADE["bpe"].encode("a", "b", max_len=2)
    assert MADE["bpe"].encode("ba lo", max_len=2).ids == [2, 3]


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 60))
def test_what_stays_fills_the_room_and_spares_the_first(first: int, second: int, room: int) -> None:
    if first + second <= room:
        return
    a, b = divide_room(first, second, room)
    assert a + b == room
    assert 0 <= a <= first
    assert 0 <= b <= second
    if first < room:
        assert a == first
    elif a < first and b < second:
        assert abs(a - b) <= 1


def test_the_second_of_a_pair_has_its_own_type() -> None:
    encoded = MADE["wordpiece"].encode("ba", "lo")
    assert encoded.types == [0] * (len(encoded.types) - len(MADE["wordpiece"].encode("lo").ids) + 1) + [1] * (
        len(MADE["wordpiece"].encode("lo").ids) - 1
    )
    assert MADE["char"].encode("ab", "c").types == [0, 0, 1]


@settings(deadline=None, max_examples=200)
@given(plain_text)
def test_byte_level_pieces_give_any_text_back(text: str) -> None:
    made = MADE["bpe"]
    ids = made.encode(text).ids
    assert made.decode(ids) == text
    assert made.unk_id not in ids


def test_characters_give_their_text_back() -> None:
    made = MADE["char"]
    assert [made.decode(made.encode(text).ids) for text in CORPUS] == CORPUS


@kinds
def test_decoding_shows_or_hides_special_tokens(kind: str) -> None:
    made = MADE[kind]
    ids = [made.pad_id, *made.encode("balo.").ids, made.pad_id]
    assert "pad" not in made.decode(ids).lower()
    assert made.decode(ids, skip_special=False).lower().count("pad") == 2


def test_word_starts_tell_whole_words_from_ids_alone() -> None:
    for kind in ("bpe", "wordpiece", "unigram", "word"):
        made = MADE[kind]
        text = "stumbalori loenri ba"
        starts = [made.word_starts[i] for i in made.encode(text, special=False).ids]
        starts[0] = True  # a text's first piece begins a word, with or without a space before it
        assert sum(starts) == 3, kind
        assert len(made.word_starts) == made.vocab_size
        assert all(made.word_starts[i] for i in made.special_ids)
    assert len(MADE["wordpiece"].encode("stumbalori loenri ba", special=False).ids) > 3, "nothing was split"


def test_sentinels_are_in_order() -> None:
    for made in MADE.values():
        assert made.pieces(made.sentinel_ids) == ["<extra_id_0>", "<extra_id_1>", "<extra_id_2>"]
        assert made.special_ids >= set(made.sentinel_ids)


def test_the_fingerprint_follows_ids_and_nothing_else(tmp_path: Path) -> None:
    made = MADE["bpe"]
    made.save(tmp_path / "a")
    stored = json.loads((tmp_path / "a" / "tokenizer.json").read_text())
    backend = Backend.from_str(json.dumps(stored))
    backend.enable_padding(length=64)
    backend.enable_truncation(5)
    padded = Tokenizer(backend, made.roles)
    assert padded.encode(CORPUS[0]) == made.encode(CORPUS[0])
    assert padded.fingerprint == made.fingerprint

    different = {made.fingerprint}
    changes = {
        "normalizer": {"type": "Lowercase"},
        "post_processor": None,
        "pre_tokenizer": stored["pre_tokenizer"] | {"add_prefix_space": True},
        "model": stored["model"] | {"merges": stored["model"]["merges"][:-1]},
    }
    for part, value in changes.items():
        different.add(Tokenizer(Backend.from_str(json.dumps(stored | {part: value})), made.roles).fingerprint)
    different.add(Tokenizer(Backend.from_str(json.dumps(stored)), made.roles | {"eos": "<pad>"}).fingerprint)
    assert len(different) == 6
    no_decoder = Tokenizer(Backend.from_str(json.dumps(stored | {"decoder": None})), made.roles)
    assert no_decoder.fingerprint == made.fingerprint


def test_a_tokenizer_travels_to_other_processes() -> None:
    again = pickle.loads(pickle.dumps(MADE["unigram"]))
    assert again.encode_batch(CORPUS[:5]) == MADE["unigram"].encode_batch(CORPUS[:5])
    assert again.fingerprint == MADE["unigram"].fingerprint


def test_saving_leaves_three_files_and_replaces_them_whole(tmp_path: Path) -> None:
    names = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    MADE["word"].save(tmp_path / "deep" / "folder")
    MADE["char"].save(tmp_path / "deep" / "folder")
    assert {path.name for path in (tmp_path / "deep" / "folder").iterdir()} == names
    assert load(tmp_path / "deep" / "folder").kind == "char"
