"""Readers: formats, headers, columns, and arbitrary rows and bytes."""

from __future__ import annotations

import csv
import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heedful.data.columns import ColumnChoice, Layout, find_layout, open_sheet
from heedful.data.corpus import read_file_texts
from heedful.data.readers import FORMATS, is_quoted_tsv
from heedful.data.store import load_examples, read_examples
from heedful.errors import UserError

SENTENCES = [f"the meal number {n} was served late" for n in range(20)]


def examples(path: Path, **wanted: str) -> list[tuple[str, str | None, str | None]]:
    sheet = open_sheet(path, list(wanted.values()))
    layout = find_layout(sheet, ColumnChoice(**wanted))
    return [(text, pair, label) for _, text, pair, label, _ in read_examples(sheet, layout)]


def write(path: Path, rows: list[list[str]], end: str = "\n") -> Path:
    path.write_text(
        "".join(("\t" if path.suffix != ".csv" else ",").join(row) + end for row in rows), "utf-8"
    )
    return path


ROWS = [[text, str(n % 2)] for n, text in enumerate(SENTENCES)]
EXPECTED = [(text, None, str(n % 2)) for n, text in enumerate(SENTENCES)]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".txt"])
@pytest.mark.parametrize(
    "header", [None, ["text", "label"], ["Sentence", "Stars"], ["what they said", "verdict"]]
)
def test_a_header_is_recognised_by_its_content(tmp_path: Path, suffix: str, header: list[str] | None) -> None:
    path = write(tmp_path / f"train{suffix}", ([header] if header else []) + ROWS)
    assert examples(path) == EXPECTED


@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("labels", [("0", "1"), ("pos", "neg"), ("1.0", "2.0"), ("-1", "1")])
def test_columns_without_names_are_found_by_content(
    tmp_path: Path, swap: bool, labels: tuple[str, str]
) -> None:
    rows = [[text, labels[n % 2]] for n, text in enumerate(SENTENCES)]
    path = write(tmp_path / "train.csv", [row[::-1] for row in rows] if swap else rows)
    assert [row[0] for row in examples(path)] == SENTENCES


def test_a_first_row_like_the_others_is_data(tmp_path: Path) -> None:
    rows = [["fine", "good"], ["awful", "bad"], ["lovely", "good"], ["poor", "bad"], ["great", "good"]] * 3
    assert len(examples(write(tmp_path / "train.csv", rows))) == 15


def test_a_label_that_is_also_a_column_name_is_data(tmp_path: Path) -> None:
    rows = [[text, ["question", "comment"][n % 2]] for n, text in enumerate(SENTENCES)]
    assert len(examples(write(tmp_path / "train.csv", rows))) == 20


@pytest.mark.parametrize("names", [("question", "passage"), ("sentence1", "sentence2"), ("text", "text2")])
def test_pairs_are_found_by_name(tmp_path: Path, names: tuple[str, str]) -> None:
    path = tmp_path / "train.jsonl"
    rows = [{"idx": n, names[1]: f"second {n}", names[0]: f"first {n}", "label": n % 2} for n in range(9)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert examples(path)[3] == ("first 3", "second 3", "1")


def test_columns_can_be_named_by_name_or_number(tmp_path: Path) -> None:
    headed = write(
        tmp_path / "a.csv", [["x", "y", "z"], *([f"left {n}", f"right {n}", "ab"[n % 2]] for n in range(9))]
    )
    assert examples(headed, text="y", pair="x", label="z")[2] == ("right 2", "left 2", "a")
    bare = write(tmp_path / "b.csv", [[f"left {n}", f"right {n}", "ab"[n % 2]] for n in range(9)])
    assert examples(bare, text="2", pair="1", label="3")[2] == ("right 2", "left 2", "a")


def test_an_index_column_as_pandas_writes_is_passed_over(tmp_path: Path) -> None:
    rows = [[str(n), text, label] for n, (text, label) in enumerate(ROWS)]
    assert examples(write(tmp_path / "train.csv", [["", "text", "label"], *rows])) == EXPECTED


def test_columns_without_a_name_or_a_value_are_passed_over(tmp_path: Path) -> None:
    rows = [[label, text, "", ""] for text, label in ROWS]
    assert examples(write(tmp_path / "train.csv", [["v1", "v2", "", ""], *rows])) == EXPECTED


def test_booleans_and_numbers_of_json_become_names(tmp_path: Path) -> None:
    path = tmp_path / "train.jsonl"
    path.write_text(
        "".join(
            f'{{"text": "t", "label": {value}}}\n' for value in ("true", "false", "1", "2.0", "0.5", '" x "')
        )
    )
    assert [label for _, _, label in examples(path)] == ["true", "false", "1", "2", "0.5", "x"]


def test_quoted_cells_hold_delimiters_quotes_and_line_breaks(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_text('label,text\n1,"He said ""no"",\nand left."\n0,plain\n1,"x, y"\n')
    assert [text for text, _, _ in examples(path)] == ['He said "no",\nand left.', "plain", "x, y"]
    assert [n for n, *_ in read_examples(open_sheet(path), Layout("text", None, "label"))] == [2, 4, 5]


def test_quotes_in_tsv_are_text_unless_the_file_quotes_throughout(tmp_path: Path) -> None:
    plain = write(tmp_path / "a.tsv", [['"great" she said', "1"], ['"bad"', "0"], ['a 5" pipe', "1"]])
    assert not is_quoted_tsv(plain)
    assert [text for text, _, _ in examples(plain)] == ['"great" she said', '"bad"', 'a 5" pipe']
    quoted = write(tmp_path / "b.tsv", [['"a ""great"" meal\nand wine"', "1"], ["bad", "0"], ['"x\ty"', "1"]])
    assert is_quoted_tsv(quoted)
    rows = [f"line {i}\t{i % 2}" for i in range(100)]
    rows[10], rows[60] = '"i loved it and so\t1', 'so did she"\t0'
    stray = tmp_path / "stray.tsv"
    stray.write_text("\n".join(rows) + "\n")
    assert not is_quoted_tsv(stray)
    assert len(list(examples(stray))) == 100
    middle = write(tmp_path / "c.tsv", [["1", '"two\nlines"', "a"], ["2", "one", "b"]])
    assert is_quoted_tsv(middle)
    assert [text for text, _, _ in examples(quoted)] == ['a "great" meal\nand wine', "bad", "x\ty"]


def test_semicolons_and_byte_order_marks_and_windows_lines_are_understood(tmp_path: Path) -> None:
    path = tmp_path / "train.csv"
    path.write_bytes(b"\xef\xbb\xbftext;label\r\ngood, really;1\r\nbad, really;0\r\n")
    assert examples(path) == [("good, really", None, "1"), ("bad, really", None, "0")]
    for first in (b"sep=;\r\n", b'"sep=;"\r\n'):  # Excel's own line, which is no row
        path.write_bytes(b"\xef\xbb\xbf" + first + b"text;label\r\ngood, really;1\r\nbad, really;0\r\n")
        assert examples(path) == [("good, really", None, "1"), ("bad, really", None, "0")]


def test_parquet_is_read_by_name(tmp_path: Path) -> None:
    path = tmp_path / "train.parquet"
    stars = pa.array([n % 5 + 1 for n in range(3000)], pa.float64())
    pq.write_table(
        pa.table({"id": range(3000), "review": [f"text {n}" for n in range(3000)], "stars": stars}), path
    )
    found = examples(path)
    assert len(found) == 3000
    assert found[2999] == ("text 2999", None, "5")


def test_large_and_small_files_give_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("heedful.data.store.BATCH_ROWS", 7)
    path = write(tmp_path / "train.csv", [["text", "label"], *ROWS])
    sheet, layout = open_sheet(path), Layout("text", None, "label")
    small = load_examples(sheet, layout)
    monkeypatch.setattr("heedful.data.store.IN_MEMORY_BYTES", 0)
    large = load_examples(sheet, layout)
    again = load_examples(sheet, layout)
    assert isinstance(large.source, Path)
    for rows in (large, again):
        assert list(rows.scan(["text"])) == list(small.scan(["text"]))
        assert [rows.get("text", n) for n in range(20)] == SENTENCES
        assert rows.label_ids.tolist() == small.label_ids.tolist()
        assert rows.labels == small.labels
        assert rows.fingerprint == small.fingerprint


# Every character that UTF-8 can hold but NUL, which is refused.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1).filter(
    lambda text: text.strip()
)
rows_of_text = st.lists(st.tuples(texts, st.sampled_from(["a", "b"])), min_size=1, max_size=20)


@settings(max_examples=150, deadline=None)
@given(rows_of_text)
@example([('"', "a"), ("'", "b")])
@example([("a\rb", "a"), ("\u2028x", "b"), ("\x85x", "a"), ("\ufeffx", "b")])
def test_any_rows_survive_csv_and_tsv_and_json(rows: list[tuple[str, str]]) -> None:
    with tempfile.TemporaryDirectory() as name:
        layout = Layout("sentence", None, "y")
        for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
            out = io.StringIO()
            csv.writer(out, delimiter=delimiter).writerows([["sentence", "y"], *rows])
            path = Path(name) / f"train{suffix}"
            path.write_bytes(out.getvalue().encode())
            sheet = open_sheet(path, ["sentence", "y"])
            assert [(text, label) for _, text, _, label, _ in read_examples(sheet, layout)] == rows
        path = Path(name) / "train.jsonl"
        path.write_bytes(
            "".join(
                json.dumps({"sentence": text, "y": label}, ensure_ascii=len(text) % 2 == 0) + "\n"
                for text, label in rows
            ).encode()
        )
        assert [(text, label) for _, text, _, label, _ in read_examples(open_sheet(path), layout)] == rows


@settings(max_examples=100, deadline=None)
@given(st.lists(texts.filter(lambda text: not set(text) & set("\n\r\ufeff")), min_size=1, max_size=20))
def test_any_lines_survive_plain_text(lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "corpus.txt"
        path.write_bytes("".join(line + "\n" for line in lines).encode())
        assert list(read_file_texts(path)) == lines


pieces = st.sampled_from(
    [b"text", b"label", b",", b"\t", b"\n", b'"', b"{", b"}", b":", b"0", b"1", b"[", b"\xff", b"\0", b";"]
)
noise = st.one_of(st.binary(max_size=200), st.lists(pieces, max_size=60).map(b"".join))


@settings(max_examples=300, deadline=None)
@given(noise, st.sampled_from(sorted(FORMATS)))
def test_arbitrary_bytes_give_rows_or_one_line(content: bytes, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / f"train{suffix}"
        path.write_bytes(content)
        for attempt in (lambda: examples(path), lambda: list(read_file_texts(path))):
            message = complaint(attempt)
            assert message is None or (message.isprintable() and str(path) in message)


def complaint(attempt: Callable[[], object]) -> str | None:
    try:
        attempt()
    except UserError as error:
        return str(error)
    return None
