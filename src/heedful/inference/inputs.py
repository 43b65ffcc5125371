"""The texts of a call from Python: a list, an array, a series, pairs, or a table with the run's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from heedful.data.columns import ColumnChoice, find_layout, find_split_column, open_sheet
from heedful.data.named_tasks import TASKS, find_rules
from heedful.data.tasks import list_split_files
from heedful.errors import UserError, shorten

Texts = tuple[list[str], list[str] | None]
"""The texts, and the second text of each pair."""
SHOWN_COLUMNS = 8


def read_texts(texts: Any, pairs: Any = None, columns: ColumnChoice | None = None) -> Texts:
    """Return one text per row, and the second texts of pairs; anything else is a `UserError`.

    Parameters
    ----------
    texts
        Texts in a list, an array or a series; pairs of texts, as tuples or in two columns; or a table, such
        as a DataFrame.
    pairs
        The second texts, where `texts` has only the first ones.
    columns
        The columns of the run's own data, which are looked for in a table.

    """
    if isinstance(texts, str):
        raise UserError("predict takes a list of texts, not a single one")
    if is_table(texts):
        texts, second = choose_columns(texts, columns or ColumnChoice())
        if pairs is None:
            pairs = second
    rows = list_values(texts)
    if pairs is None and rows and all(is_pair(row) for row in rows):
        rows, pairs = [row[0] for row in rows], [row[1] for row in rows]
    first = check_texts(rows, "texts")
    if pairs is None:
        return first, None
    second_texts = check_texts(list_values(pairs), "second texts")
    if len(second_texts) != len(first):
        raise UserError(f"there are {len(first)} texts but {len(second_texts)} second texts")
    return first, second_texts


def is_table(data: Any) -> bool:
    """Whether data has named columns, which iterating would yield in place of the rows."""
    return isinstance(data, Mapping) or hasattr(data, "columns") or hasattr(data, "column_names")


def column_names(table: Any) -> list[Any]:
    if isinstance(table, Mapping):
        return list(table)
    return list(table.column_names if hasattr(table, "column_names") else table.columns)


def choose_columns(table: Any, wanted: ColumnChoice) -> tuple[Any, Any]:
    """Return the column of the texts and that of the second texts: those of the run, or the only ones."""
    names = column_names(table)
    if wanted.text in names:
        return table[wanted.text], table[wanted.pair] if wanted.pair in names else None
    if len(names) == (2 if wanted.pair else 1):
        return table[names[0]], table[names[1]] if wanted.pair else None
    listed = ", ".join(shorten(str(name), 30) for name in names[:SHOWN_COLUMNS]) or "no columns"
    if wanted.text is None:
        raise UserError(f"the table has {listed}; pass the column with the texts: table[{names[:1]}]")
    raise UserError(
        f'the table has {listed}, but not "{shorten(wanted.text, 30)}", which the run was trained on; '
        "pass the column with the texts instead of the table"
    )


def list_values(values: Any) -> list[Any]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise UserError(f"texts are a list of strings, not {type(values).__name__}")
    if hasattr(values, "to_pylist"):  # a column of pyarrow
        return list(values.to_pylist())
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    return list(values.tolist() if hasattr(values, "tolist") else values)


def is_pair(row: Any) -> bool:
    return isinstance(row, list | tuple) and len(row) == 2


def check_texts(rows: Sequence[Any], what: str) -> list[str]:
    for number, row in enumerate(rows):
        if not isinstance(row, str):
            raise UserError(
                f"{what}: row {number} is {type(row).__name__} ({shorten(repr(row), 40)}); it must be a text"
            )
    return [str(row) for row in rows]


def wanted_columns(config: Mapping[str, Any]) -> tuple[ColumnChoice, Path | None]:
    """Return the columns that a run's options and its task name, and the task's files if it has some."""
    if not config["task"]:  # a classifier that no run of heedful made
        return ColumnChoice(), None
    named = TASKS.get(config["task"])
    rules = named or find_rules(Path(config["task"]))
    stated = (config.get(f"{role}_column") for role in ("text", "pair", "label"))
    defaults = (rules.columns.text, rules.columns.pair, rules.columns.label)
    text, pair, label = (one or default for one, default in zip(stated, defaults, strict=True))
    wanted = ColumnChoice(text, pair, label, find_split_column(config.get("group"), config.get("time")))
    return wanted, None if named else Path(config["task"])


def trained_columns(path: Path | None, wanted: ColumnChoice) -> ColumnChoice:
    """Return the columns of the task's files, where these still exist."""
    if path is None:
        return wanted
    try:
        sheet = open_sheet(list_split_files(path)["train"], wanted.names())
        layout = find_layout(sheet, wanted)
    except (UserError, OSError):
        return wanted
    return ColumnChoice(layout.text, layout.pair, layout.label) if sheet.header else wanted
