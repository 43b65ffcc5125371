"""Several labels per text: the labels of a row as one string, and as one 0 or 1 per label.

A row's labels are stored as one string, like a single label: as the cell of the file where labels are
separated (`joy|love`), else as a JSON list. A row may have none.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data.bad_rows import RowError
from heedful.data.labels import LIST, SEPARATORS, LabelIndex, parse_indicator, parse_label, sort_labels
from heedful.errors import UserError, shorten

Matrix = npt.NDArray[np.uint8]


def read_indicators(where: str, names: Sequence[str], cells: Sequence[Any]) -> str:
    """Return the labels of a row with one column of 0 and 1 per label, as a JSON list."""
    present = []
    for name, cell in zip(names, cells, strict=True):
        try:
            value = parse_indicator(cell)
        except ValueError:
            value = None
        if value is None:
            raise RowError(
                f'{where}: "{shorten(str(cell), 20)}" in column "{shorten(name, 30)}" is not 0 or 1'
            )
        if value:
            present.append(name)
    return json.dumps(present, ensure_ascii=False)


def write_set(where: str, values: Iterable[Any]) -> str:
    """Return a list of labels as JSON."""
    try:
        names = [parse_label(value) for value in values]
    except ValueError as error:
        raise RowError(f"{where}: a list of labels holds a {error}; labels are texts or numbers") from None
    return json.dumps([name for name in names if name is not None], ensure_ascii=False)


def split_cell(cell: str, separator: str) -> list[str]:
    """Return the labels in a cell: those of a list, or between separators; "" has none."""
    if LIST.fullmatch(cell):
        return [name for name in map(parse_label, read_list(cell)) if name is not None]
    parts = cell.split(separator) if separator else [cell]
    return [name for name in map(parse_label, parts) if name is not None]


def read_list(cell: str) -> list[Any]:
    """Return a list in JSON, or as Python prints it."""
    for read in (json.loads, ast.literal_eval):
        try:
            return list(read(cell))
        except (ValueError, SyntaxError):
            continue
    return [part.strip().strip("'\"") for part in cell.strip()[1:-1].split(",")]


def find_separator(labels: LabelIndex) -> tuple[str, str] | None:
    """Return what separates the labels of a cell, and such a cell; None if every cell is one label.

    A separator alone proves nothing: "Paris, France" and "Paris, Texas" are names. The parts must recur,
    and one of them must be a label itself. A list has the separator "".
    """
    for name in labels.ids:
        if LIST.fullmatch(name):
            return "", name
    for separator in SEPARATORS:
        members = find_members(labels, separator)
        for name in labels.ids:
            parts = [part.strip() for part in name.split(separator)]
            recur = len(parts) > 1 and all(part and len(members[part]) > 1 for part in parts)
            if recur and any(part in labels.ids for part in parts):
                return separator, name
    return None


def find_doubtful_separator(labels: LabelIndex) -> tuple[str, str] | None:
    """Return what may be a separator, with such a label: labels that have it may be several or one.

    A part of it is a label itself, or three or more parts recur in all labels.
    """
    for separator in ("|", ";"):
        members = find_members(labels, separator)
        parts = {name: name.split(separator) for name in labels.ids}
        for name, of_name in parts.items():
            if len(of_name) > 1 and any(part.strip() in labels.ids for part in of_name):
                return separator, name
        if len(members) > 2 and all(
            len(of_name) > 1 and all(part.strip() and len(members[part.strip()]) > 1 for part in of_name)
            for of_name in parts.values()
        ):
            return separator, next(iter(labels.ids))
    return None


def find_members(labels: LabelIndex, separator: str) -> dict[str, set[str]]:
    """Return the labels that each part between separators is in."""
    members: dict[str, set[str]] = {}
    for name in labels.ids:
        for part in name.split(separator):
            members.setdefault(part.strip(), set()).add(name)
    return members


def choose_separator(labels: LabelIndex) -> str:
    """Return what separates the labels of cells that are known to have several: the clearest that occurs."""
    found = find_separator(labels)
    if found is not None:
        return found[0]
    return next((one for one in ("|", ";", ",") if any(one in name for name in labels.ids)), "")


def choose_set_names(path: Path, unit: str, labels: LabelIndex, separator: str) -> list[str]:
    """Return the names of all labels in train, sorted."""
    names = sort_labels({name for cell in labels.ids for name in split_cell(cell, separator)})
    if not names:
        raise UserError(f"{path} {unit} 1: no row has a label")
    if len(names) == 1:
        raise UserError(
            f'{path} {unit} {labels.lines[0]}: "{shorten(names[0], 30)}" is the only label; with one label '
            f"that applies or not, write yes and no (--kind label)"
        )
    return names


def refuse_unseen_sets(
    path: Path, unit: str, labels: LabelIndex, train: Path, names: Mapping[str, int], separator: str
) -> None:
    """Refuse a label that train does not have."""
    for cell, line in zip(labels.ids, labels.lines, strict=True):
        for name in split_cell(cell, separator):
            if name not in names:
                listed = ", ".join(shorten(label, 20) for label in list(names)[:10])
                listed += ", ..." if len(names) > 10 else ""
                raise UserError(
                    f'{path} {unit} {line}: label "{shorten(name, 30)}" is not in {train.name}, '
                    f"which has {listed}"
                )


def decode_sets(labels: LabelIndex, names: Sequence[str], separator: str) -> Matrix:
    """Return one row of 0 and 1 per different cell, in the order of their ids."""
    numbers = {name: number for number, name in enumerate(names)}
    matrix = np.zeros((len(labels.ids), len(names)), np.uint8)
    for row, cell in enumerate(labels.ids):
        for name in split_cell(cell, separator):
            matrix[row, numbers[name]] = 1
    return matrix
