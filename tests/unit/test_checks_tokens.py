"""The checks of tokenizers and of truncation."""

from __future__ import annotations

import pytest

from heedful.evaluation.checks import tokenizer_fits, truncation
from heedful.models import PRESETS, TransformerConfig
from heedful.text import KINDS, Tokenizer, train

CORPUS = [f"the small meal number {i} was late, and nobody minded it much" for i in range(200)]
SIZE = {"bpe": 600, "wordpiece": 300, "unigram": 200, "word": 300, "char": 300}


def trained(kind: str, **options: object) -> Tokenizer:
    if kind != "word":
        options.setdefault("vocab_size", SIZE[kind])
    return train(CORPUS, kind=kind, **options)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def own() -> dict[str, Tokenizer]:
    return {kind: trained(kind) for kind in KINDS}


def model(family: str, tokenizer: Tokenizer, **changes: object) -> TransformerConfig:
    """A model of a family whose special tokens are those of a tokenizer."""
    preset = {"bert": "bert-tiny", "gpt2": "gpt-nano", "t5": "t5-mini"}[family]
    ids = {"pad_id": tokenizer.pad_id, "bos_id": tokenizer.bos_id, "eos_id": tokenizer.eos_id}
    return PRESETS[preset].config.replace(**{"vocab_size": tokenizer.vocab_size, **ids, **changes})


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_preset_takes_any_tokenizer_of_its_own_new_and_loaded_again(
    kind: str, family: str, own: dict[str, Tokenizer]
) -> None:
    config = model(family, own[kind], vocab_size=1000)
    assert tokenizer_fits(own[kind], config, pretrained=False).status == "passed"
    assert tokenizer_fits(own[kind], config, pretrained=True, shipped=own[kind]).status == "passed"


def test_a_bert_tokenizer_on_a_gpt2_model_fires_although_every_id_is_in_range(
    own: dict[str, Tokenizer],
) -> None:
    bert = own["wordpiece"]
    gpt2 = PRESETS["gpt-nano"].config.replace(bos_id=50256, eos_id=50256)
    assert bert.vocab_size < gpt2.vocab_size
    check = tokenizer_fits(bert, gpt2, pretrained=True)
    assert check.status == "failed"
    assert "wordpiece" in check.message
    silent = gpt2.replace(bos_id=None, eos_id=None)
    assert tokenizer_fits(bert, silent, pretrained=True).status == "failed"
    assert tokenizer_fits(bert, silent, pretrained=True, shipped=own["bpe"]).status == "failed"


def test_ids_beyond_the_embeddings_fail_whatever_else_agrees(own: dict[str, Tokenizer]) -> None:
    bpe = own["bpe"]
    config = model("gpt2", bpe, vocab_size=bpe.vocab_size - 1)
    for pretrained in (False, True):
        check = tokenizer_fits(bpe, config, pretrained=pretrained, shipped=bpe)
        assert check.status == "failed"
        assert (check.value, check.limit) == (bpe.vocab_size, bpe.vocab_size - 1)


@pytest.mark.parametrize("role", ["pad_id", "bos_id", "eos_id"])
def test_a_special_token_with_another_id_fires(role: str, own: dict[str, Tokenizer]) -> None:
    config = model("gpt2", own["bpe"], **{role: 17})
    check = tokenizer_fits(own["bpe"], config, pretrained=False)
    assert check.status == "failed"
    assert f"{role.removesuffix('_id')} is id" in check.message


def test_an_id_that_the_model_itself_lacks_says_nothing(own: dict[str, Tokenizer]) -> None:
    config = model("gpt2", own["bpe"], eos_id=50256)
    assert tokenizer_fits(own["bpe"], config, pretrained=True).status == "passed"


def test_the_tokenizer_beside_the_weights_decides(own: dict[str, Tokenizer]) -> None:
    shipped = own["bpe"]
    config = model("gpt2", shipped)
    other = train([line.upper() for line in CORPUS], kind="bpe", vocab_size=600)
    check = tokenizer_fits(other, config.replace(vocab_size=1000), pretrained=True, shipped=shipped)
    assert check.status == "failed"
    assert "pieces beside the weights" in check.message
    again = trained("bpe")
    assert tokenizer_fits(again, config, pretrained=True, shipped=shipped).status == "passed"


def test_the_same_pieces_cut_in_another_way_fire_and_written_in_another_way_do_not(
    own: dict[str, Tokenizer],
) -> None:
    shipped = own["wordpiece"]
    config = model("bert", shipped)
    same = Tokenizer(shipped.backend.from_str(shipped.backend.to_str()), {**shipped.roles})
    same.roles.pop("unk")
    assert same.fingerprint != shipped.fingerprint
    assert tokenizer_fits(same, config, pretrained=True, shipped=shipped).status == "passed"
    from tokenizers.normalizers import Lowercase

    lowered = Tokenizer(shipped.backend.from_str(shipped.backend.to_str()), shipped.roles)
    lowered.backend.normalizer = Lowercase()
    check = tokenizer_fits(lowered, config, pretrained=True, shipped=shipped)
    assert check.status == "failed"
    assert "cuts or frames" in check.message


def test_a_pretrained_bert_needs_its_frame_and_most_of_its_vocabulary(own: dict[str, Tokenizer]) -> None:
    framed = own["wordpiece"]
    bare = Tokenizer(framed.backend, {"pad": "[PAD]", "unk": "[UNK]"})
    config = model("bert", framed, bos_id=None, eos_id=None)
    assert "no cls and no sep" in tokenizer_fits(bare, config, pretrained=True).message
    assert tokenizer_fits(framed, config, pretrained=True).status == "passed"
    larger = config.replace(vocab_size=2 * framed.vocab_size)
    assert tokenizer_fits(framed, larger, pretrained=True).status == "warning"


def test_a_role_that_the_tokenizer_lacks_fires_where_the_model_learned_it(own: dict[str, Tokenizer]) -> None:
    char = own["char"]  # has no end of text
    config = model("gpt2", char, eos_id=10)
    assert tokenizer_fits(char, config, pretrained=False).status == "passed"
    check = tokenizer_fits(char, config, pretrained=True, shipped=char)
    assert check.status == "failed"
    assert "the model's eos, means" in check.message


def test_truncation_warns_above_one_row_in_twenty_and_says_what_would_do() -> None:
    lengths = [*range(1, 100), 1000]
    assert truncation(lengths, 1000).value == 0
    few = truncation(lengths, 96)
    assert (few.status, few.value) == ("passed", 0.04)
    many = truncation(lengths, 90)
    assert many.status == "warning"
    assert many.value == pytest.approx(0.10)
    assert "max_len 99 would keep 99 % of rows whole" in many.message
    lost = (sum(range(1, 10)) + 910) / sum(lengths)
    assert f"{100 * lost:.1f} % of all tokens" in many.message
    assert truncation([], 10).status == "skipped"


def test_truncation_never_advises_more_than_the_model_can_read() -> None:
    lengths = [*range(1, 100), 1000]
    assert "reads 95 at most, which keeps 95 %" in truncation(lengths, 50, 95).message
    assert "reads 50 at most: shorten" in truncation(lengths, 50, 50).message
    assert "at most" not in truncation(lengths, 50, 512).message
