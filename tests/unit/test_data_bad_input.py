"""Every kind of bad file gets one line that names the file and the row, and says what is right."""

from __future__ import annotations

import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heedful.data import load_task
from heedful.data.notices import collect_notices
from heedful.data.readers import MAX_ROW_BYTES
from heedful.data.run_options import absolute_value
from heedful.errors import UserError

GOOD = b"text,label\n" + b"".join(b"a sentence number %d,%d\n" % (n, n % 2) for n in range(20))
GOOD_JSON = b"".join(b'{"text": "a sentence number %d", "label": %d}\n' % (n, n % 2) for n in range(20))
TEN_MB = b"word " * (10 * 2**20 // 5)


def jsonl(*rows: Any) -> bytes:
    return GOOD_JSON + b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def parquet(**columns: Any) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()


MANY = [f"sentence number {n}" for n in range(20)]
BINARY = [n % 2 for n in range(20)]


def parquet_twins() -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.Table.from_arrays([pa.array(c) for c in (MANY, BINARY, BINARY)], ["text", "label", "label"]), sink
    )
    return sink.getvalue().to_pybytes()


# name: (files, options, where, what)
BAD: dict[str, tuple[dict[str, bytes], dict[str, str], str, str]] = {
    "wrong text column": (
        {"train.csv": GOOD},
        {"text_column": "txet"},
        "train.csv line 1",
        'did you mean "text"',
    ),
    "wrong label column": (
        {"train.csv": GOOD},
        {"label_column": "stars"},
        "train.csv line 1",
        "there are label, text",
    ),
    "wrong pair column": (
        {"train.csv": GOOD},
        {"pair_column": "passage"},
        "train.csv line 1",
        'unknown column "passage"',
    ),
    "a number for a column that a headed file lacks": (
        {"train.csv": GOOD},
        {"label_column": "7"},
        "train.csv line 1",
        'unknown column "7"',
    ),
    "text and label the same": (
        {"train.csv": GOOD},
        {"text_column": "text", "label_column": "text"},
        "train.csv line 1",
        "cannot be both",
    ),
    "missing label in CSV": (
        {"train.csv": GOOD + b"more text,\n"},
        {},
        "train.csv line 22",
        "label the row or remove it",
    ),
    "missing label in JSON": (
        {"train.jsonl": jsonl({"text": "x y"})},
        {},
        "train.jsonl line 21",
        "label is missing",
    ),
    "null label": (
        {"train.jsonl": jsonl({"text": "x y", "label": None})},
        {},
        "train.jsonl line 21",
        "label is missing",
    ),
    "nan label in CSV": (
        {"train.csv": GOOD + b"more text,NaN\n"},
        {},
        "train.csv line 22",
        'the label is missing in column "label"',
    ),
    "nan label in TSV": (
        {"train.tsv": b"text\tlabel\ngood words\tyes\nbad words\tno\nlost words\t nan\n"},
        {},
        "train.tsv line 4",
        "label the row or remove it",
    ),
    "NaN label": (
        {"train.jsonl": GOOD_JSON + b'{"text": "x", "label": NaN}'},
        {},
        "train.jsonl line 21",
        "missing",
    ),
    "missing label in Parquet": (
        {"train.parquet": parquet(text=MANY, label=[*BINARY[:9], None, *BINARY[10:]])},
        {},
        "train.parquet row 10",
        "label is missing",
    ),
    "label only in test": (
        {"train.csv": GOOD, "dev.csv": GOOD, "test.csv": GOOD + b"new,7\n"},
        {},
        "test.csv line 22",
        'label "7" is not in train.csv, which has 0, 1',
    ),
    "label only in dev": (
        {"train.csv": GOOD, "dev.csv": GOOD + b"new,7\n"},
        {},
        "dev.csv line 22",
        "not in train.csv",
    ),
    "dev without labels": (
        {"train.csv": GOOD, "dev.csv": b"text\nx\n"},
        {},
        "dev.csv line 1",
        'unknown column "label"',
    ),
    "a word among numbers": (
        {"train.csv": GOOD + b"a good meal,six\n"},
        {},
        "train.csv line 22",
        'label "six" is not a number; the other 20 rows have 0, 1',
    ),
    "empty text": (
        {"train.csv": GOOD + b",1\n"},
        {},
        "train.csv line 22",
        'empty text in column "text"; write one',
    ),
    "white text": (
        {"train.tsv": b"fine words here\t1\nmore words here\t0\n \t1\n"},
        {},
        "train.tsv line 3",
        "empty text",
    ),
    "empty JSON text": (
        {"train.jsonl": jsonl({"text": "", "label": 1})},
        {},
        "train.jsonl line 21",
        "empty text",
    ),
    "missing JSON text": (
        {"train.jsonl": jsonl({"label": 1})},
        {},
        "train.jsonl line 21",
        '"text" is missing',
    ),
    "empty pair": (
        {
            "train.jsonl": b'{"question": "q", "passage": "p", "label": 1}\n{"question": "q", "passage": "", "label": 0}'
        },
        {},
        "train.jsonl line 2",
        'empty text in column "passage"',
    ),
    "number in the place of text": (
        {"train.jsonl": jsonl({"text": 5, "label": 1})},
        {},
        "train.jsonl line 21",
        "is not a string but 5",
    ),
    "tokenised text": (
        {"train.jsonl": jsonl({"text": ["a", "b"], "label": 1})},
        {},
        "train.jsonl line 21",
        'not a string but ["a", "b"]',
    ),
    "neither UTF-8 nor Windows": (
        {"train.csv": GOOD + "кафе у моря,1\n".encode("cp866") + b"\x81,1\n"},
        {},
        "train.csv line 22",
        "byte 1 is not UTF-8 (0xaa)",
    ),
    "a Latin-1 line in UTF-8": (
        {"train.csv": GOOD + 9 * "café au lait,1\n".encode() + "café,1\n".encode("latin1")},
        {},
        "train.csv line 31",
        "byte 4 is not UTF-8 (0xe9)",
    ),
    "half a UTF-16 file": (
        {"train.csv": GOOD.decode().encode("utf-16")[:-1]},
        {},
        "train.csv line 21",
        "is not UTF-16; save the file as UTF-8",
    ),
    "UTF-16 without a mark": (
        {"train.csv": GOOD.decode().encode("utf-16-le")},
        {},
        "train.csv line 1",
        "NUL byte",
    ),
    "not UTF-8 in JSON": (
        {"train.jsonl": GOOD_JSON + b'{"text": "\xff"}'},
        {},
        "train.jsonl line 21",
        "not UTF-8",
    ),
    "broken JSON": (
        {"train.jsonl": GOOD_JSON + b'{"text": "x", '},
        {},
        "train.jsonl line 21",
        "broken JSON at column",
    ),
    "deeply nested JSON": (
        {"train.jsonl": GOOD_JSON + b'{"a":' * 100_000},
        {},
        "train.jsonl line 21",
        "broken JSON",
    ),
    "JSON array": (
        {"train.json": b'[{"text": "a", "label": 0}]'},
        {},
        "train.json line 1",
        "jq -c '.[]' train.json",
    ),
    "JSON that is no object": (
        {"train.jsonl": jsonl("words")},
        {},
        "train.jsonl line 21",
        "is not an object such as",
    ),
    "half a surrogate": (
        {"train.jsonl": GOOD_JSON + b'{"text": "\\ud800", "label": 1}'},
        {},
        "line 21",
        "surrogate",
    ),
    "half a surrogate in a label": (
        {"train.jsonl": GOOD_JSON + b'{"text": "x", "label": "\\udfff"}'},
        {},
        "train.jsonl line 21",
        "surrogate",
    ),
    "ragged CSV, too wide": (
        {"train.csv": GOOD + b"one, two,1\n"},
        {},
        "train.csv line 22",
        "3 columns, but the first",
    ),
    "ragged CSV, too narrow": (
        {"train.csv": GOOD + b"alone\n"},
        {},
        "train.csv line 22",
        'holds "," or a line break',
    ),
    "ragged TSV": (
        {"train.tsv": GOOD.replace(b",", b"\t") + b"a\tb\t1\n"},
        {},
        "train.tsv line 22",
        "no text holds a tab",
    ),
    "ragged text": (
        {"train.txt": b"good\t1\nbad\t0\nso so\n"},
        {},
        "train.txt line 3",
        "1 column, but the first line has 2",
    ),
    "unclosed quote": ({"train.csv": GOOD + b'"open,1\nmore,0\n'}, {}, "train.csv line 22", "never closed"),
    "unclosed quote before many rows": (
        {"train.csv": GOOD + b'"open,1\n' + b"a row like the others,0\n" * (MAX_ROW_BYTES // 20)},
        {},
        "train.csv line 22",
        "never closed",
    ),
    "text after a quote": (
        {"train.csv": GOOD + b'"no" he said,1\n'},
        {},
        "train.csv line 22",
        'is written ""',
    ),
    "bare carriage return": (
        {"train.csv": GOOD + b"one\rtwo,1\n"},
        {},
        "train.csv line 22",
        "quote the cell",
    ),
    "old Mac lines": ({"train.csv": GOOD.replace(b"\n", b"\r")}, {}, "train.csv line 1", "end them with \\n"),
    "empty CSV": ({"train.csv": b""}, {}, "train.csv line 1", "the file is empty"),
    "empty JSON lines": ({"train.jsonl": b"\n\n"}, {}, "train.jsonl line 1", "the file is empty"),
    "empty text file": ({"train.txt": b"\n"}, {}, "train.txt line 1", "the file is empty"),
    "empty Parquet": ({"train.parquet": parquet(text=[], label=[])}, {}, "train.parquet row 1", "no rows"),
    "only a header": ({"train.csv": b"text,label\n"}, {}, "train.csv line 2", "a header and no rows"),
    "empty dev": (
        {"train.csv": GOOD, "dev.csv": b"text,label\n"},
        {},
        "dev.csv line 2",
        "a header and no rows",
    ),
    "only one class": (
        {"train.csv": b"text,label\na b c,1\nd e f,1\n"},
        {},
        "train.csv line 2",
        "at least two classes",
    ),
    "NUL byte in CSV": (
        {"train.csv": GOOD + b"a\0b,1\n"},
        {},
        "train.csv line 22",
        "a NUL byte; save the file as UTF-8 text",
    ),
    "NUL byte in text": ({"train.txt": b"a\t1\nb\0\t0\n"}, {}, "train.txt line 2", "NUL byte"),
    "NUL in JSON": (
        {"train.jsonl": jsonl({"text": "a\0b", "label": 1})},
        {},
        "train.jsonl line 21",
        "NUL character",
    ),
    "NUL in Parquet": (
        {"train.parquet": parquet(text=[*MANY[:4], "a\0", *MANY[5:]], label=BINARY)},
        {},
        "train.parquet row 5",
        "NUL character; remove it",
    ),
    "row of 10 MB in CSV": (
        {"train.csv": GOOD + TEN_MB + b",1\n"},
        {},
        "train.csv line 22",
        "longer than 4 MB",
    ),
    "row of 10 MB in quotes": (
        {"train.csv": GOOD + b'"' + TEN_MB.replace(b"word " * 99, b"word\n" + b"word " * 98) + b'",1\n'},
        {},
        "train.csv line 22",
        "never closed",
    ),
    "row of 10 MB in JSON": (
        {"train.jsonl": jsonl({"text": TEN_MB.decode()})},
        {},
        "train.jsonl line 21",
        "longer than",
    ),
    "row of 10 MB in text": (
        {"train.txt": b"good\t1\n" + TEN_MB + b"\t0\n"},
        {},
        "train.txt line 2",
        "fold -s",
    ),
    "row of 10 MB in Parquet": (
        {"train.parquet": parquet(text=[*MANY[:7], TEN_MB.decode(), *MANY[8:]], label=BINARY)},
        {},
        "train.parquet row 8",
        "longer than 4 MB",
    ),
    "Parquet that is none": ({"train.parquet": GOOD}, {}, "train.parquet row 1", "is not a Parquet file"),
    "label lists": (
        {"train.jsonl": jsonl({"text": "x", "label": ["a", "b"]})},
        {"kind": "classify"},
        "line 21",
        "--kind labels",
    ),
    "one label or several": (
        {"train.csv": b"text,label\none,a|b\ntwo,a|c\nthree,b|c\n"},
        {},
        "train.csv line 2",
        "say it with --kind label or --kind labels",
    ),
    "a label column beside columns of 0 and 1": (
        {"train.csv": b"text,stars,joy,anger\none,3,0,1\ntwo,4,1,1\nthree,5,0,0\n"},
        {},
        "train.csv line 1",
        '"stars" looks like the label, and "joy", "anger" like one column of 0 and 1 per label',
    ),
    "no labels at all": (
        {"train.csv": b"text,joy,anger\none,0,0\ntwo,0,0\n"},
        {},
        "train.csv line 2",
        "no row has a label",
    ),
    "one label in lists": (
        {"train.jsonl": b'{"text": "one", "label": ["a"]}\n{"text": "two", "label": []}\n'},
        {},
        "train.jsonl line 1",
        '"a" is the only label',
    ),
    "numbers that are all equal": (
        {"train.csv": b"text,score\none,2.5\ntwo,2.50\n"},
        {"kind": "number"},
        "train.csv line 2",
        "every row has the number 2.5",
    ),
    "words as numbers": (
        {"train.csv": b"text,score\n" + b"".join(b"text %d,word\n" % n for n in range(5))},
        {"kind": "number"},
        "train.csv line 2",
        '"word" in column "score" is not a number',
    ),
    "classes without an order": (
        {"train.csv": b"text,label\none,low\ntwo,high\nthree,low\n"},
        {"kind": "ordered"},
        "train.csv line 2",
        'the order of "low" is not known',
    ),
    "several label columns for one label": (
        {"train.csv": b"text,joy,anger\none,0,1\ntwo,1,0\n"},
        {"label_column": "joy,anger", "kind": "classify"},
        "",
        "which is --kind labels",
    ),
    "free text as label": (
        {"train.csv": b"text,label\n" + b"".join(b"sentence %d,answer %d\n" % (n, n) for n in range(60))},
        {},
        "train.csv line 61",
        "is it the right column (--label-column)?",
    ),
    "numbers with a decimal comma": (
        {"train.csv": b"text;label\n" + b"".join(b"a sentence number %d;2,%d\n" % (n, n) for n in range(60))},
        {},
        "train.csv line 61",
        "numbers are written with a point, such as 2.5",
    ),
    "a decimal comma among numbers": (
        {"train.csv": b"text;label\n" + b"".join(b"a sentence number %d;2,%d\n" % (n, n) for n in range(60))},
        {"kind": "number"},
        "train.csv line 2",
        "is not a number; write a point for the comma",
    ),
    "numbers and words": (
        {
            "train.csv": b"text,label\n"
            + b"".join(
                b"a sentence number %d,%s\n" % (n, b"NA" if n == 7 else b"%d.5" % n) for n in range(60)
            )
        },
        {},
        "train.csv line 9",
        "most are numbers: --kind number skips",
    ),
    "one label that is a part of another": (
        {
            "train.csv": b"text,label\n"
            + b"".join(
                b"a sentence number %d,%s\n" % (n, (b"joy", b"joy|love", b"fear")[n % 3]) for n in range(30)
            )
        },
        {},
        "train.csv line 3",
        'may be one label or several with "|" between them',
    ),
    "a label as long as a text": (
        {"train.csv": b"text,label\nshort," + b"very " * 50 + b"long\nother,x\n"},
        {},
        "train.csv line 2",
        "254 characters",
    ),
    "two texts and no names": (
        {
            "train.csv": b"".join(
                b"first text number %d,second text number %d,%d\n" % (n, n, n % 2) for n in range(20)
            )
        },
        {},
        "train.csv line 1",
        'of "1", "2"? Say it with --text-column (and --pair-column',
    ),
    "two labels": (
        {"train.csv": b"text,stars,sentiment\none two,1,a\nthree four,2,b\n"},
        {},
        "train.csv line 1",
        'of "stars", "sentiment"? Say it with --label-column',
    ),
    "two columns of one name": (
        {"train.csv": GOOD.replace(b"text,label", b"label,label")},
        {},
        "train.csv line 1",
        'columns 1 and 2 are both called "label"; rename one',
    ),
    "two unread columns of one name": (
        {"train.tsv": b"text\tx\tlabel\tx\n" + b"a row of words\t1\t0\t1\nmore of these\t1\t1\t1\n"},
        {},
        "train.tsv line 1",
        'columns 2 and 4 are both called "x"',
    ),
    "two columns of one name in Parquet": (
        {"train.parquet": parquet_twins()},
        {},
        "train.parquet row 1",
        'columns 2 and 3 are both called "label"',
    ),
    "one column": (
        {"train.csv": b"text\none\ntwo\n"},
        {},
        "train.csv line 1",
        "a task needs a text and a label",
    ),
    "no train": (
        {"dev.csv": GOOD, "test.csv": GOOD},
        {},
        "",
        "no train file (train.csv, .tsv, .jsonl, .parquet or .txt)",
    ),
    "two trains": (
        {"train.csv": GOOD, "train.tsv": GOOD},
        {},
        "",
        "several files for train (train.csv, train.tsv); keep one",
    ),
    "Excel that is none": ({"train.xlsx": b"PK"}, {}, "train.xlsx row 1", "is not an Excel workbook"),
    "Arrow that is none": ({"train.arrow": GOOD}, {}, "train.arrow row 1", "is not an Arrow file"),
    "gzip that is none": ({"train.csv.gz": GOOD}, {}, "train.csv.gz", "cannot be decompressed"),
    "half a gzip file": ({"train.csv.gz": gzip.compress(GOOD)[:-30]}, {}, "train.csv.gz", "is it complete?"),
    "half an xz file": ({"train.csv.xz": lzma.compress(GOOD)[:-30]}, {}, "train.csv.xz", "is it complete?"),
    "compressed Parquet": (
        {"train.parquet.gz": gzip.compress(parquet(text=MANY, label=BINARY))},
        {},
        "train.parquet.gz",
        "cannot tell its format",
    ),
    "no data files": ({"train.xls": b"PK"}, {}, "", "no data files; CSV (.csv), TSV"),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", BAD)
def test_one_line_names_the_file_and_the_row_and_says_what_is_right(name: str, tmp_path: Path) -> None:
    files, options, where, what = BAD[name]
    folder = tmp_path / "task"
    folder.mkdir()
    for file, content in files.items():
        (folder / file).write_bytes(content)
    with pytest.raises(UserError) as caught:
        load_task(str(folder), strict=True, **options)
    message = str(caught.value)
    assert message.startswith(str(folder))
    assert f"{where}: " in message if where else True
    assert what in message
    assert len(message) < 400 + len(str(folder))
    assert message.isprintable()


def test_at_least_thirty_malformed_files_are_tried() -> None:
    assert len(BAD) >= 30


def test_one_file_too_small_to_split_says_so(tmp_path: Path) -> None:
    path = tmp_path / "tiny.csv"
    path.write_bytes(b"text,label\none two,0\nthree four,1\n")
    with pytest.raises(
        UserError, match=r"tiny.csv: 2 rows are too few to split, dev gets none; give more rows"
    ):
        load_task(str(path))


def test_copies_of_few_texts_are_too_few_to_split(tmp_path: Path) -> None:
    path = tmp_path / "copies.csv"
    path.write_bytes(b"text,label\n" + b"same text,0\nother text,1\n" * 30)
    with pytest.raises(UserError, match=r"copies.csv: 2 different texts are too few .* other texts"):
        load_task(str(path))
    path.write_bytes(b"text,label\n" + b"same text,0\nsame text,1\n" * 30)
    with pytest.raises(UserError, match=r"1 different text is too few"):
        load_task(str(path))


def test_labels_that_are_probably_the_same_or_missing_are_mentioned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "odd.csv"
    names = ("good", "Good", "bad", "n/a")
    rows = [f"sentence number {n},{names[n % 4]}\n" for n in range(200)]
    path.write_text("text,label\n" + "".join(rows), encoding="utf-8")
    with caplog.at_level("INFO", "heedful"):
        load_task(str(path))
    assert '"Good", "good" differ in case or spaces alone; are they one label?' in caplog.text
    assert 'the label "n/a" is learned like any other' in caplog.text
    assert "bad" not in caplog.text


def test_the_folder_of_a_run_that_is_called_like_its_task_is_not_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data/letters"
    data.mkdir(parents=True)
    (data / "train.csv").write_bytes(GOOD)
    (data / "dev.csv").write_bytes(GOOD)
    (tmp_path / "work/letters").mkdir(parents=True)
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path / "work")
    with pytest.raises(UserError, match="no data files"):  # a person's own folder comes first
        load_task("letters")
    for name in ("study.json", "config.toml"):
        (tmp_path / "work/letters" / name).write_text("{}", encoding="utf-8")
        assert load_task("letters").folder == data
        assert absolute_value("task", "letters") == "letters"
        with pytest.raises(UserError, match=r"no data files|no train file"):
            load_task("./letters")
        (tmp_path / "work/letters" / name).unlink()
    (tmp_path / "work/letters/checkpoints").mkdir()  # a run that has only begun
    assert absolute_value("task", "letters") == "letters"


@pytest.mark.parametrize("name", ["nowhere.csv", "./nowhere", "/no/where"])
def test_a_path_that_does_not_exist_is_called_so(name: str) -> None:
    with pytest.raises(UserError, match="no such file or folder"):
        load_task(name)


def test_an_unknown_task_lists_the_nearest() -> None:
    with pytest.raises(UserError, match='unknown task "bolq"; did you mean "boolq"'):
        load_task("bolq")


def test_an_unreadable_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "train.csv").mkdir()
    with pytest.raises(UserError, match="no data files"):
        load_task(str(tmp_path))


def test_an_unknown_way_to_split_lists_the_ways(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes(GOOD)
    with pytest.raises(UserError, match='unknown way to split "last"; there are first, hash'):
        load_task(str(tmp_path), split="last")


def test_control_characters_in_data_never_reach_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_bytes(GOOD + b"a meal,\x1b]0;pwned\x07\n")
    with pytest.raises(UserError) as caught:
        load_task(str(tmp_path))
    assert "\x1b" not in str(caught.value)
    assert r"\x1b]0;pwned\x07" in str(caught.value)


@pytest.mark.parametrize("limit", [0, 64 * 2**20], ids=["in the cache", "in memory"])
def test_each_row_that_is_left_out_is_kept_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr("heedful.data.store.IN_MEMORY_BYTES", limit)
    path = tmp_path / "rows.csv"
    path.write_bytes(GOOD + b",1\nthe same text,\n")
    for _ in range(2):  # the second time from the cache
        with collect_notices() as notices:
            rows = load_task(str(path)).splits["train"].rows
        assert [reason.partition(";")[0].removeprefix(f"{path} ") for reason in rows.bad_rows] == [
            'line 22: empty text in column "text"',
            'line 23: the label is missing in column "label"',
        ]
        assert sum("skipped 2 of 22 rows" in notice for notice in notices) == 1


def test_byte_order_marks_inside_a_file_are_named_and_change_no_label(tmp_path: Path) -> None:
    path = tmp_path / "joined.csv"
    rows = b"".join(b"good film %d,\xef\xbb\xbfyes\nbad film %d,no\n" % (i, i) for i in range(20))
    path.write_bytes(b"text,label\n" + rows)
    with collect_notices() as notices:
        assert sorted(load_task(str(path)).label_names) == ["no", "yes"]
    assert "byte order marks" in " ".join(notices)


def test_doubled_carriage_returns_are_one_line_end(tmp_path: Path) -> None:
    path = tmp_path / "doubled.csv"
    path.write_bytes(
        b"text,label\r\r\n" + b"".join(b"film %d,yes\r\r\nfilm x%d,no\r\r\n" % (i, i) for i in range(20))
    )
    with collect_notices() as notices:
        assert sorted(load_task(str(path)).label_names) == ["no", "yes"]
    assert "two carriage returns" in " ".join(notices)
