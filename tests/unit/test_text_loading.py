"""Loading: which file is taken, what its settings mean, and what is said when something is wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.text import load, train

LINES = ["the cat sat on the mat.", "the dog sat on the log.", "a cat, a dog: the end"] * 5
WORDPIECE = train(LINES, kind="wordpiece", sentinels=0)
BPE = train(LINES, kind="bpe", sentinels=0)


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    (tmp_path / "vocab.txt").write_text(
        "\n".join(WORDPIECE.pieces(range(WORDPIECE.vocab_size))), encoding="utf-8"
    )
    return tmp_path


@pytest.fixture
def gpt2(tmp_path: Path) -> Path:
    model = BPE.description["model"]
    write_json(tmp_path / "vocab.json", model["vocab"])
    (tmp_path / "merges.txt").write_text(
        "\n".join(" ".join(pair) for pair in model["merges"]), encoding="utf-8"
    )
    write_json(tmp_path / "config.json", {"model_type": "gpt2"})
    return tmp_path


def test_a_file_can_be_named_itself(bert: Path) -> None:
    assert load(bert / "vocab.txt").kind == "wordpiece"
    BPE.save(bert / "saved")
    (bert / "saved" / "tokenizer.json").rename(bert / "other.json")
    assert load(bert / "other.json").encode("the cat") == BPE.encode("the cat")


def test_either_file_of_two_can_be_named(gpt2: Path) -> None:
    for name in ("vocab.json", "merges.txt"):
        assert load(str(gpt2 / name)).encode("the cat").ids == BPE.encode("the cat", special=False).ids


def test_tokenizer_json_is_taken_before_other_forms(bert: Path) -> None:
    BPE.save(bert)
    assert load(bert).kind == "bpe"


def test_a_model_is_found_by_its_name(bert: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_MODELS", str(bert.parent))
    monkeypatch.chdir("/")
    assert load(bert.name).kind == "wordpiece"


def test_roles_are_found_by_name_where_nothing_states_them(tmp_path: Path) -> None:
    for made in (WORDPIECE, BPE, train(LINES, kind="word")):
        made.save(tmp_path)
        (tmp_path / "tokenizer_config.json").unlink()
        (tmp_path / "special_tokens_map.json").unlink()
        again = load(tmp_path)
        assert (again.pad_id, again.unk_id, again.mask_id) == (made.pad_id, made.unk_id, made.mask_id)
        if made is not WORDPIECE:
            assert (again.bos_id, again.eos_id) == (made.bos_id, made.eos_id)


def test_the_special_tokens_map_alone_is_enough(tmp_path: Path) -> None:
    BPE.save(tmp_path)
    (tmp_path / "tokenizer_config.json").unlink()
    assert load(tmp_path).roles == BPE.roles


def test_settings_of_case_come_before_the_file(tmp_path: Path) -> None:
    WORDPIECE.save(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert load(tmp_path).encode("THE").ids != load(tmp_path).encode("the").ids
    write_json(tmp_path / "tokenizer_config.json", settings | {"do_lower_case": True})
    assert load(tmp_path).encode("THE").ids == load(tmp_path).encode("the").ids


def test_a_role_set_to_null_is_none(gpt2: Path) -> None:
    write_json(gpt2 / "tokenizer_config.json", {"unk_token": "<unk>", "pad_token": None})
    made = load(gpt2)
    assert made.pad_id is None
    assert made.unk_id == 1


def test_special_tokens_outside_the_vocabulary_are_added(gpt2: Path) -> None:
    write_json(
        gpt2 / "tokenizer_config.json",
        {"pad_token": {"content": "[NEW]"}, "additional_special_tokens": ["<sys>"], "eos_token": "</s>"},
    )
    made = load(gpt2)
    assert made.pieces([made.pad_id]) == ["[NEW]"]
    ids = made.encode("the<sys>cat").ids
    assert made.pieces(ids).count("<sys>") == 1
    assert made.vocab_size == BPE.vocab_size + 2
    assert made.decode(ids) == "thecat"


def test_added_tokens_keep_their_ids(gpt2: Path) -> None:
    size = BPE.vocab_size
    write_json(gpt2 / "added_tokens.json", {"<b>": size + 1, "<a>": size})
    made = load(gpt2)
    assert made.pieces([size, size + 1]) == ["<a>", "<b>"]
    assert made.pieces(made.encode("the <b> cat").ids).count("<b>") == 1
    write_json(gpt2 / "added_tokens.json", {"<b>": size + 7})
    with pytest.raises(UserError, match=r'added token "<b>" should have id'):
        load(gpt2)


def test_added_tokens_of_the_settings_have_their_flags(gpt2: Path) -> None:
    token = {
        "content": "<x>",
        "lstrip": True,
        "rstrip": True,
        "normalized": False,
        "single_word": False,
        "special": False,
    }
    write_json(gpt2 / "tokenizer_config.json", {"added_tokens_decoder": {str(BPE.vocab_size): token}})
    made = load(gpt2)
    assert made.encode("the  <x>  cat").ids == made.encode("the<x>cat").ids
    assert BPE.vocab_size not in made.special_ids


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("tokenizer.json", b"{", "tokenizer.json: is not a tokenizer's file"),
        ("tokenizer.json", b"\xff\xfe", r"tokenizer.json: is not UTF-8 \(byte 0\)"),
        ("tokenizer.json", b'{"version": "1.0"}', "is not a tokenizer's file"),
        ("tokenizer_config.json", b'{"a":\n\n 1', "tokenizer_config.json line 3: is not JSON"),
        ("tokenizer_config.json", b"[]", "is not a JSON object"),
        ("tokenizer_config.json", b"[" * 100_000, "nested too deeply|is not JSON"),
        ("config.json", b'{"model_type": "llama"}', '"llama" uses vocab.txt is not known here'),
        ("config.json", b'{"model_type": "roberta"}', '"roberta" uses vocab.txt is not known here'),
        ("vocab.txt", b"", "vocab.txt: is empty"),
        ("vocab.txt", b"a\nb\n", r"vocab.txt: has no \[UNK\]"),
        ("vocab.txt", b"[UNK]\nb\n", "no cls token, which BERT needs"),
        ("vocab.txt", b"[UNK]\n\xe9", "vocab.txt: is not UTF-8"),
    ],
)
def test_a_broken_file_is_named_in_one_line(bert: Path, name: str, content: bytes, said: str) -> None:
    (bert / name).write_bytes(content)
    with pytest.raises(UserError, match=said) as error:
        load(bert)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("vocab.json", "{}", "is not a vocabulary"),
        ("vocab.json", '{"a": "b"}', "is not a vocabulary"),
        ("vocab.json", '{"a": -1}', "is not a vocabulary"),
        ("merges.txt", "#version: 0.2\nh e\nt h e", 'merges.txt line 3: "t h e" is not a merge'),
        ("merges.txt", "t qqq", "merges.txt line 1"),
    ],
)
def test_broken_merges_and_vocabularies_name_the_line(gpt2: Path, name: str, content: str, said: str) -> None:
    (gpt2 / name).write_text(content)
    with pytest.raises(UserError, match=said):
        load(gpt2)


def test_missing_parts_are_named(gpt2: Path, tmp_path: Path) -> None:
    (gpt2 / "merges.txt").unlink()
    with pytest.raises(UserError, match=r"vocab\.json needs merges\.txt beside it"):
        load(gpt2 / "vocab.json")
    with pytest.raises(
        UserError, match=r"has no tokenizer; looked for tokenizer\.json, spiece\.model, vocab\.txt"
    ):
        load(gpt2)
    (tmp_path / "notes.md").write_text("hello")
    with pytest.raises(UserError, match=r"notes\.md: is not a tokenizer's file"):
        load(tmp_path / "notes.md")
    with pytest.raises(UserError, match="no model folder"):
        load("./nowhere")
