"""Files as people have them: bad rows, other encodings, compression, Excel, a folder per class."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.feather
import pytest

from heedful.data import Task, load_task, notices
from heedful.errors import UserError

pytestmark = pytest.mark.usefixtures("printed_messages")

ROWS = [(f"das Menü Nummer {n} kam zu spät", "gut" if n % 3 else "schlecht") for n in range(60)]
CSV = "Text;Label\r\n" + "".join(f"{text};{label}\r\n" for text, label in ROWS)


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEEDFUL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(notices, "_said", set())


def rows(task: Task) -> list[tuple[str, str]]:
    found = [(row.text, task.label_names[row.label or 0]) for split in task.splits.values() for row in split]
    return sorted(found, key=lambda row: int(row[0].split()[3]))


def compress(kind: str) -> Callable[[bytes], bytes]:
    def run(content: bytes) -> bytes:
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, kind) as stream:
            stream.write(content)
        return bytes(sink.getvalue())

    return run


@pytest.mark.parametrize(
    ("name", "encoding", "pack"),
    [
        ("plain.csv", "utf-8", bytes),
        ("mark.csv", "utf-8-sig", bytes),
        ("excel.csv", "utf-16", bytes),
        ("big-endian.csv", "utf-16-be", lambda raw: b"\xfe\xff" + raw),
        ("windows.csv", "cp1252", bytes),
        ("small.csv.gz", "utf-8", gzip.compress),
        ("small.csv.bz2", "utf-8", bz2.compress),
        ("small.csv.xz", "utf-8", lzma.compress),
        ("small.csv.zst", "utf-8", compress("zstd")),
        ("small.csv.lz4", "utf-8", compress("lz4")),
        ("both.csv.gz", "utf-16", gzip.compress),
        ("tabs.csv", "utf-8", lambda raw: raw.replace(b";", b"\t")),
        ("bars.csv", "utf-8", lambda raw: raw.replace(b";", b"|")),
    ],
)
def test_encodings_delimiters_and_compression_change_no_row(
    tmp_path: Path, name: str, encoding: str, pack: Callable[[bytes], bytes]
) -> None:
    (tmp_path / name).write_bytes(pack(CSV.encode(encoding)))
    assert rows(load_task(str(tmp_path / name))) == ROWS


def test_json_lines_may_be_compressed_and_be_a_split(tmp_path: Path) -> None:
    lines = "".join(f'{{"text": "{text}", "label": "{label}"}}\n' for text, label in ROWS).encode()
    (tmp_path / "train.jsonl.zst").write_bytes(compress("zstd")(lines))
    (tmp_path / "dev.jsonl.gz").write_bytes(gzip.compress(lines))
    task = load_task(str(tmp_path))
    assert {name: len(split) for name, split in task.splits.items()} == {"train": 60, "dev": 60}


def test_windows_encoding_is_announced_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "windows.csv").write_bytes(CSV.encode("cp1252"))
    load_task(str(tmp_path / "windows.csv"))
    assert capsys.readouterr().err.count("is read as Windows' Western European encoding (cp1252)") == 1


@pytest.mark.parametrize("stream", [False, True])
def test_arrow_files_and_streams_are_read(tmp_path: Path, stream: bool) -> None:
    table = pa.table({"text": [text for text, _ in ROWS], "label": [label for _, label in ROWS]})
    path = tmp_path / "rows.arrow"
    if stream:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
    else:
        pa.feather.write_feather(table, str(path))
    assert rows(load_task(str(path))) == ROWS


WORKBOOK = """<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"
 xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships">
<sheets><sheet name="First" sheetId="7" r:id="rId3"/><sheet name="Other" sheetId="1" r:id="rId1"/></sheets></workbook>"""
RELATIONS = """<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">
<Relationship Id="rId1" Target="worksheets/sheet1.xml"/><Relationship Id="rId3" Target="/xl/worksheets/sheet2.xml"/>
</Relationships>"""
SHEET = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>{}</sheetData></worksheet>'


def write_xlsx(path: Path, rows: str, strings: str) -> None:
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("xl/workbook.xml", WORKBOOK)
        book.writestr("xl/_rels/workbook.xml.rels", RELATIONS)
        book.writestr("xl/worksheets/sheet1.xml", SHEET.format("<row r='1'><c r='A1'><v>9</v></c></row>"))
        book.writestr("xl/worksheets/sheet2.xml", SHEET.format(rows))
        book.writestr(
            "xl/sharedStrings.xml",
            f'<sst xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">{strings}</sst>',
        )


def test_the_first_sheet_of_a_workbook_is_a_table(tmp_path: Path) -> None:
    strings = ["<si><t>review</t></si>", "<si><t>stars</t></si>"]
    cells = ['<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="s"><v>1</v></c></row>']
    for n in range(40):
        strings.append(
            f"<si><r><t>the meal </t></r><r><t>number {n}_x000D_\n</t></r><rPh><t>no</t></rPh></si>"
        )
        cells.append(
            f'<row r="{n + 3}"><c r="A{n + 3}" t="s"><v>{n + 2}</v></c><c r="C{n + 3}"><v>{n % 5}</v></c></row>'
        )
    cells.append(
        '<row r="50"><c r="A50" t="inlineStr"><is><t>typed in</t></is></c><c r="C50" t="str"><v>1</v></c></row>'
    )
    cells.append(
        '<row r="51"><c r="A51" t="e"><v>#N/A</v></c><c r="C51"><v>1</v></c></row><row r="52"></row>'
    )
    write_xlsx(tmp_path / "book.xlsx", "".join(cells), "".join(strings))
    task = load_task(str(tmp_path / "book.xlsx"))
    texts = {text for split in task.splits.values() for text in split.texts}
    assert texts == {f"the meal number {n}\r\n" for n in range(40)} | {"typed in"}
    assert task.label_names == ["0", "1", "2", "3", "4"]
    assert task.columns == {"text": "review", "label": "stars", "selection": "by name"}
    assert task.splits["train"].rows.skipped.startswith("skipped 1 of 42 rows, first row 51: empty text")


def write_classes(folder: Path, classes: dict[str, int], suffix: str = ".txt") -> None:
    for label, count in classes.items():
        (folder / label).mkdir(parents=True)
        for n in range(count):
            (folder / label / f"{n}_7{suffix}").write_text(f"{label} meal {n}\nwith a second line\n")


def test_a_folder_per_class_is_split_by_content(tmp_path: Path) -> None:
    write_classes(tmp_path / "reviews", {"pos": 40, "neg": 30})
    (tmp_path / "reviews" / "notes").mkdir()
    (tmp_path / "reviews" / "README").write_text("about these reviews")
    task = load_task(str(tmp_path / "reviews"))
    assert task.name == "reviews"
    assert task.label_names == ["neg", "pos"]
    assert list(task.splits) == ["train", "dev", "test"]
    found = {(row.text, task.label_names[row.label or 0]) for split in task.splits.values() for row in split}
    expected = {"pos": 40, "neg": 30}
    assert found == {
        (f"{label} meal {n}\nwith a second line", label)
        for label, count in expected.items()
        for n in range(count)
    }


def test_class_folders_may_be_inside_splits_beside_unlabeled_texts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_classes(tmp_path / "train", {"pos": 49, "neg": 48, "unsup": 5})
    write_classes(tmp_path / "test", {"pos": 3, "neg": 2})
    (tmp_path / "train" / "urls_pos.txt").write_text("http://here")
    task = load_task(str(tmp_path))
    assert task.label_names == ["neg", "pos"]
    assert len(task.splits["train"]) + len(task.splits["dev"]) == 97
    assert len(task.splits["test"]) == 5
    assert "not read, because without labels or texts: unsup" in capsys.readouterr().err


def test_a_changed_class_folder_is_another_task(tmp_path: Path) -> None:
    write_classes(tmp_path / "reviews", {"pos": 40, "neg": 30})
    before = load_task(str(tmp_path / "reviews")).fingerprint
    assert load_task(str(tmp_path / "reviews")).fingerprint == before
    (tmp_path / "reviews" / "pos" / "0_7.txt").write_text("another text")
    assert load_task(str(tmp_path / "reviews")).fingerprint != before


GOOD = b"text,label\n" + b"".join(b"a sentence number %d,%d\n" % (n, n % 2) for n in range(40))
GOOD_JSON = b"".join(b'{"text": "a sentence number %d", "label": %d}\n' % (n, n % 2) for n in range(40))
SKIPPED = {
    "an empty text": ("a.csv", GOOD + b",1\n", 'line 42: empty text in column "text"'),
    "a missing label": ("a.csv", GOOD + b"more text,\n", "line 42: the label is missing"),
    "a nan": ("a.csv", GOOD + b"more text,NaN\n", "line 42: the label is missing"),
    "a row that is too wide": ("a.csv", GOOD + b"one, two,1\n", "line 42: 3 columns"),
    "a row that is too narrow": ("a.csv", GOOD + b"alone\n", "line 42: 1 column"),
    "a NUL byte": ("a.csv", GOOD + b"a\0b,1\n", "line 42: a NUL byte"),
    "a byte that is not UTF-8": (
        "a.csv",
        GOOD + 4 * "café,1\n".encode() + b'"two\nl\xefnes",1\n',
        "line 47: byte 2 is not UTF-8 (0xef)",
    ),
    "broken JSON": ("a.jsonl", GOOD_JSON + b'{"text": \n', "line 41: broken JSON"),
    "JSON that is no object": ("a.jsonl", GOOD_JSON + b"7\n", "line 41: 7 is not an object"),
    "JSON without the text": ("a.jsonl", GOOD_JSON + b'{"label": 1}\n', 'line 41: "text" is missing'),
    "JSON with a number as text": ("a.jsonl", GOOD_JSON + b'{"text": 5, "label": 1}\n', "not a string but 5"),
    "half a surrogate": ("a.jsonl", GOOD_JSON + b'{"text": "\\ud800", "label": 1}', "surrogate"),
    "a broken line at the beginning": ("a.jsonl", b"{\n" + GOOD_JSON, "line 1: broken JSON"),
}


@pytest.mark.parametrize("name", SKIPPED)
def test_a_bad_row_is_skipped_and_announced_and_strict_refuses_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, content, what = SKIPPED[name]
    (tmp_path / file).write_bytes(content)
    good = 44 if "UTF-8" in name else 40
    task = load_task(str(tmp_path / file))
    assert sum(len(split) for split in task.splits.values()) == good
    notice = capsys.readouterr().err
    assert f"{file}: skipped 1 of {good + 1} rows, first " in notice
    assert what in notice
    assert "(--strict refuses such files)" in notice
    with pytest.raises(UserError) as caught:
        load_task(str(tmp_path / file), strict=True)
    assert what in str(caught.value)


def test_empty_cells_are_skipped_however_many_there_are(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(GOOD + 80 * b"not labeled yet,\n")
    task = load_task(str(tmp_path / "a.csv"))
    assert sum(len(split) for split in task.splits.values()) == 40
    assert task.splits["train"].rows.skipped.startswith("skipped 80 of 120 rows, first line 42")


def test_blank_rows_as_excel_writes_them_are_no_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.csv").write_bytes(GOOD + b",\n,\n")
    assert sum(len(split) for split in load_task(str(tmp_path / "a.csv"), strict=True).splits.values()) == 40
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (GOOD + 10 * b"a, b,1\n", r"3 columns, but .* \(10 of 50 rows are malformed\)"),
        (b"text,label\n" + 5 * b",1\n", "line 2: empty text"),
    ],
)
def test_a_file_that_is_mostly_bad_is_refused(tmp_path: Path, content: bytes, what: str) -> None:
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(UserError, match=what):
        load_task(str(tmp_path / "a.csv"))


def test_large_files_remember_what_was_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("heedful.data.store.IN_MEMORY_BYTES", 10)
    (tmp_path / "a.csv").write_bytes(GOOD + b",1\n")
    for _ in range(2):
        monkeypatch.setattr(notices, "_said", set())
        load_task(str(tmp_path / "a.csv"))
        assert "skipped 1 of 41 rows" in capsys.readouterr().err
    with pytest.raises(UserError, match="skipped 1 of 41 rows"):
        load_task(str(tmp_path / "a.csv"), strict=True)


def test_a_label_that_a_split_lacks_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_bytes(GOOD + b"a rare one,7\n")
    task = load_task(str(tmp_path / "a.csv"))
    lacking = [name for name, split in task.splits.items() if 2 not in split.labels.tolist()]
    notices = capsys.readouterr().err
    assert len(lacking) == 2
    for name in lacking:
        assert f'{name} has no row with the label "7"; add rows, try another --split-seed' in notices
    capsys.readouterr()
    load_task(str(tmp_path / "a.csv"))
    assert capsys.readouterr().err == "", "once per process"


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("data/reviws.csv", 'no such file or folder; did you mean "data/reviews.csv"?'),
        ("data/reviws", 'no such file or folder; did you mean "data/reviews'),
        ("dat/reviews.csv", "no such file or folder; there is no folder dat"),
        ("reviews.csv.gz", "reviews.csv.gz: no such file or folder"),
        ("reviews.xlsx", "reviews.xlsx: no such file or folder"),
        ("a/b/c", "a/b/c: no such file or folder"),
        ("C:\\data\\x", "no such file or folder"),
        ("banking7", 'unknown task "banking7"; did you mean "banking77"?'),
        ("not a name", 'unknown task "not a name"; there are '),
    ],
)
def test_a_mistyped_path_is_called_a_path(
    name: str, what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "reviews.csv").write_bytes(GOOD)
    (tmp_path / "mine" / "banking77").mkdir(parents=True)
    monkeypatch.setenv("HEEDFUL_DATA", str(tmp_path / "mine"))
    with pytest.raises(UserError) as caught:
        load_task(name)
    assert what in str(caught.value)
