"""Writing labeled rows: CSV, TSV, JSON lines and Parquet, in the form of the file that was read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from heedful.data.columns import Sheet
from heedful.data.readers import open_arrow
from heedful.data.text_files import WESTERN, detect_encoding, detect_line_end, split_name
from heedful.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

DELIMITERS = {".csv": ",", ".tsv": "\t"}
LINES = (".jsonl", ".ndjson")
PARQUET = ".parquet"
SUFFIXES = (*DELIMITERS, *LINES, PARQUET)
FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20].|[\t\r\n]", re.DOTALL)
"""What spreadsheets take for the beginning of a formula."""
NUMBER = re.compile(r"\s*[+-]?\s?\d[\d\s.,]*(?:[eE][+-]?\d+)?\s*%?\s*")

Cells = list[Any]


class ColumnTypes:
    """The kinds of values in a JSON lines file, column by column, for the schema of a Parquet file."""

    def __init__(self, width: int) -> None:
        self.kinds: list[set[str]] = [set() for _ in range(width)]

    def add(self, cells: Sequence[Any]) -> None:
        for kinds, cell in zip(self.kinds, cells, strict=True):
            if cell is not None:
                kinds.add(name_kind(cell))

    def choose(self) -> list[pa.DataType]:
        """Return a type per column: text where values are of several kinds, or lists and objects."""
        import pyarrow as pa

        types = {
            "bool": pa.bool_(),
            "int": pa.int64(),
            "large": pa.int64(),
            "int large": pa.int64(),
            "float": pa.float64(),
            "float int": pa.float64(),
        }
        return [types.get(" ".join(sorted(kinds)), pa.string()) for kinds in self.kinds]


def name_kind(value: Any) -> str:
    """Return the kind of a value; a float cannot hold a large integer."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if abs(value) <= 2**53 else "large" if abs(value) < 2**63 else "other"
    return "float" if isinstance(value, float) else "other"


@dataclass(frozen=True)
class Dialect:
    """How a text file is written; without a delimiter it has one JSON object per line."""

    delimiter: str | None
    encoding: str = "utf-8"
    line_end: str = "\n"


class RowWriter:
    """Writes rows to a text file; a row is a list of cells, whatever they contain.

    With `safe`, a cell that a spreadsheet would take for a formula gets a ' before it; `made_safe` counts
    these cells.
    """

    def __init__(self, file: TextIO, dialect: Dialect, names: Sequence[str], *, safe: bool) -> None:
        self.file, self.dialect, self.names, self.safe = file, dialect, list(names), safe
        self.made_safe = 0
        self.special = {dialect.delimiter, '"', "\n", "\r"}
        if dialect.delimiter is not None:
            self.write([self.names])

    def write(self, rows: Sequence[Cells]) -> None:
        delimiter = self.dialect.delimiter
        for row in rows:
            if delimiter is None:
                line = json.dumps(dict(zip(self.names, row, strict=True)), ensure_ascii=False, default=str)
                self.file.write(line + "\n")
            else:
                self.file.write(delimiter.join(map(self.format_cell, row)) + self.dialect.line_end)

    def format_cell(self, cell: Any) -> str:
        """Return a cell as it is written, quoted by RFC 4180; Python's writer leaves carriage returns."""
        text = cell_text(cell)
        if self.safe and isinstance(cell, str) and runs_in_spreadsheet(cell):
            text = f"'{text}"
            self.made_safe += 1
        return text if self.special.isdisjoint(text) else '"' + text.replace('"', '""') + '"'


class ParquetWriter:
    """Writes rows to a Parquet file, a row group per call of `write`."""

    made_safe = 0

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self.schema, self.file = schema, pq.ParquetWriter(path, schema)

    def write(self, rows: Sequence[Cells]) -> None:
        import pyarrow as pa

        arrays = []
        for column, kind in zip(zip(*rows, strict=True), self.schema.types, strict=True):
            values = map(arrow_text, column) if pa.types.is_string(kind) else column
            arrays.append(pa.array(list(values), kind))
        self.file.write_table(pa.Table.from_arrays(arrays, schema=self.schema))


@contextmanager
def open_writer(
    path: Path,
    out: Path,
    sheet: Sheet,
    added: Sequence[str],
    *,
    labels: Sequence[str],
    types: ColumnTypes,
    text_columns: int,
    safe: bool,
) -> Iterator[RowWriter | ParquetWriter]:
    """Open a file to write rows to.

    Parameters
    ----------
    path
        The new file, which later gets the name `out`.
    out
        Says what form the file has, by its suffix.
    sheet
        The file that was read.
    added
        Names of the new columns.
    labels
        Names of the labels that will be written.
    types
        The types of the sheet's values, for Parquet.
    text_columns
        How many of the new columns hold text; the others hold numbers.
    safe
        Make cells safe that a spreadsheet would take for a formula.

    """
    names = [*sheet.names, *added]
    if out.suffix.lower() != PARQUET:
        dialect = choose_dialect(sheet, out, labels)
        # JSON may hold halves of characters, which no encoding has.
        with path.open("x", encoding=dialect.encoding, errors="replace", newline="") as file:
            yield RowWriter(file, dialect, names, safe=safe)
        return
    import pyarrow as pa

    kinds = [pa.string()] * text_columns + [pa.float64()] * (len(added) - text_columns)
    new = [pa.field(name, kind) for name, kind in zip(added, kinds, strict=True)]
    writer = ParquetWriter(path, pa.schema([*list_fields(sheet, types), *new]))
    try:
        yield writer
    finally:
        writer.file.close()


def list_fields(sheet: Sheet, types: ColumnTypes) -> list[pa.Field]:
    """Return the columns of the file that was read, as those of a Parquet file."""
    import pyarrow as pa

    if sheet.format in ("parquet", "arrow"):
        with open_arrow(sheet.path) as file:
            return [file.schema.field(name) for name in sheet.names]
    kinds = types.choose() if sheet.format == "jsonl" else [pa.string()] * len(sheet.names)
    return [pa.field(name, kind) for name, kind in zip(sheet.names, kinds, strict=True)]


def refuse_suffix(out: Path) -> None:
    if out.suffix.lower() not in SUFFIXES:
        raise UserError(f"--out {out}: is one of {', '.join(SUFFIXES)}")


def runs_in_spreadsheet(cell: str) -> bool:
    """Whether a spreadsheet would take a text for a formula; numbers are none."""
    return FORMULA.match(cell) is not None and NUMBER.fullmatch(cell) is None


def choose_dialect(sheet: Sheet, out: Path, labels: Sequence[str]) -> Dialect:
    """Return the dialect of the file that was read where the new one has the same suffix.

    A file in Windows' encoding becomes UTF-8 with a byte order mark, which Excel understands, if the labels
    may not exist in that encoding.
    """
    suffix = out.suffix.lower()
    if suffix not in DELIMITERS or split_name(sheet.path)[1] != suffix:
        return Dialect(DELIMITERS.get(suffix))
    encoding = detect_encoding(sheet.path)
    if encoding == WESTERN:
        try:
            if not labels:
                encoding = "utf-8-sig"
            "".join(labels).encode(WESTERN)
        except UnicodeEncodeError:
            encoding = "utf-8-sig"
    return Dialect(sheet.delimiter, encoding, detect_line_end(sheet.path))


def arrow_text(cell: Any) -> str | None:
    return None if cell is None else cell_text(cell).encode("utf-8", "replace").decode()


def cell_text(cell: Any) -> str:
    """Return a cell as text; a number keeps all its digits."""
    if isinstance(cell, float):
        return repr(cell)
    if cell is None or isinstance(cell, str):
        return cell or ""
    return json.dumps(cell, ensure_ascii=False, default=str)
