"""Rows without a label: those of a task's own file, which training skips, and those of another file."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from heedful.data.bad_rows import BadRows, RowError
from heedful.data.columns import ColumnChoice, Layout, Sheet, find_layout, open_sheet
from heedful.data.splits import content_key
from heedful.data.store import check_text, parse_cell
from heedful.data.tasks import Task, list_split_files
from heedful.errors import UserError
from heedful.paths import expand_path


@dataclass(frozen=True)
class UnlabeledRow:
    file: str
    """The name of its file."""
    row: int
    """Its number there: the line of a text file, the row of a table."""
    text: str
    pair: str | None = None


@dataclass(frozen=True)
class Pool:
    """A sample of the rows without a label, in a random order."""

    rows: tuple[UnlabeledRow, ...]
    total: int
    """Number of rows without a label, each text once, that are not among the labeled ones."""


def open_unlabeled(path: Path, task: Task) -> tuple[Sheet, Layout]:
    """Open a file of texts without labels, whose columns are those of the task where it has them."""
    roles = {role: task.columns.get(role) for role in ("text", "pair", "label")}
    sheet = open_sheet(expand_path(path), [name for name in roles.values() if name])
    present = {role: name for role, name in roles.items() if name in sheet.names}
    wanted = ColumnChoice(present.get("text"), present.get("pair"))
    layout = find_layout(sheet, wanted, labeled=False)
    if task.splits["train"].pairs is None:
        return sheet, Layout(layout.text, None, None)
    if layout.pair is None:
        raise UserError(f"{path}: {task.name} has pairs of texts; {path.name} has no second text")
    return sheet, layout


def open_train_file(task: Task) -> tuple[Sheet, Layout] | None:
    """Open the file that train is from, if rows of it were skipped."""
    if not task.splits["train"].rows.skipped or "label" not in task.columns:
        return None
    roles = task.columns
    columns = ColumnChoice(roles["text"], roles.get("pair"), roles["label"])
    sheet = open_sheet(list_split_files(task.folder, task.rules.more_splits)["train"], columns.names())
    return sheet, find_layout(sheet, columns, kind=task.kind)


def read_unlabeled(sheet: Sheet, layout: Layout, task: Task) -> Iterator[UnlabeledRow]:
    """Yield the rows of a file that have a text, and no label if there is a column for it."""
    change, answers = task.rules.change or str, task.splits["train"].answers is not None
    for number, values in sheet.rows(layout.columns(), BadRows()):
        try:
            text = check_text(sheet, number, layout.text, values[0])
            pair = None if layout.pair is None else check_text(sheet, number, layout.pair, values[1])
            cells = values[len(values) - len(layout.label_columns) :]
            labeled = any(
                isinstance(cell, list) or parse_cell(sheet, cell, answers) is not None for cell in cells
            )
        except (RowError, ValueError):
            continue
        if not labeled:
            yield UnlabeledRow(sheet.path.name, number, change(text), None if pair is None else change(pair))


def collect_unlabeled(task: Task, unlabeled: Path | None, most: int) -> Pool:
    """Return at most `most` different texts without a label that no split has, chosen by a hash."""
    opened = [open_train_file(task), None if unlabeled is None else open_unlabeled(unlabeled, task)]
    seen = {int(key) for split in task.splits.values() for key in split.hashes()}
    labeled = len(seen)

    def iterate_new(rows: Iterable[UnlabeledRow]) -> Iterator[tuple[int, UnlabeledRow]]:
        for row in rows:
            key = content_key(0, row.text, row.pair)
            if key not in seen:
                seen.add(key)
                yield key, row

    rows = (row for file in opened if file is not None for row in read_unlabeled(*file, task))
    sample = heapq.nsmallest(most, iterate_new(rows), key=lambda pair: pair[0])
    return Pool(tuple(row for _, row in sample), len(seen) - labeled)
