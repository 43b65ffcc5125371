"""Read rows from CSV, TSV, JSON lines, Parquet, Arrow and text, in constant memory.

Every reader yields (line or row number, values). Errors name the file and the line. A row may have at most
`MAX_ROW_BYTES`: a longer one is an unclosed quote or a whole corpus in a cell, and would not fit in memory.
Rows that are malformed by themselves go to `bad`, which skips and counts or refuses them.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from heedful.data.bad_rows import BadRows
from heedful.data.cache import describe_os_error
from heedful.data.text_files import MAX_ROW_BYTES, read_lines, split_name, strip_line_end, too_long_error
from heedful.errors import UserError, shorten

SAMPLE_ROWS = 200
FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".xlsx": "xlsx",
    ".txt": "text",
    ".text": "text",
    ".tokens": "text",
    ".md": "text",
}
KINDS = (
    "CSV (.csv), TSV (.tsv), JSON lines (.jsonl), Parquet (.parquet), Arrow (.arrow), Excel (.xlsx) "
    "or text (.txt), also compressed (.csv.gz)"
)
BINARY = ("parquet", "arrow", "xlsx")
"""Formats that are never compressed as a whole."""

QUOTED_CELL = re.compile(r'"(?:[^"]++|"")*+"')
QUOTED_LINE = re.compile(
    r'(?:"(?:[^"]++|"")*+"|[^"\t\r\n]*+)(?:\t(?:"(?:[^"]++|"")*+"|[^"\t\r\n]*+))*+\r?\n?'
)
DECLARED_DELIMITER = re.compile(r'"?sep=(.)"?\s*', re.IGNORECASE)
"""Excel's first line of a CSV file, which is no row."""

Row = tuple[int, Sequence[Any]]


def detect_format(path: Path) -> str:
    name = FORMATS.get(split_name(path)[1])
    if name is None or (name in BINARY and path.suffix.lower() not in FORMATS):
        raise UserError(f"{path}: cannot tell its format from the name; {KINDS}")
    return name


def is_data_file(path: Path) -> bool:
    return split_name(path)[1] in FORMATS and path.is_file()


def read_plain(path: Path, bad: BadRows) -> Iterator[Row]:
    """Yield the cells between tabs; quotes have no meaning, and empty lines are skipped."""
    for number, line in read_lines(path, bad):
        if not bad.has_marked_line() and (line := strip_line_end(line)):
            yield number, line.split("\t")


def read_quoted(path: Path, delimiter: str, bad: BadRows) -> Iterator[Row]:
    """Yield the cells of a CSV file: a quoted cell may hold delimiters, line breaks and doubled quotes."""
    csv.field_size_limit(MAX_ROW_BYTES + 1)
    start, size = 1, 0

    def feed() -> Iterator[str]:
        nonlocal size
        for number, line in read_lines(path, bad):
            size += len(line)
            if size > MAX_ROW_BYTES:
                raise too_long_error(path, start) if start == number else unclosed_quote_error(path, start)
            yield "\n" if number == 1 and DECLARED_DELIMITER.fullmatch(line) else line

    rows = csv.reader(feed(), delimiter=delimiter, strict=True)
    while True:
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise csv_error(path, start, str(error)) from None
        if not bad.has_marked_line() and cells:
            yield start, cells
        start, size = rows.line_num + 1, 0


def unclosed_quote_error(path: Path, number: int) -> UserError:
    return UserError(
        f'{path} line {number}: a quote that opens here is never closed; a quote in a cell is written ""'
    )


def csv_error(path: Path, number: int, message: str) -> UserError:
    if "unexpected end" in message:
        return unclosed_quote_error(path, number)
    if "expected after" in message:
        return UserError(
            f'{path} line {number}: text after a closing quote; a quote in a quoted cell is written ""'
        )
    if "new-line" in message:
        return UserError(f"{path} line {number}: a carriage return inside an unquoted cell; quote the cell")
    return UserError(f"{path} line {number}: broken CSV ({message})")


def is_quoted_tsv(path: Path) -> bool:
    """Return whether a TSV file uses quotes as CSV does: wherever it has a quote, and at least once.

    One quote elsewhere, as in `he said "no"`, means that quotes are only text; so do two quotes that would
    join lines which are complete rows by themselves.
    """
    parts: list[str] = []
    seen, quotes, size = False, 0, 0
    for _, line in read_lines(path, BadRows()):
        if not parts and '"' not in line:
            continue
        parts.append(line)
        quotes, size = quotes + line.count('"'), size + len(line)
        if size > MAX_ROW_BYTES:
            return False
        if quotes % 2:
            continue
        joined = "".join(parts)
        if not QUOTED_LINE.fullmatch(joined):
            return False
        if len(parts) > 1:
            outside = QUOTED_CELL.sub("", joined).count("\t")
            if outside and all(part.count("\t") == outside for part in parts):
                return False
        seen, parts, quotes, size = True, [], 0, 0
    return seen and not parts


def detect_delimiter(path: Path) -> str:
    """Return a CSV file's delimiter: declared, or that by which most rows are as wide as the first one."""
    _, first = next(read_lines(path, BadRows()), (1, ""))
    if declared := DECLARED_DELIMITER.fullmatch(first):
        return declared[1]
    shares = {}
    for delimiter in ",;\t|":
        try:
            rows = islice(read_quoted(path, delimiter, BadRows()), SAMPLE_ROWS)
            widths = [len(cells) for _, cells in rows]
        except UserError:
            continue
        if widths and widths[0] > 1:
            shares[delimiter] = widths.count(widths[0]) / len(widths)
    return max(shares, key=lambda delimiter: shares[delimiter], default=",")


def read_json(path: Path, bad: BadRows) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in read_lines(path, bad):
        if bad.has_marked_line() or not line.strip():
            continue
        if number == 1 and line.lstrip().startswith("["):
            raise UserError(
                f"{path} line 1: a JSON array; write one object per line (jq -c '.[]' {path.name})"
            )
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            detail = ""
            if isinstance(error, json.JSONDecodeError):
                detail = f" at column {error.colno}: {error.msg.lower()}"
            bad.add(UserError(f"{path} line {number}: broken JSON{detail}; write one object per line"))
            continue
        if not isinstance(row, dict):
            shown = shorten(line.strip(), 30)
            bad.add(UserError(f'{path} line {number}: {shown} is not an object such as {{"text": ...}}'))
            continue
        yield number, row


def read_arrow(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the values of some columns of a Parquet or Arrow file, a part of the file at a time."""
    import pyarrow as pa

    number = 0
    with open_arrow(path) as file:
        try:
            for batch in file.batches(list(dict.fromkeys(columns))):
                values = [batch.column(name).to_pylist() for name in columns]
                for row in zip(*values, strict=True):
                    number += 1
                    yield number, row
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path} row {number + 1}: broken {file.title} ({error})") from None


class ParquetFile:
    title = "Parquet"

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        self.file: Any = pq.ParquetFile(path, memory_map=False, pre_buffer=False)
        self.schema: Any = self.file.schema_arrow
        self.names = tuple(self.schema.names)
        self.is_empty = not self.file.metadata.num_rows

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        yield from self.file.iter_batches(batch_size=1024, columns=list(columns))

    def __enter__(self) -> ParquetFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()


class ArrowFile(ParquetFile):
    """An Arrow file or stream; `datasets` writes the latter under the same suffix."""

    title = "Arrow"

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self.file = pa.OSFile(str(path))
        try:
            reader = pa.ipc.open_file(self.file)
            self.parts: Iterable[Any] = (reader.get_batch(n) for n in range(reader.num_record_batches))
        except pa.ArrowInvalid:
            self.file.seek(0)
            self.parts = reader = pa.ipc.open_stream(self.file)
        self.schema = reader.schema
        self.names = tuple(self.schema.names)
        self.is_empty = False

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        return (part.select(list(columns)) for part in self.parts)


def open_arrow(path: Path) -> ParquetFile:
    import pyarrow as pa

    kind = ParquetFile if detect_format(path) == "parquet" else ArrowFile
    try:
        return kind(path)
    except pa.ArrowException:
        article = "a" if kind is ParquetFile else "an"
        raise UserError(
            f"{path} row 1: is not {article} {kind.title} file (its end is missing or damaged)"
        ) from None
    except OSError as error:
        raise UserError(f"{path}: {describe_os_error(error)}") from None
