"""The texts of a call from Python: a list, an array, a series, pairs, or a table with the run's columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.errors import UserError, shorten

if TYPE_CHECKING:
    from heedful.data.columns import ColumnChoice

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
        texts, second = choose_columns(texts, columns)
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


def choose_columns(table: Any, wanted: ColumnChoice | None) -> tuple[Any, Any]:
    """Return the column of the texts and that of the second texts: those of the run, or the only ones."""
    names = column_names(table)
    text, pair = (None, None) if wanted is None else (wanted.text, wanted.pair)
    if text in names:
        return table[text], table[pair] if pair in names else None
    if len(names) == (2 if pair else 1):
        return table[names[0]], table[names[1]] if pair else None
    listed = ", ".join(shorten(str(name), 30) for name in names[:SHOWN_COLUMNS]) or "no columns"
    if text is None:
        raise UserError(f"the table has {listed}; pass the column with the texts: table[{names[:1]}]")
    raise UserError(
        f'the table has {listed}, but not "{shorten(text, 30)}", which the run was trained on; '
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
