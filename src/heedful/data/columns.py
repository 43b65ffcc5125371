"""Find the columns of the text, its pair and the label: as the user says, by name, or by content.

Nothing is guessed: when two columns are possible, the error names the options that decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from heedful.data import cache, readers
from heedful.data.bad_rows import BadRows
from heedful.data.class_folders import (
    hash_class_folder,
    list_class_files,
    read_class_folder,
    report_unread_files,
)
from heedful.data.label_columns import (
    LABELS,
    OTHERS,
    ambiguous_column_error,
    choose_label_column,
    find_indicators,
    find_label_columns,
    has_few_values,
    is_candidate,
    is_prose,
    split_names,
)
from heedful.data.spreadsheets import read_spreadsheet
from heedful.data.text_files import COMPRESSIONS
from heedful.errors import UserError, shorten, unknown

PAIRS = (
    ("question", "passage"),
    ("question", "context"),
    ("question", "sentence"),
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("question1", "question2"),
    ("text1", "text2"),
    ("text_a", "text_b"),
    ("text", "pair"),
    ("text", "text_pair"),
    ("text", "text2"),
    ("sentence", "sentence2"),
    ("query", "passage"),
    ("query", "document"),
)
FIRST_TEXTS = ("text", "sentence")
OTHER_TEXTS = (
    "review question premise passage content comment tweet document body utterance query message input "
    "article description headline review_body review_text title"
)
TEXTS = (*FIRST_TEXTS, *OTHER_TEXTS.split())
KNOWN = {*TEXTS, *LABELS, *OTHERS, *(name for pair in PAIRS for name in pair)}
NAME = re.compile(r"[^\W\d][\w .:-]{0,40}")
FEW_ROWS = 8
COMPRESSION_RATIO = 5
HEADER_ROWS = 2000
"""Number of rows read to recognize a header: when there are many labels, few recur in a short sample."""


@dataclass(frozen=True)
class SplitColumn:
    """The column that rows are split by: those of a group, such as an author, or of a time stay together."""

    name: str
    kind: Literal["group", "time"]


def find_split_column(group: str | None, time: str | None) -> SplitColumn | None:
    """Return the column that the options say to split rows by, or None."""
    if group is not None and time is not None:
        raise UserError(
            "--group and --time exclude each other: an author may have written both early and late rows; "
            "choose what new texts will be, by other authors or of a later time"
        )
    if group is not None:
        return SplitColumn(group, "group")
    return None if time is None else SplitColumn(time, "time")


@dataclass(frozen=True)
class ColumnChoice:
    """The columns that the user named; None means that the column is to be found."""

    text: str | None = None
    pair: str | None = None
    label: str | None = None
    """One column, or several of 0 and 1 with commas between their names."""
    by: SplitColumn | None = None

    @property
    def split_column(self) -> str | None:
        return self.by.name if self.by else None

    def names(self) -> list[str]:
        several = self.label.split(",") if self.label and "," in self.label else ()
        return [name for name in (self.text, self.pair, self.label, *several, self.split_column) if name]

    def check(self, sheet: Sheet) -> None:
        """Refuse a column that the file does not have."""
        labels = () if self.label is None else split_names(sheet, self.label)
        for name in (self.text, self.pair, *labels, self.split_column):
            if name and name not in sheet.names:
                raise missing_column_error(sheet, name)


@dataclass(frozen=True)
class Sheet:
    """A file as rows and named columns; without a header the columns are called 1, 2, 3, ..."""

    path: Path
    format: str
    names: tuple[str, ...]
    header: bool
    delimiter: str
    quoted: bool
    sample: tuple[Sequence[Any], ...]

    @property
    def unit(self) -> str:
        """What a row's number counts, for messages."""
        return {"parquet": "row", "arrow": "row", "xlsx": "row", "folder": "file"}.get(self.format, "line")

    @property
    def is_typed(self) -> bool:
        """Whether values have types and may hold any character, unlike the cells of a text file."""
        return self.format in ("jsonl", "parquet", "arrow", "folder")

    @property
    def content_hash(self) -> str:
        return hash_class_folder(self.path) if self.format == "folder" else cache.hash_content(self.path)

    @property
    def megabytes(self) -> float:
        """The approximate size of the data when it is not compressed."""
        files = list_class_files(self.path) if self.format == "folder" else [self.path]
        factor = COMPRESSION_RATIO if self.path.suffix.lower() in COMPRESSIONS else 1
        return factor * sum(path.stat().st_size for path in files) / 10**6

    def rows(self, columns: Sequence[str], bad: BadRows) -> Iterator[readers.Row]:
        """Yield (number, values of some columns) of every row below the header."""
        if self.format in ("parquet", "arrow"):
            yield from readers.read_arrow(self.path, columns)
        elif self.format == "folder":
            for number, (text, label) in read_class_folder(self.path):
                yield number, [text if name == "text" else label for name in columns]
        elif self.format == "jsonl":
            for number, row in readers.read_json(self.path, bad):
                yield number, [row.get(name) for name in columns]
        else:
            yield from self.cells([self.names.index(name) for name in columns], bad)

    def cells(self, columns: Sequence[int], bad: BadRows) -> Iterator[readers.Row]:
        """Yield some cells of every row below the header; all rows must have the same width."""
        width = len(self.names)
        below = read_cells(self.path, self.format, self.delimiter, self.quoted, bad)
        if self.header:
            next(below)
        for number, cells in below:
            if self.format == "xlsx":
                cells = [*cells, *[""] * (width - len(cells))]
            if width > 1 and not any(map(str.strip, cells)):
                continue  # a blank line, as Excel writes it
            if len(cells) != width:
                bad.add(self.ragged_row_error(number, len(cells)))
                continue
            yield number, [cells[column] for column in columns]

    def ragged_row_error(self, number: int, width: int) -> UserError:
        if self.format == "xlsx":
            advice = "remove what is beside the table"
        elif self.quoted and self.delimiter != "\t":
            advice = f'a cell that holds "{self.delimiter}" or a line break must be quoted'
        else:
            advice = "cells are separated by one tab, and no text holds a tab"
        return UserError(
            f"{self.path} {self.unit} {number}: {width} column{'s' * (width != 1)}, "
            f"but the first {self.unit} has {len(self.names)}; {advice}"
        )


def read_cells(path: Path, kind: str, delimiter: str, quoted: bool, bad: BadRows) -> Iterator[readers.Row]:
    if kind == "xlsx":
        return read_spreadsheet(path)
    return readers.read_quoted(path, delimiter, bad) if quoted else readers.read_plain(path, bad)


def open_sheet(path: Path, names: Sequence[str] = ()) -> Sheet:
    """Read the beginning of a file to find its columns and whether it has a header.

    `names` are columns it is expected to have. Bad rows are passed over; they count when all rows are read.
    """
    if path.is_dir():
        report_unread_files(path)
        texts = tuple(row for _, row in islice(read_class_folder(path), readers.SAMPLE_ROWS))
        return Sheet(path, "folder", ("text", "label"), True, "", False, texts)
    kind = readers.detect_format(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file")
    if kind in ("parquet", "arrow"):
        with readers.open_arrow(path) as file:
            columns = file.names
            refuse_duplicate_names(path, "row", columns)
            if file.is_empty:
                raise UserError(f"{path} row 1: the file has no rows")
        sample = [row for _, row in islice(readers.read_arrow(path, columns), readers.SAMPLE_ROWS)]
        return Sheet(path, kind, columns, True, "", False, tuple(sample))
    bad = BadRows()
    if kind == "jsonl":
        objects = [row for _, row in islice(readers.read_json(path, bad), readers.SAMPLE_ROWS)]
        columns = tuple(dict.fromkeys(name for row in objects for name in row))
        if not objects:
            raise bad.first or UserError(f"{path} line 1: the file is empty; write one JSON object per line")
        values = tuple([row.get(name) for name in columns] for row in objects)
        return Sheet(path, kind, columns, True, "", False, values)
    quoted = kind == "csv" or (kind == "tsv" and readers.is_quoted_tsv(path))
    delimiter = readers.detect_delimiter(path) if kind == "csv" else "\t"
    rows = [cells for _, cells in islice(read_cells(path, kind, delimiter, quoted, bad), HEADER_ROWS)]
    if not rows:
        raise bad.first or UserError(f"{path} line 1: the file is empty; write a text and a label per line")
    if kind == "xlsx":
        width = max(map(len, rows))
        rows = [[*cells, *[""] * (width - len(cells))] for cells in rows]
    header = has_header(rows, names, guess=kind != "text" or len(rows[0]) > 1)
    columns = tuple(cell.strip() if header else str(n) for n, cell in enumerate(rows[0], start=1))
    refuse_duplicate_names(path, "line", columns)
    below = tuple(row for row in rows[header : readers.SAMPLE_ROWS] if len(row) == len(columns))
    return Sheet(path, kind, columns, header, delimiter, quoted, below)


def has_header(rows: Sequence[Sequence[str]], names: Sequence[str], guess: bool = True) -> bool:
    """Return whether the first row names the columns: its cells do not look like the data below them.

    Without `guess` only well-known names count, because the first line of a plain text is a text.
    """
    first, below = [cell.strip() for cell in rows[0]], [row for row in rows[1:] if len(row) == len(rows[0])]
    if any(name in first for name in names if not name.isdigit()):
        return True
    named = [cell for cell in first if cell]
    if any(len(cell) > 64 for cell in first):
        return False
    columns = list(zip(*below, strict=True)) or [()] * len(first)
    new = [cell not in column for cell, column in zip(first, columns, strict=True)]
    if any(cell.lower() in KNOWN for cell in first):
        return all(fresh for cell, fresh in zip(first, new, strict=True) if cell.lower() in KNOWN)
    if (
        not guess
        or len(set(named)) < len(named)
        or len(below) < FEW_ROWS
        or not all(NAME.fullmatch(cell) for cell in named)
    ):
        return False
    return any(fresh and has_few_values(column) for fresh, column in zip(new, columns, strict=True))


def refuse_duplicate_names(path: Path, unit: str, names: Sequence[str]) -> None:
    """Refuse two columns of the same name; columns without a name are never read."""
    for column, name in enumerate(names):
        if name and name in names[:column]:
            raise UserError(
                f"{path} {unit} 1: columns {names.index(name) + 1} and {column + 1} are both called "
                f'"{shorten(name, 30)}"; rename one'
            )


@dataclass(frozen=True)
class Layout:
    text: str
    pair: str | None
    label: str | None
    """The column of the label; several columns of 0 and 1 are named with commas between them."""
    by: SplitColumn | None = None
    indicators: tuple[str, ...] = ()
    """The columns of 0 and 1, one per label, if there are several."""

    @property
    def label_columns(self) -> tuple[str, ...]:
        return self.indicators or (() if self.label is None else (self.label,))

    def columns(self) -> list[str]:
        names = (self.text, self.pair, *self.label_columns, self.by.name if self.by else None)
        return [name for name in names if name is not None]


def find_layout(sheet: Sheet, wanted: ColumnChoice, labeled: bool = True, kind: str | None = None) -> Layout:
    """Find the text, pair and label columns of a file; `labeled=False` looks for text alone.

    `kind` is that of the task: only `labels`, or a task whose kind is to be found, may have several label
    columns.
    """
    wanted.check(sheet)
    text, pair = find_texts(sheet, wanted, labeled)
    if not labeled:
        return Layout(text, pair, None)
    if wanted.label:
        labels = split_names(sheet, wanted.label)
    else:
        labels = find_label_columns(sheet, {text, pair, wanted.split_column}, kind)
    roles = {text: "text", pair: "text"} | ({wanted.by.name: wanted.by.kind} if wanted.by else {})
    for label in labels:
        if label in roles:
            both = f"cannot be both {roles[label]} and label"
            raise UserError(f'{sheet.path} line 1: column "{shorten(label)}" {both}')
    if len(labels) == 1:
        return Layout(text, pair, labels[0], wanted.by)
    if kind not in (None, "labels"):
        raise UserError(
            f"{sheet.path}: --label-column {shorten(','.join(labels), 60)} names {len(labels)} columns, "
            f"one per label, which is --kind labels"
        )
    return Layout(text, pair, ",".join(labels), wanted.by, labels)


def follow_layout(sheet: Sheet, leader: Layout, split: str) -> Layout:
    """Find train's columns in the file of another split; only test may lack the labels, any the groups."""
    if leader.by and leader.by.name not in sheet.names:
        leader = replace(leader, by=None)
    if leader.text not in sheet.names or (leader.pair and leader.pair not in sheet.names):
        if len(sheet.names) == 1 and not sheet.header and split == "test" and not leader.pair:
            return Layout(sheet.names[0], None, None)
        raise missing_column_error(sheet, leader.text if leader.text not in sheet.names else str(leader.pair))
    absent = [name for name in leader.label_columns if name not in sheet.names]
    if absent:
        if split != "test" or len(absent) < len(leader.label_columns):
            raise missing_column_error(sheet, absent[0])
        return replace(leader, label=None, indicators=())
    return leader


def has_columns(sheet: Sheet, names: str) -> bool:
    """Return whether the file has the column, or all of several with commas between their names."""
    return all(name in sheet.names for name in split_names(sheet, names))


def missing_column_error(sheet: Sheet, name: str) -> UserError:
    return UserError(f"{sheet.path} {sheet.unit} 1: {unknown('column', name, sheet.names)}")


def find_texts(sheet: Sheet, wanted: ColumnChoice, labeled: bool) -> tuple[str, str | None]:
    if wanted.text:
        return wanted.text, wanted.pair
    labels = split_names(sheet, wanted.label) if wanted.label else ()
    lower = {name.lower(): name for name in sheet.names if name not in (wanted.pair, *labels)}
    if not wanted.pair:
        for first, second in PAIRS:
            if first in lower and second in lower:
                return lower[first], lower[second]
    lower = {key: name for key, name in lower.items() if name != wanted.split_column}
    named = [lower[name] for name in TEXTS if name in lower]
    if len(named) == 1 or (named and named[0].lower() in FIRST_TEXTS):
        return named[0], wanted.pair
    options = "--text-column (and --pair-column for a second text)"
    if len(named) > 1:
        raise ambiguous_column_error(sheet, named, "text", options)
    taken = (wanted.pair, *labels, wanted.split_column)
    rest = [name for name in sheet.names if name not in taken and is_candidate(name)]
    indicators = find_indicators(sheet, rest)
    if 1 < len(indicators) < len(rest):
        rest = [name for name in rest if name not in indicators]
    looks = [name for name in rest if is_prose(sheet, name)]
    if len(looks) == 1:
        return looks[0], wanted.pair
    if len(looks) > 1:
        raise ambiguous_column_error(sheet, looks, "text", options)
    if len(rest) == 1:
        return rest[0], wanted.pair
    if len(rest) == 2 and labeled and not wanted.label:
        label = choose_label_column(sheet, rest)
        return next(name for name in rest if name != label), wanted.pair
    raise ambiguous_column_error(sheet, rest, "text", "--text-column")
