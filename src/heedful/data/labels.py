"""Labels: any strings or numbers, one per row, sorted as numbers if all are numbers, else by name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heedful.errors import UserError, shorten

MAX_CLASSES = 1000
MAX_LABEL_CHARS = 200
INDICATORS = {"0": False, "1": True, "false": False, "true": True}
WHOLE = re.compile(r"([+-]?\d+)\.0+")
SEPARATORS = ("|", ";", ",")
LIST = re.compile(
    r"""\[(?:\s*+(?:"(?:[^"\\]|\\.)*+"|'[^']*+'|[+-]?\d[\d.]*+|true|false|null)\s*+,?+)*+\s*+\]"""
)
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
FIRST_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)")
MANY_NUMBERS, FEW_ROWS_EACH = 30, 10


@dataclass
class LabelIndex:
    """The labels of one file, numbered in order of appearance, with the line of each first appearance."""

    ids: dict[str, int] = field(default_factory=dict)
    lines: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)

    def add(self, name: str, line: int) -> int:
        label_id = self.ids.get(name)
        if label_id is None:
            label_id = self.ids[name] = len(self.ids)
            self.lines.append(line)
            self.counts.append(0)
        self.counts[label_id] += 1
        return label_id

    def line(self, name: str) -> int:
        return self.lines[self.ids[name]]

    def count(self, name: str) -> int:
        return self.counts[self.ids[name]]


def parse_label(value: Any) -> str | None:
    """Return a label's name, or None if it is missing; raise ValueError if it is not a single label."""
    if isinstance(value, str):
        name = value.strip().strip("\ufeff").strip()  # a byte order mark where files were joined
        whole = WHOLE.fullmatch(name)
        return whole[1] if whole else name or None
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return str(int(value)) if value.is_integer() else repr(value)
    if isinstance(value, int):
        return str(value)
    raise ValueError(type(value).__name__)


def parse_indicator(value: Any) -> bool | None:
    """Return whether a cell of 0 and 1, or of false and true, says that a label applies; None if it is empty.

    Anything else is a ValueError.
    """
    name = parse_label(value)
    if name is None or name.lower() == "nan":
        return None
    if name.lower() not in INDICATORS:
        raise ValueError(name)
    return INDICATORS[name.lower()]


def parse_number(name: str) -> float | None:
    try:
        value = float(name)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def sort_labels(names: Iterable[str]) -> list[str]:
    """Sort label names: numbers by value, anything else by name."""
    names = list(names)
    numbers = {name: parse_number(name) for name in names}
    if all(value is not None for value in numbers.values()):
        return sorted(names, key=lambda name: (numbers[name], name))
    return sorted(names)


def choose_label_names(path: Path, unit: str, labels: LabelIndex, *, stated: bool = False) -> list[str]:
    """Return a task's label names, from its training file; refuse what is not a choice among several.

    `stated` says that the user named the kind, and not only the data.
    """
    names = sort_labels(labels.ids)
    if not names:
        raise UserError(f"{path} {unit} 1: no rows")
    if len(names) == 1:
        raise UserError(
            f"{path} {unit} {labels.line(names[0])}: every row has the label "
            f'"{shorten(names[0], 30)}"; at least two classes are needed'
        )
    refuse_free_text(path, unit, labels)
    if not stated:
        refuse_stray_word(path, unit, labels)
    return names


def order_label_names(path: Path, unit: str, labels: LabelIndex) -> list[str]:
    """Return the names of ordered classes: by value, or by the number that each name begins with."""
    names = choose_label_names(path, unit, labels, stated=True)
    numbers = {name: FIRST_NUMBER.match(name) for name in labels.ids}
    for name, number in numbers.items():
        if number is None:
            raise UserError(
                f'{path} {unit} {labels.line(name)}: --kind ordered: the order of "{shorten(name, 30)}" is '
                f"not known; write numbers, or names that begin with one, such as 1 low, 2 middle, 3 high"
            )
    return sorted(names, key=lambda name: (float(numbers[name][0]), name))  # type: ignore[index]


def multi_label_error(path: Path, unit: str, line: int, value: Any) -> UserError:
    return UserError(
        f"{path} {unit} {line}: several labels in one row ({shorten(str(value), 40)}); "
        f"--kind labels has any number of labels per row"
    )


def find_measurement(labels: LabelIndex) -> str | None:
    """Return a label that shows that all are measurements, if there are so many different numbers."""
    rows, classes = sum(labels.counts), len(labels.ids)
    values = {name: parse_number(name) for name in labels.ids}
    if None in values.values():
        return None
    for name, value in values.items():
        if value is not None and not value.is_integer() and (classes > 10 or classes > rows / 2):
            return name
    if classes > MANY_NUMBERS and rows < FEW_ROWS_EACH * classes:
        return next(reversed(labels.ids))
    return None


def refuse_free_text(path: Path, unit: str, labels: LabelIndex) -> None:
    """Refuse free text, or numbers of which some cannot be read, in place of labels."""
    rows, classes = sum(labels.counts), len(labels.ids)
    if classes <= MAX_CLASSES and (rows < 50 or classes <= rows / 2):
        return
    with_comma = [name for name in labels.ids if DECIMAL_COMMA.fullmatch(name)]
    others = [name for name in labels.ids if parse_number(name) is None and name not in with_comma]
    name = next(reversed(labels.ids))
    advice = "is it the right column (--label-column)? for free answers there is --objective answer"
    if with_comma and len(others) < classes / 10:
        name, advice = with_comma[-1], "numbers are written with a point, such as 2.5"
    elif not others:
        advice = "all are numbers, which --kind number learns as such"
    elif len(others) < classes / 10:
        name, advice = others[-1], "most are numbers: --kind number skips the rows with another label"
    raise UserError(
        f'{path} {unit} {labels.line(name)}: "{shorten(name, 30)}" is one of {classes:,} different '
        f"labels in {rows:,} rows; classes are few and recur: {advice}"
    )


def refuse_stray_word(path: Path, unit: str, labels: LabelIndex) -> None:
    """Refuse a word among numbers, which is a typing error."""
    rows = sum(labels.counts)
    words = [name for name in labels.ids if parse_number(name) is None]
    odd = sum(labels.count(name) for name in words)
    if words and rows >= 10 and odd <= max(1, rows // 100) and len(labels.ids) - len(words) > 1:
        numbers = sort_labels(name for name in labels.ids if name not in words)
        others = ", ".join(numbers[:10]) + (", ..." if len(numbers) > 10 else "")
        raise UserError(
            f'{path} {unit} {labels.line(words[0])}: label "{shorten(words[0], 30)}" is not a number; '
            f"the other {rows - odd:,} rows have {others}"
        )


def refuse_unseen(path: Path, unit: str, labels: LabelIndex, train: Path, names: Mapping[str, int]) -> None:
    for name in labels.ids:
        if name not in names:
            train_labels = ", ".join(shorten(label, 20) for label in list(names)[:10])
            train_labels += ", ..." if len(names) > 10 else ""
            raise UserError(
                f'{path} {unit} {labels.line(name)}: label "{shorten(name, 30)}" is not in {train.name}, '
                f"which has {train_labels}"
            )
