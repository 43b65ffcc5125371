"""What the label column of a task holds: the kind of its answers, named or found, and each row's answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from heedful.data import label_sets, labels
from heedful.data.columns import Layout, Sheet
from heedful.data.labels import LabelIndex
from heedful.errors import UserError, shorten

if TYPE_CHECKING:
    from heedful.data.named_tasks import Kind
    from heedful.data.store import ExampleStore

Targets = npt.NDArray[Any]
SAMPLE_VALUES = 20
LARGEST_NUMBER = 1e30
"""The squares of larger ones, and less, are infinite in float32."""


@dataclass(frozen=True)
class Answers:
    """How the answers of a task are read."""

    kind: Kind
    reason: str = ""
    """Why it is of this kind, in words; "" if the kind was named."""
    names: tuple[str, ...] = ()
    """The labels, in the order of their numbers; none for numbers and free text."""
    separator: str = ""
    """What stands between the labels of a row."""

    def decode(self, rows: ExampleStore) -> Targets | None:
        """Return the answer of each row of a file, None if it has none or they are free text.

        For "labels" one 0 or 1 per label, for "number" the number, otherwise the number of the label.
        """
        if not len(rows.label_ids):
            return None
        if self.kind == "labels":
            return label_sets.decode_sets(rows.labels, self.names, self.separator)[rows.label_ids]
        if self.kind == "number":
            return decode_numbers(rows.labels)[rows.label_ids]
        numbers = {label: number for number, label in enumerate(self.names)}
        renumber = np.array([numbers[label] for label in rows.labels.ids], np.int32)
        return renumber[rows.label_ids]

    def refuse_unknown(self, sheet: Sheet, index: LabelIndex, train: Path) -> None:
        """Refuse what train does not have."""
        numbers = {name: number for number, name in enumerate(self.names)}
        where = (sheet.path, sheet.unit, index, train, numbers)
        if self.kind == "labels":
            label_sets.refuse_unseen_sets(*where, self.separator)
        elif self.kind not in ("number", "text2text"):
            labels.refuse_unseen(*where)


def guess_kind(sheet: Sheet, layout: Layout) -> Kind | None:
    """Return "labels" if the first rows show several labels per row; that matters when rows are read."""
    if layout.indicators:
        return "labels"
    if layout.label is None:
        return None
    column, index = sheet.names.index(layout.label), LabelIndex()
    for row in sheet.sample:
        if isinstance(row[column], list):
            return "labels"
        try:
            name = labels.parse_label(row[column])
        except ValueError:
            continue
        if name is not None:
            index.add(name, 0)
    return None if label_sets.find_separator(index) is None else "labels"


def find_kind(sheet: Sheet, layout: Layout, index: LabelIndex) -> Answers:
    """Return the kind that the label column of train shows, with the reason."""
    if layout.indicators:
        return Answers("labels", f"{len(layout.indicators)} columns hold only 0 and 1")
    column = f'"{shorten(str(layout.label), 30)}"'
    found = label_sets.find_separator(index)
    if found is not None:
        separator, cell = found
        what = f'parts between "{separator}" recur' if separator else "cells are lists"
        shown = shorten(cell, 40)
        return Answers("labels", f"in {column} {what}, such as {shown} in {sheet.unit} {index.line(cell)}")
    doubtful = label_sets.find_doubtful_separator(index)
    if doubtful is not None:
        separator, cell = doubtful
        raise UserError(
            f'{sheet.path} {sheet.unit} {index.line(cell)}: {column} has "{shorten(cell, 40)}", which may be '
            f'one label or several with "{separator}" between them; say it with --kind label or --kind labels'
        )
    number = labels.find_measurement(index)
    if number is not None:
        different = f"{len(index.ids):,} different numbers"
        return Answers("number", f"{column} has {different}, such as {shorten(number, 20)}")
    return Answers("classify", f"{column} has {len(index.ids):,} different values")


def name_answers(answers: Answers, sheet: Sheet, layout: Layout, index: LabelIndex) -> Answers:
    """Return the answers with the names of the labels in train; refuse what is not of their kind."""
    where = (sheet.path, sheet.unit, index)
    if answers.kind == "text2text":
        return answers
    if answers.kind == "number":
        refuse_constant(*where)
        return answers
    if answers.kind == "ordered":
        return replace(answers, names=tuple(labels.order_label_names(*where)))
    if answers.kind == "classify":
        stated = not answers.reason
        return replace(answers, names=tuple(labels.choose_label_names(*where, stated=stated)))
    if layout.indicators:
        refuse_no_labels(*where)
        return replace(answers, names=layout.indicators)
    separator = label_sets.choose_separator(index)
    names = label_sets.choose_set_names(*where, separator)
    return replace(answers, names=tuple(names), separator=separator)


def refuse_no_labels(path: Path, unit: str, index: LabelIndex) -> None:
    if list(index.ids) == ["[]"]:
        raise UserError(f"{path} {unit} {index.lines[0]}: no row has a label; every column is 0 in every row")


def refuse_constant(path: Path, unit: str, index: LabelIndex) -> None:
    """Refuse a column that has the same number in every row, and numbers that networks cannot hold."""
    if not index.ids:
        raise UserError(f"{path} {unit} 1: no rows")
    for name in index.ids:
        if abs(float(name)) > LARGEST_NUMBER:
            raise UserError(
                f"{path} {unit} {index.line(name)}: {shorten(name, 30)} is too large a number to learn; "
                f"numbers are at most {LARGEST_NUMBER:g}"
            )
    if len(set(decode_numbers(index).tolist())) == 1:
        name = next(iter(index.ids))
        raise UserError(
            f"{path} {unit} {index.line(name)}: every row has the number {shorten(name, 30)}; there is "
            f"nothing to learn"
        )


def decode_numbers(index: LabelIndex) -> npt.NDArray[np.float64]:
    """Return the numbers in the order of their ids."""
    return np.array([float(name) for name in index.ids], np.float64)


def describe_answers(kind: Kind, targets: Targets, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Return the facts about the answers of a split for `heedful data show`."""
    if kind == "number":
        counts, edges = np.histogram(targets, bins=min(SAMPLE_VALUES, max(1, len(np.unique(targets)))))
        return {
            "numbers": {
                "mean": float(targets.mean()),
                "std": float(targets.std()),
                **{f"p{p}": float(np.percentile(targets, p)) for p in (0, 5, 25, 50, 75, 95, 100)},
            },
            "histogram": {"edges": edges.tolist(), "counts": counts.tolist()},
        }
    if kind == "labels":
        counts = targets.sum(0, dtype=np.int64)
        sizes = Counter(targets.sum(1, dtype=np.int64).tolist())
        return {
            "label_counts": dict(zip(names, counts.tolist(), strict=True)),
            "labels_per_row": {str(size): sizes[size] for size in sorted(sizes)},
        }
    counts = np.bincount(targets, minlength=len(names))
    return {"label_counts": dict(zip(names, counts.tolist(), strict=True))}
