"""A file's examples as Arrow columns: in memory when small, memory-mapped from the cache when large."""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow.lib import StringBuilder

from heedful.data import cache
from heedful.data.bad_rows import BadRows, EmptyCellError, RowError, report_skipped
from heedful.data.columns import Layout, Sheet, SplitColumn
from heedful.data.dates import parse_time, read_time
from heedful.data.label_sets import read_indicators, write_set
from heedful.data.labels import (
    DECIMAL_COMMA,
    MAX_CLASSES,
    MAX_LABEL_CHARS,
    LabelIndex,
    multi_label_error,
    parse_label,
    parse_number,
)
from heedful.data.text_files import MAX_ROW_BYTES, too_long_error
from heedful.errors import UserError, shorten
from heedful.progress import progress
from heedful.runs.json_files import read_json_object

FORMAT = 1
IN_MEMORY_BYTES = 64 * 2**20
BATCH_CHARS = 4 * 2**20
BATCH_ROWS = 16384
COLUMNS = ("text", "pair", "answer")
SPLIT_BY = "by"
"""The store's column with the values that rows are split by, if they are."""

Change = Callable[[str], str]


class ExampleStore:
    """The texts, pairs, answers and labels of one file, in the file's order."""

    def __init__(
        self,
        source: Path | pa.Buffer,
        ids: npt.NDArray[np.int32],
        labels: LabelIndex,
        fingerprint: str,
        skipped: str = "",
        by: SplitColumn | None = None,
        bad_rows: Sequence[str] = (),
    ) -> None:
        self.source, self.label_ids, self.labels, self.fingerprint = source, ids, labels, fingerprint
        self.skipped = skipped
        """Which bad rows of the file are left out, in words."""
        self.bad_rows = tuple(bad_rows)
        """What is wrong with the first of these rows, each in a sentence."""
        self.by = by
        """The file's column that rows are split by; its values are in the column `SPLIT_BY`."""
        self.reader = pa.ipc.open_file(pa.memory_map(str(source)) if isinstance(source, Path) else source)
        sizes = [self.reader.get_batch(i).num_rows for i in range(self.reader.num_record_batches)]
        self.starts = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def get(self, column: str, row: int) -> str | None:
        batch = int(np.searchsorted(self.starts, row, side="right")) - 1
        value: str | None = self.reader.get_batch(batch).column(column)[row - int(self.starts[batch])].as_py()
        return value

    def scan(
        self, columns: Sequence[str], index: npt.NDArray[np.int64] | None = None
    ) -> Iterator[list[list[Any]]]:
        """Yield lists of values, some megabytes at a time, in order.

        The file is read, not mapped, because mapped pages count as this process's memory.
        """
        source = self.source
        opened = pa.ipc.open_file(pa.OSFile(str(source)) if isinstance(source, Path) else source)
        for number in range(opened.num_record_batches):
            start, end = int(self.starts[number]), int(self.starts[number + 1])
            if index is None:
                batch = opened.get_batch(number)
            else:
                inside = index[np.searchsorted(index, start) : np.searchsorted(index, end)]
                if not len(inside):
                    continue
                batch = opened.get_batch(number).take(make_index_array(inside - start))
            yield [batch.column(column).to_pylist() for column in columns]


def load_examples(
    sheet: Sheet,
    layout: Layout,
    kind: str | None = None,
    change: Change | None = None,
    *,
    strict: bool = False,
) -> ExampleStore:
    """Read a file's examples; `change` is applied to each text.

    `kind` is that of the task, as far as it is known: the label column has answers of "text2text" as they
    are, may be empty with "labels", and has numbers alone with "number". Bad rows are left out and reported;
    `strict` refuses them. The examples of a file above 64 MB are kept in the cache, named by its content and
    by how it was read.
    """
    content = sheet.content_hash
    columns, answers = layout.columns(), kind == "text2text"
    how = (sheet.format, sheet.header, *columns, len(columns), answers, getattr(change, "__name__", ""))
    by = () if layout.by is None else (layout.by.kind, layout.by.name)
    form = (kind,) if kind in ("labels", "number") else ()
    key = cache.digest(FORMAT, content, *how, *by, *form)
    bad = BadRows(strict=strict)
    if sheet.megabytes * 10**6 <= IN_MEMORY_BYTES:
        sink = pa.BufferOutputStream()
        ids, labels, skipped = write_examples(sheet, layout, kind, change, sink, bad)
        store = ExampleStore(sink.getvalue(), ids, labels, key, skipped, layout.by, bad.examples)
    else:

        def fill(folder: Path) -> None:
            with pa.OSFile(str(folder / "rows.arrow"), "wb") as file:
                ids, labels, skipped = write_examples(sheet, layout, kind, change, file, bad)
            np.save(folder / "labels.npy", ids)
            problems = {"skipped": skipped, "bad_rows": bad.examples}
            names = {"names": list(labels.ids), "lines": labels.lines, "counts": labels.counts}
            (folder / "labels.json").write_text(json.dumps({**names, **problems}), "utf-8")
            if sheet.content_hash != content:
                raise UserError(
                    f"{sheet.path}: changed while it was being read; try again when it is complete"
                )

        folder = cache.build_once("rows", key, fill)
        stored = read_json_object(folder / "labels.json")
        numbers = {name: n for n, name in enumerate(stored["names"])}
        labels = LabelIndex(numbers, stored["lines"], stored["counts"])
        ids = np.load(folder / "labels.npy", mmap_mode="r")
        skipped = stored.get("skipped", "")
        bad_rows = stored.get("bad_rows", ())
        store = ExampleStore(folder / "rows.arrow", ids, labels, key, skipped, layout.by, bad_rows)
    if strict and store.skipped:  # when the cache was written
        raise UserError(f"{sheet.path}: {store.skipped}")
    report_skipped(sheet.path, store.skipped)
    return store


def write_examples(
    sheet: Sheet, layout: Layout, kind: str | None, change: Change | None, sink: Any, bad: BadRows
) -> tuple[npt.NDArray[np.int32], LabelIndex, str]:
    """Write a file's examples as record batches; return the numbers of its labels, and what was skipped."""
    labels, ids, answers = LabelIndex(), array("i"), kind == "text2text"
    columns: dict[str, list[str | None]] = {name: [] for name in COLUMNS}
    if layout.by is not None:
        columns[SPLIT_BY] = []
    schema = pa.schema([(name, pa.large_string()) for name in columns])
    size = 0
    total = sheet.megabytes
    title = f"reading {sheet.path.name} (MB)"
    display = progress(title, int(total)) if total * 10**6 > IN_MEMORY_BYTES else nullcontext()
    count = 0
    with pa.ipc.new_file(sink, schema) as writer, display as bar:

        def flush() -> None:
            nonlocal size
            arrays = [make_text_array(values) for values in columns.values()]
            writer.write_batch(pa.record_batch(arrays, schema=schema))
            for values in columns.values():
                values.clear()
            if bar:
                bar.advance(round(size / 10**6))
            size = 0

        for number, text, pair, label, by in read_examples(sheet, layout, change, bad, kind):
            count += 1
            for values, value in zip(
                columns.values(), (text, pair, label if answers else None, by), strict=False
            ):
                values.append(value)
            if label is not None and not answers:
                ids.append(add_label(sheet, labels, label, number, kind))
            size += len(text) + len(pair or "")
            if size > BATCH_CHARS or len(columns["text"]) >= BATCH_ROWS:
                flush()
        bad.refuse_bad_file(count)
        if not count:
            raise UserError(f"{sheet.path} {sheet.unit} {1 + sheet.header}: a header and no rows")
        if columns["text"]:
            flush()
    label_ids = np.frombuffer(ids, np.int32) if ids else np.empty(0, np.int32)
    return label_ids, labels, bad.describe(sheet.path, count)


def make_text_array(values: Sequence[str | None]) -> pa.Array:
    """Return texts as an array. `pa.array` asks pandas first whether they are a series, and imports it."""
    builder = StringBuilder()
    builder.append_values(values)
    return builder.finish().cast(pa.large_string())


def make_index_array(numbers: npt.NDArray[np.int64]) -> pa.Array:
    """Return numbers of rows as an array, without asking pandas either."""
    return pa.Array.from_buffers(
        pa.int64(), len(numbers), [None, pa.py_buffer(np.ascontiguousarray(numbers))]
    )


def add_label(sheet: Sheet, labels: LabelIndex, name: str, number: int, kind: str | None = None) -> int:
    if len(name) > MAX_LABEL_CHARS and kind != "labels":
        raise UserError(
            f"{sheet.path} {sheet.unit} {number}: the label has {len(name):,} characters "
            f'("{shorten(name, 30)}"); is it the right column (--label-column)?'
        )
    if len(labels.ids) > 100 * MAX_CLASSES and parse_number(name) is None:
        raise UserError(
            f"{sheet.path} {sheet.unit} {number}: more than {len(labels.ids) - 1:,} different labels; "
            f"is it the right column (--label-column)?"
        )
    return labels.add(name, number)


def read_examples(
    sheet: Sheet,
    layout: Layout,
    change: Change | None = None,
    bad: BadRows | None = None,
    kind: str | None = None,
) -> Iterator[tuple[int, str, str | None, str | None, str | None]]:
    """Yield (number, text, pair, label name, value to split by) of every good row; others go to `bad`."""
    paired, label_columns = layout.pair is not None, layout.label_columns
    bad, first_time = bad or BadRows(), None
    for number, values in sheet.rows(layout.columns(), bad):
        values, split_value = (values[:-1], values[-1]) if layout.by else (values, None)
        try:
            text = check_text(sheet, number, layout.text, values[0])
            pair = check_text(sheet, number, layout.pair, values[1]) if paired else None
            label = None
            if layout.indicators:
                cells = values[-len(label_columns) :]
                label = read_indicators(f"{sheet.path} {sheet.unit} {number}", label_columns, cells)
            elif label_columns:
                label = check_label(sheet, number, layout.label, values[-1], kind)
            by = check_split_value(sheet, number, layout.by, split_value) if layout.by else None
            if layout.by and layout.by.kind == "time":
                first_time = first_time or by
                check_time(sheet, number, layout.by.name, by, first_time)
        except RowError as error:
            bad.add(error)
            continue
        if change:
            text, pair = change(text), change(pair) if pair is not None else None
        yield number, text, pair, label, by


def check_text(sheet: Sheet, number: int, column: str | None, value: Any) -> str:
    where, name = f"{sheet.path} {sheet.unit} {number}", shorten(str(column), 30)
    if value is None:
        raise EmptyCellError(f'{where}: "{name}" is missing; it must be a text')
    if not isinstance(value, str):
        shown = shorten(json.dumps(value, default=str), 30)
        raise RowError(f'{where}: "{name}" is not a string but {shown}; it must be a text')
    if not value or value.isspace():
        raise EmptyCellError(f'{where}: empty text in column "{name}"; write one or remove the row')
    if sheet.is_typed:
        check_characters(sheet, number, value)
    return value


def check_characters(sheet: Sheet, number: int, value: str) -> None:
    """Refuse characters that JSON escapes and Parquet values may hold but UTF-8 files may not."""
    if len(value) > MAX_ROW_BYTES:
        raise too_long_error(sheet.path, number, sheet.unit)
    where = f"{sheet.path} {sheet.unit} {number}"
    if "\0" in value:
        raise RowError(f"{where}: a NUL character; remove it")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise RowError(
            f"{where}: half a surrogate pair (\\ud800 to \\udfff) is not a character; write both halves"
        ) from None


def parse_cell(sheet: Sheet, value: Any, answers: bool = False) -> str | None:
    """Return a label or a group as `parse_label` does; in text files "nan" is missing, except as an answer.

    Programs write "nan" for a missing value. "none" and "null" are names.
    """
    name = parse_label(value)
    is_nan = name is not None and name.lower() == "nan"
    return None if is_nan and not answers and not sheet.is_typed else name


def check_label(sheet: Sheet, number: int, column: str | None, value: Any, kind: str | None = None) -> str:
    if isinstance(value, str) and sheet.is_typed:
        check_characters(sheet, number, value)
    where = f"{sheet.path} {sheet.unit} {number}"
    if isinstance(value, list) and kind in (None, "labels"):
        return write_set(where, value)
    try:
        name = parse_cell(sheet, value, kind == "text2text")
    except ValueError:
        raise multi_label_error(sheet.path, sheet.unit, number, value) from None
    if name is None and kind == "labels":
        return ""
    if name is None:
        what, remedy = ("number", "write one") if kind == "number" else ("label", "label the row")
        raise EmptyCellError(
            f'{where}: the {what} is missing in column "{shorten(str(column), 30)}"; {remedy} or remove it'
        )
    if kind == "number" and parse_number(name) is None:
        advice = "; write a point for the comma" if DECIMAL_COMMA.fullmatch(name) else ""
        raise RowError(
            f'{where}: "{shorten(name, 30)}" in column "{shorten(str(column), 30)}" is not a number{advice}'
        )
    return name


def check_split_value(sheet: Sheet, number: int, column: SplitColumn, value: Any) -> str | None:
    """Return a value that rows are split by as text; None if it is missing."""
    if isinstance(value, str) and sheet.is_typed:
        check_characters(sheet, number, value)
    if isinstance(value, date):
        return value.isoformat()
    try:
        return parse_cell(sheet, value)
    except ValueError:
        kind = f"{type(value).__name__}; a {column.kind} is one text or number per row"
        where = f"{sheet.path} {sheet.unit} {number}"
        raise UserError(f'{where}: "{shorten(column.name, 30)}" is a {kind}') from None


def check_time(sheet: Sheet, number: int, column: str, text: str | None, first: str | None) -> None:
    """Refuse a value that is no time, or not of the kind of the first one."""
    name = shorten(column, 30)
    where = f'{sheet.path} {sheet.unit} {number}: "{name}"'
    if text is None or first is None:
        raise EmptyCellError(f"{where} has no time; write one or remove the row")
    time = parse_time(text)
    if time is None:
        forms = "write 2021-03-31, 2021-03-31T12:30, or a number such as a year"
        raise UserError(f'{where} is "{shorten(text, 30)}", which is no time; {forms}')
    expected = read_time(first).kind
    if time.kind != expected:
        others = f'others, such as "{shorten(first, 30)}", are {expected}s'
        raise UserError(f'{where} is "{shorten(text, 30)}", a {time.kind}, but {others}; write all alike')
