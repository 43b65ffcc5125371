"""Data from Python: lists, arrays, data frames and data sets become Parquet files that every command reads.

The files are in the cache, named by a hash of their content, and a run's config.toml names them like any
other file. So the same data is stored once, a run that is started again with the same data resumes, the
processes of a study read it without passing it on, and `heedful run` repeats the run as long as the cache is
kept.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from heedful.data import cache
from heedful.data.names import find_split
from heedful.errors import UserError, shorten
from heedful.paths import MEMORY, expand_path

Table = Any
"""A table of pyarrow, which has no types."""

ACCEPTED = (
    "a path or the name of a task, texts and labels, a data frame or Arrow table with columns such as text "
    "and label, a datasets.Dataset, or a dict with train, dev and test"
)


def materialize(data: Any, labels: Any = None, *, folder: str | Path | None = None) -> str:
    """Return the name or path of data that any command accepts; data in memory is written as Parquet first.

    `data` is one of:

    - the name of a task or a path, which is returned unchanged,
    - texts, or pairs of texts, as a list, an array or a series; their labels are `labels`, or the second part
      of a tuple `(texts, labels)`,
    - a list of rows: dicts, or tuples (text, label) or (text, pair, label),
    - a dict of columns, or any table with the Arrow interface, such as a data frame of pandas or polars,
    - a `datasets.Dataset`,
    - a dict of splits, each of these: `{"train": ..., "dev": ..., "test": ...}`, or a `datasets.DatasetDict`.

    The columns of a table are found as those of a file. The files are written below `folder`, which is by
    default the cache, in a folder that is named by their content.
    """
    if isinstance(data, str | Path):
        if labels is not None:
            raise UserError(
                f"{shorten(str(data))}: has its labels in its files; give labels= with texts only"
            )
        return str(data)
    tables = read_splits(data, labels)
    key = cache.digest("memory", 1, {name: hash_table(table) for name, table in tables.items()})
    alone = list(tables) == [""]

    def fill(new: Path) -> None:
        import pyarrow.parquet as pq

        if not alone:
            (new / "data").mkdir()
        for name, table in tables.items():
            pq.write_table(table, new / "data" / f"{name}.parquet" if name else new / "data.parquet")

    parent = None if folder is None else expand_path(folder).absolute()
    entry = cache.build_once(MEMORY, key, fill, parent)
    return str(entry / ("data.parquet" if alone else "data"))


def read_splits(data: Any, labels: Any = None) -> dict[str, Table]:
    """Return the table of each split, under our name for it; a single table is called ""."""
    if isinstance(data, Mapping):
        splits = {name: find_split(str(name)) for name in data}
        if "train" in splits.values():
            if labels is not None:
                raise UserError(
                    "labels= belongs to one list of texts; give each split its own: (texts, labels)"
                )
            return {split: to_table(data[name]) for name, split in splits.items() if split}
        if splits and all(splits.values()):
            names = ", ".join(f'"{shorten(str(name))}"' for name in data)
            raise UserError(f"the splits {names} have no train, which is what a model learns from")
    return {"": to_table(data, labels)}


def to_table(data: Any, labels: Any = None) -> Table:
    """Return data in memory as an Arrow table whose columns can be written to Parquet."""
    if labels is None and isinstance(data, tuple) and len(data) == 2 and not isinstance(data[0], str):
        data, labels = data
    table = read_columns(data, labels is not None)
    if labels is not None:
        values = to_column(read_label_column(labels), "label")
        if len(values) != table.num_rows:
            raise UserError(
                f"{table.num_rows:,} texts and {len(values):,} labels; there must be one label per text"
            )
        if "label" in table.column_names:
            raise UserError('the data has a column "label" already; give labels= or that column, not both')
        table = table.append_column("label", values)
    if not table.num_rows:
        raise UserError("the data has no rows")
    return simplify(table)


def read_label_column(labels: Any) -> Any:
    """Return labels as a sequence; several columns of 0 and 1, one per label, become lists of labels."""
    if isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.shape[1] > 1:
        return list_labels([str(column) for column in range(labels.shape[1])], labels.T.tolist())
    if is_series(labels) or not hasattr(labels, "columns"):
        return labels
    names = list(labels.columns)
    if len(names) != 1:
        return list_labels([str(name) for name in names], [list(labels[name]) for name in names])
    return labels[names[0]]


def list_labels(names: Sequence[str], columns: Sequence[Sequence[Any]]) -> list[list[str]]:
    """Return the labels of each row, from columns of 0 and 1."""
    for name, column in zip(names, columns, strict=True):
        other = next((value for value in column if value not in (0, 1)), None)
        if other is not None:
            raise UserError(
                f"labels= has {len(names)} columns, and column {shorten(name, 30)} has "
                f"{shorten(repr(other), 20)}; give one column of labels, or columns of 0 and 1, one per label"
            )
    return [
        [name for name, value in zip(names, row, strict=True) if value] for row in zip(*columns, strict=True)
    ]


def read_columns(data: Any, labeled: bool) -> Table:
    if isinstance(data, pa.Table | pa.RecordBatch):
        return pa.table(data)
    if type(data).__module__.partition(".")[0] == "datasets":
        return read_hub_dataset(data)
    if isinstance(data, Mapping):
        return table_of({str(name): values for name, values in data.items()})
    if is_series(data):
        return table_of({"text": data})
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "to_parquet"):
        return read_frame(data)
    if hasattr(data, "collect") and hasattr(data, "collect_schema"):
        raise UserError(f"a {type(data).__name__} has no rows yet; call its method collect")
    if isinstance(data, bytes) or not isinstance(data, Iterable):
        raise UserError(f"data of type {type(data).__name__} is not understood; give {ACCEPTED}")
    return read_rows(data.tolist() if isinstance(data, np.ndarray) else list(data), labeled)


def is_series(data: Any) -> bool:
    """Return whether an object is one column: a series of pandas or polars, or an array of pyarrow."""
    return isinstance(data, pa.Array | pa.ChunkedArray) or (
        hasattr(data, "to_list") and not hasattr(data, "columns")
    )


def read_frame(frame: Any) -> Table:
    """Return a data frame as a table, without the index of pandas."""
    try:
        table = pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):  # a column of mixed types, or a pandas without Arrow
        return table_of({str(name): frame[name] for name in frame.columns})
    names = [name for name in table.column_names if not name.startswith("__index_level_")]
    return table.select(names)


def read_hub_dataset(data: Any) -> Table:
    """Return a `datasets.Dataset` as a table, with the names of its labels in place of their numbers."""
    if not hasattr(data, "with_format") or not hasattr(data, "__len__"):
        raise UserError(f"{type(data).__name__}: a stream cannot be split; load it without streaming=True")
    table = data.with_format("arrow")[:]
    for column, feature in data.features.items():
        names = getattr(feature, "names", None)
        names_in_lists = getattr(getattr(feature, "feature", None), "names", None)
        if names is None and names_in_lists is None:
            continue
        names = names or ()
        numbers = table.column(column).to_pylist()
        if names_in_lists is not None:
            lists = [None if row is None else [names_in_lists[number] for number in row] for row in numbers]
            array = pa.array(lists, pa.list_(pa.large_string()))
            table = table.set_column(table.column_names.index(column), column, array)
            continue
        values = [None if number is None or number < 0 else names[number] for number in numbers]
        place = table.column_names.index(column)
        if any(value is not None for value in values):
            table = table.set_column(place, column, pa.array(values, pa.large_string()))
        else:
            table = table.remove_column(place)  # published without labels
    return table


def read_rows(rows: Sequence[Any], labeled: bool) -> Table:
    """Return rows as columns: texts, dicts, or tuples of a text, its pair and its label."""
    first = next((row for row in rows if not is_missing(row)), None)
    if isinstance(first, Mapping):
        names = list(dict.fromkeys(str(name) for row in rows for name in row or ()))
        return table_of({name: [(row or {}).get(name) for row in rows] for name in names})
    if isinstance(first, list | tuple):
        roles = ("text", "pair")[: len(first)] if labeled else (*("text", "pair")[: len(first) - 1], "label")
        if len(first) != len(roles) or any(len(row) != len(roles) for row in rows):
            raise UserError(
                f"rows are texts, pairs of texts with labels=, or (text, label); not {shorten(repr(first))}"
            )
        return table_of({role: [row[place] for row in rows] for place, role in enumerate(roles)})
    if rows and not isinstance(first, str):
        raise UserError(f"texts are strings; {shorten(repr(first), 40)} is {type(first).__name__}")
    return table_of({"text": rows})


def is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def table_of(columns: Mapping[str, Any]) -> Table:
    arrays = {name: to_column(values, name) for name, values in columns.items()}
    if len({len(array) for array in arrays.values()}) > 1:
        lengths = ", ".join(f"{name} {len(array):,}" for name, array in arrays.items())
        raise UserError(f"the columns have different lengths: {shorten(lengths, 100)}")
    return pa.table(arrays)


def to_column(values: Any, name: str) -> Any:
    """Return one column; values of several types become texts."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise UserError(f'column "{shorten(name, 30)}": {shorten(repr(values), 40)} is not a list of values')
    items = values.tolist() if hasattr(values, "tolist") else list(values)
    items = [
        None if is_missing(item) else item.item() if isinstance(item, np.generic) else item for item in items
    ]
    try:
        return pa.array(items)
    except pa.ArrowException:
        return pa.array([None if item is None else str(item) for item in items])


def simplify(table: Table) -> Table:
    """Keep what can be text or label, in types that do not depend on who made the table."""
    columns = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = field.type
        if pa.types.is_dictionary(kind):
            column = pa.chunked_array([column.to_pylist()])
            kind = column.type
        if pa.types.is_string(kind) or pa.types.is_string_view(kind):
            column = column.cast(pa.large_string())
        elif pa.types.is_struct(kind) or pa.types.is_map(kind) or isinstance(kind, pa.BaseExtensionType):
            continue
        columns[str(field.name)] = column
    return pa.table(columns)


def hash_table(table: Table) -> str:
    """Return a hash of the names and values of a table, however it is laid out in memory."""
    content = hashlib.blake2b(digest_size=16)
    for name, column in zip(table.column_names, table.columns, strict=True):
        content.update(json.dumps([name, table.num_rows]).encode())
        for chunk in column.chunks:
            for value in chunk.to_pylist():
                content.update(json.dumps(value, default=str).encode() + b"\n")
    return content.hexdigest()
