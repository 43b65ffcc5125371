"""The reader of sentencepiece's files, on messages written here byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heedful.errors import UserError
from heedful.text import load
from heedful.text.sentencepiece import MessageError, fields, integer, parse, varint


def as_varint(value: int) -> bytes:
    value %= 1 << 64
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def field(number: int, value: int | bytes | float) -> bytes:
    if isinstance(value, int):
        return as_varint(number << 3) + as_varint(value)
    if isinstance(value, float):
        return as_varint(number << 3 | 5) + struct.pack("<f", value)
    return as_varint(number << 3 | 2) + as_varint(len(value)) + value


def piece(text: str, score: float = 0.0, type_: int = 1) -> bytes:
    return field(1, field(1, text.encode()) + field(2, score) + field(3, type_))


PIECES = [
    piece("<pad>", type_=3),
    piece("</s>", type_=3),
    piece("<unk>", type_=2),
    *(piece(text, -float(i)) for i, text in enumerate(["▁a", "b", "▁", "a", "▁ab"])),
]


def message(trainer: bytes = b"", normalizer: bytes = b"") -> bytes:
    ids = field(40, 2) + field(41, -1) + field(42, 1) + field(43, 0)
    return b"".join(PIECES) + field(2, trainer + ids) + field(3, normalizer)


def write(folder: Path, content: bytes) -> Path:
    (folder / "spiece.model").write_bytes(content)
    return folder


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_are_read_back(value: int) -> None:
    coded = as_varint(value)
    read, at = varint(coded, 0)
    assert integer(read) == value
    assert at == len(coded)


def test_a_model_is_read_field_by_field() -> None:
    model = parse(message(field(3, 2) + field(35, 1), field(3, 0) + field(4, 0)))
    assert model.pieces[3] == ("▁a", 0.0, 1)
    assert model.pieces[0] == ("<pad>", 0.0, 3)
    assert model.ids == {"unk": 2, "eos": 1, "pad": 0}
    assert (model.algorithm, model.byte_fallback, model.dummy_prefix, model.single_spaces) == (
        2,
        True,
        False,
        False,
    )


def test_what_is_left_out_has_the_formats_defaults() -> None:
    model = parse(b"".join(PIECES))
    assert (model.algorithm, model.byte_fallback, model.dummy_prefix, model.single_spaces) == (
        1,
        False,
        True,
        True,
    )
    assert model.ids == {"unk": 0, "bos": 1, "eos": 2}


def test_unknown_fields_are_skipped() -> None:
    extra = field(200, 7) + field(201, b"text") + as_varint(202 << 3 | 1) + bytes(8)
    assert parse(extra + message()) == parse(message())


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    try:
        list(fields(content))
    except MessageError:
        return


def test_a_file_cut_anywhere_never_ends_in_a_traceback(tmp_path: Path) -> None:
    whole = message(field(3, 1))
    refused = 0
    for size in range(len(whole)):
        try:
            load(write(tmp_path, whole[:size]))
        except UserError:
            refused += 1
    assert refused > len(whole) / 2


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "has no pieces"),
        (b"\xff\xff\xff", "not a sentencepiece model"),
        (b"version https://git-lfs.github.com/spec/v1\n", "not a sentencepiece model"),
        (message(field(3, 3)), "of type word; unigram and bpe can be loaded"),
        (message(field(24, 1)), "treat_whitespace_as_suffix"),
        (message(normalizer=field(5, 0)), "escape_whitespaces=false"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(UserError, match=said):
        load(write(tmp_path, content))


def test_sentinels_come_last_and_already_present_ones_are_not_doubled(tmp_path: Path) -> None:
    made = load(write(tmp_path, message() + piece("<extra_id_0>", type_=4)))
    assert made.sentinel_ids[0] == 8
    assert len(made.sentinel_ids) == 100
    assert made.vocab_size == 8 + 100
    (tmp_path / "tokenizer_config.json").write_text('{"extra_ids": 2}')
    assert load(tmp_path).vocab_size == 8 + 2
