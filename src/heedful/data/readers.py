"""Read rows from CSV, TSV, JSON lines, Parquet and text, in constant memory.

Every reader yields (line or row number, values). Errors name the file and the line. A row may have at most
`MAX_ROW_BYTES`: a longer one is an unclosed quote or a whole corpus in a cell, and would not fit in memory.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from heedful.data.cache import describe_os_error
from heedful.errors import UserError, shorten

MAX_ROW_BYTES = 4 * 2**20
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
    ".txt": "text",
    ".text": "text",
    ".tokens": "text",
    ".md": "text",
}
KINDS = "CSV (.csv), TSV (.tsv), JSON lines (.jsonl), Parquet (.parquet) or text (.txt)"

QUOTED_CELL = re.compile(r'"(?:[^"]++|"")*+"')
QUOTED_LINE = re.compile(
    r'(?:"(?:[^"]++|"")*+"|[^"\t\r\n]*+)(?:\t(?:"(?:[^"]++|"")*+"|[^"\t\r\n]*+))*+\r?\n?'
)

Row = tuple[int, Sequence[Any]]


def detect_format(path: Path) -> str:
    name = FORMATS.get(path.suffix.lower())
    if name is None:
        raise UserError(f"{path}: cannot tell its format from the name; {KINDS}")
    return name


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (number, line with its end) of a UTF-8 file without its byte order mark."""
    try:
        with path.open("rb", buffering=2**20) as file:
            number = 0
            while raw := file.readline(MAX_ROW_BYTES + 1):
                number += 1
                if len(raw) > MAX_ROW_BYTES:
                    raise too_long_error(path, number)
                if number == 1:
                    raw = check_first_line(path, raw)
                if b"\0" in raw:
                    raise UserError(
                        f"{path} line {number}: a NUL byte; save the file as UTF-8 text (not UTF-16)"
                    )
                try:
                    yield number, raw.decode()
                except UnicodeDecodeError as error:
                    raise UserError(
                        f"{path} line {number}: byte {error.start + 1} is not UTF-8 "
                        f"(0x{raw[error.start]:02x}); convert the file, for example: iconv -f latin1 -t utf-8"
                    ) from None
    except OSError as error:
        raise UserError(f"{path}: {describe_os_error(error)}") from None


def check_first_line(path: Path, raw: bytes) -> bytes:
    """Drop a byte order mark; refuse encodings and line ends that would make the whole file one row."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise UserError(f"{path} line 1: is UTF-16; save it as UTF-8")
    if not raw.endswith(b"\n") and b"\r" in raw.rstrip(b"\r"):
        raise UserError(f"{path} line 1: lines end with a carriage return alone; end them with \\n")
    return raw.removeprefix(b"\xef\xbb\xbf")


def too_long_error(path: Path, number: int, unit: str = "line") -> UserError:
    return UserError(
        f"{path} {unit} {number}: longer than {MAX_ROW_BYTES // 2**20} MB; one row is one text: split it "
        f"(for example: fold -s -w 10000), or close an open quote"
    )


def strip_line_end(line: str) -> str:
    return line.removesuffix("\n").removesuffix("\r")


def read_plain(path: Path) -> Iterator[Row]:
    """Yield the cells between tabs; quotes have no meaning, and empty lines are skipped."""
    for number, line in read_lines(path):
        if line := strip_line_end(line):
            yield number, line.split("\t")


def read_quoted(path: Path, delimiter: str) -> Iterator[Row]:
    """Yield the cells of a CSV file: a quoted cell may hold delimiters, line breaks and doubled quotes."""
    csv.field_size_limit(MAX_ROW_BYTES + 1)
    start, size = 1, 0

    def feed() -> Iterator[str]:
        nonlocal size
        for number, line in read_lines(path):
            size += len(line)
            if size > MAX_ROW_BYTES:
                raise too_long_error(path, start) if start == number else unclosed_quote_error(path, start)
            yield line

    rows = csv.reader(feed(), delimiter=delimiter, strict=True)
    while True:
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise csv_error(path, start, str(error)) from None
        if cells:
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
    for _, line in read_lines(path):
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
    """Return a CSV file's delimiter: a comma, unless only a semicolon or a tab gives rows of equal width."""
    for delimiter in ",;\t":
        try:
            widths = {len(cells) for _, cells in islice(read_quoted(path, delimiter), SAMPLE_ROWS)}
        except UserError:
            continue
        if len(widths) == 1 and widths != {1}:
            return delimiter
    return ","


def read_json(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in read_lines(path):
        if not line.strip():
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
            raise UserError(f"{path} line {number}: broken JSON{detail}; write one object per line") from None
        if not isinstance(row, dict):
            raise UserError(
                f'{path} line {number}: {shorten(line, 30)} is not an object such as {{"text": ...}}'
            )
        yield number, row


def read_parquet(path: Path, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the values of some columns of a Parquet file, a thousand rows at a time."""
    import pyarrow as pa

    number = 0
    with open_parquet(path) as file:
        try:
            for batch in file.iter_batches(batch_size=1024, columns=list(dict.fromkeys(columns))):
                values = [batch.column(name).to_pylist() for name in columns]
                for row in zip(*values, strict=True):
                    number += 1
                    yield number, row
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path} row {number + 1}: broken Parquet ({error})") from None


def open_parquet(path: Path) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path, memory_map=False, pre_buffer=False)
    except pa.ArrowException:
        raise UserError(f"{path} row 1: is not a Parquet file (its end is missing or damaged)") from None
    except OSError as error:
        raise UserError(f"{path}: {describe_os_error(error)}") from None
