"""Ids by remembered words: the same as the library's, for every text and every kind of tokenizer."""

from __future__ import annotations

import json
import pickle
import random
from array import array
from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Backend

from heedful.checkpoints import bert, roberta
from heedful.errors import UserError
from heedful.options.types import LongTexts
from heedful.text import Tokenizer, train, word_level
from heedful.text.bulk_encoder import BulkEncoder, EncodedTexts
from heedful.text.word_level import WordCache, find_rule

RNG = random.Random(3)
PARTS = ["ba", "Lo", "ri", "én", "st", "um", "7", "'s", ",", "日", "Ж"]
VOCABULARY = ["".join(RNG.choices(PARTS, k=RNG.randint(1, 4))) for _ in range(150)]
CORPUS = [" ".join(RNG.choices(VOCABULARY, k=9)) + RNG.choice([".", " !", ""]) for _ in range(300)]
# Runs of white space become pieces of their own where a tokenizer has such, and are then easy to get wrong.
CORPUS += [
    RNG.choice(["  ", "   ", " \t ", "\t\t"]).join(RNG.choices(VOCABULARY[:20], k=4)) for _ in range(100)
]


def changed(kind: str, change: Callable[[Backend], None]) -> Tokenizer:
    made = train(CORPUS, kind=kind, sentinels=3)
    change(made.backend)
    return Tokenizer(made.backend, made.roles)


def framed(backend: Backend) -> None:
    holder = {role: (token, backend.token_to_id(token)) for role, token in roberta.ROLES.items()}
    backend.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    backend.post_processor = roberta.frame(holder.__getitem__)


def with_types(backend: Backend) -> None:
    holder = {role: (token, backend.token_to_id(token)) for role, token in bert.ROLES.items()}
    backend.post_processor = bert.frame(holder.__getitem__)
    backend.add_tokens(["LoLo", AddedToken("st!", normalized=True, rstrip=True)])


def like_t5(backend: Backend) -> None:
    backend.normalizer = normalizers.Sequence(
        [normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " "), normalizers.Replace("''", '"')]
    )


LOCAL = {
    "bpe": train(CORPUS, kind="bpe", sentinels=3),
    "bpe lowercased": train(CORPUS, kind="bpe", sentinels=3, lowercase=True),
    "roberta": changed("bpe", framed),
    "wordpiece": train(CORPUS, kind="wordpiece", sentinels=3),
    "bert": changed("wordpiece", with_types),
    "unigram": train(CORPUS, kind="unigram", vocab_size=200, sentinels=3),
    "unigram lowercased": train(CORPUS, kind="unigram", vocab_size=200, sentinels=3, lowercase=True),
    "t5": changed("unigram", like_t5),
    "word": train(CORPUS, kind="word"),
    "word and punctuation": train(CORPUS, kind="word", punctuation=True, lowercase=True),
    "char": train(CORPUS, kind="char"),
}


def no_splitter(backend: Backend) -> None:
    backend.pre_tokenizer = pre_tokenizers.Metaspace(split=False)


def first_alone(backend: Backend) -> None:
    backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")


def stripped(backend: Backend) -> None:
    backend.normalizer = normalizers.Strip()


def two_words(backend: Backend) -> None:
    backend.add_tokens(["ba Lo"])


def eats_space(backend: Backend) -> None:
    backend.add_special_tokens([AddedToken("<eater>", rstrip=True)])


def spaced_out(backend: Backend) -> None:
    backend.normalizer = normalizers.Replace(Regex("a L"), "aL")


ACROSS = {
    "metaspace unsplit": changed("unigram", no_splitter),
    "metaspace first": changed("unigram", first_alone),
    "byte-level stripped": changed("bpe", stripped),
    "an added token of two words": changed("wordpiece", two_words),
    "an added token that takes the next space": changed("bpe", eats_space),
    "a replacement of spaces": changed("wordpiece", spaced_out),
}
EVERY = LOCAL | ACROSS

ODD = [
    "  ",
    "\t",
    "\n",
    "\u00a0",
    "\u200b",
    "\u3000",
    "\x1c",
    "\x85",
    "\0",
    "\u0301",
    "a\u0301",
    "\u0600",
    "\u0e33",
]
ODD += ["¨", "ﾞ", "👩‍👧", "🏽", "ﬁ", "①", "▁", "�", "''", "İ"]
NAMED = ["<mask>", "[MASK]", "<extra_id_0>", "<PAD>", "<s>", "LoLo", "st!", "ba Lo", "<eater>"]
pieces = st.sampled_from([*VOCABULARY[:20], *PARTS, *ODD, *NAMED, " ", " ", " "])
texts = st.lists(pieces, max_size=12).map("".join)


def wanted(made: Tokenizer, first: list[str], second: list[str] | None, **options: object) -> EncodedTexts:
    rows = made.encode_batch(first, second, **options)  # type: ignore[arg-type]
    code = "I" if made.vocab_size > 2**16 else "H"
    return EncodedTexts(
        b"".join(array(code, row.ids).tobytes() for row in rows),
        None if second is None else b"".join(bytes(row.types) for row in rows),
        array("q", [len(row.ids) for row in rows]),
        sum(row.truncated > 0 for row in rows),
    )


@pytest.mark.parametrize("name", EVERY)
@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.tuples(texts, texts), min_size=1, max_size=4),
    st.sampled_from([None, 4, 7, 12]),
    st.booleans(),
    st.sampled_from(["cut", "head-tail"]),
)
def test_ids_are_those_of_the_library_for_any_text(
    name: str, rows: list[tuple[str, str]], max_len: int | None, special: bool, long_texts: LongTexts
) -> None:
    made = EVERY[name]
    first, second = [a for a, _ in rows], [b for _, b in rows]
    options: dict[str, Any] = {"max_len": max_len, "special": special, "long_texts": long_texts}
    alone = made.bulk(paired=False, **options)
    for _ in range(2):  # the second time from memory
        assert alone.encode(first, None) == wanted(made, first, None, **options)
    both = made.bulk(paired=True, **options)
    assert both.encode(first, second) == wanted(made, first, second, **options)


@pytest.mark.parametrize("name", LOCAL)
def test_words_are_remembered_where_a_tokenizer_never_looks_across_a_space(name: str) -> None:
    asked: list[str] = []
    bulk = LOCAL[name].bulk(paired=False, max_len=None, special=True)
    rule = find_rule(bulk.backend)
    assert rule is not None
    memory = WordCache(rule, lambda new: asked.extend(new) or bulk.encode_whole(new))
    usual = [" ".join(word for word in text.split() if word.isascii()) or "a" for text in CORPUS]
    memory.ids(usual)
    assert 0 < len(asked) <= 2 * len(VOCABULARY) * 3
    before = len(asked)
    assert memory.ids(usual) == bulk.encode_whole(usual)
    assert len(asked) == before


@pytest.mark.parametrize("name", ACROSS)
def test_no_word_is_remembered_where_a_tokenizer_may_look_across_a_space(name: str) -> None:
    assert find_rule(ACROSS[name].backend) is None


@pytest.mark.parametrize("name", ["bpe", "bert", "unigram", "t5"])
def test_words_that_were_forgotten_come_back_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_level, "MEMORY_CHARS", 200)
    bulk = LOCAL[name].bulk(paired=False, max_len=None, special=False)
    rule = find_rule(bulk.backend)
    assert rule is not None
    memory = WordCache(rule, bulk.encode_whole)
    for text in CORPUS:
        assert memory.ids([text]) == bulk.encode_whole([text])
        assert sum(map(len, [*memory.ids_of, *memory.older])) < 2 * (200 + 2 * len(max(CORPUS, key=len)))


@pytest.mark.parametrize("name", EVERY)
def test_a_copy_for_another_process_encodes_the_same(name: str) -> None:
    bulk = EVERY[name].bulk(paired=True, max_len=20, special=True)
    copy = pickle.loads(pickle.dumps(bulk))
    assert copy.encode(CORPUS[:50], CORPUS[50:100]) == bulk.encode(CORPUS[:50], CORPUS[50:100])


def test_a_copy_has_the_same_scores_to_the_last_bit() -> None:
    scores = [("<unk>", 0.0), *((f"p{n}", -10 * RNG.random()) for n in range(3000))]
    backend = Backend(models.Unigram(scores, unk_id=0))
    copy = pickle.loads(
        pickle.dumps(BulkEncoder(backend, paired=False, max_len=None, special=True, wide=False))
    )
    assert json.loads(copy.backend.to_str())["model"]["vocab"] == [list(pair) for pair in scores]


def test_large_vocabularies_get_wider_numbers() -> None:
    backend = Backend(models.WordLevel({"<unk>": 0, "far": 70_000}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    found = Tokenizer(backend, {}).bulk(paired=False, max_len=None, special=True).encode(["far away"], None)
    assert array("I", found.ids).tolist() == [70_000, 0]


def test_rows_can_be_told_apart_by_their_lengths() -> None:
    made = LOCAL["bert"]
    found = made.bulk(paired=False, max_len=6, special=True).encode(CORPUS[:5], None)
    ids, ends = array("H", found.ids).tolist(), list(accumulate(found.lengths))
    rows = [ids[end - n : end] for n, end in zip(found.lengths, ends, strict=True)]
    assert rows == [made.encode(text, max_len=6).ids for text in CORPUS[:5]]
    assert found.truncated_rows == 5


def test_mistakes_are_told_as_in_encode_batch() -> None:
    made = LOCAL["bpe"]
    with pytest.raises(UserError, match="adds 3 special tokens"):
        made.bulk(paired=True, max_len=2, special=True)
    for name in EVERY:
        with pytest.raises(UserError, match=r'not valid Unicode: ".*\\ud800"'):
            EVERY[name].bulk(paired=False, max_len=None, special=True).encode(["fine", "a \ud800"], None)
