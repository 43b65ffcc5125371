"""Find the column of the label, or the columns of several labels: by name, or by content."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from heedful.data.labels import parse_indicator
from heedful.errors import UserError, shorten

if TYPE_CHECKING:
    from heedful.data.columns import Sheet

FIRST_LABELS = ("label",)
OTHER_LABELS = (
    "labels stars star rating answer target class category sentiment gold_label gold intent score y polarity "
    "emotion topic output is_duplicate"
)
LABELS = (*FIRST_LABELS, *OTHER_LABELS.split())
OTHERS = ("id", "idx", "index", "guid", "uid", "unnamed: 0", "url", "date", "time", "user", "author")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
SHOWN = 3


def has_few_values(column: Sequence[Any]) -> bool:
    """Return whether a column has few different values that recur, as labels do."""
    return len(set(column)) <= len(column) // 4


def split_names(sheet: Sheet, names: str) -> tuple[str, ...]:
    """Return the columns that an option names: one, or several with commas between them.

    A name that the file does not have is returned as it is.
    """
    if names in sheet.names or "," not in names:
        return (names,)
    found: list[str] = []
    parts = names.split(",")
    while parts:
        ends = [n for n in range(len(parts), 0, -1) if ",".join(parts[:n]).strip() in sheet.names] or [1]
        found.append(",".join(parts[: ends[0]]).strip())
        parts = parts[ends[0] :]
    return tuple(dict.fromkeys(found))


def find_label_columns(sheet: Sheet, taken: Collection[str | None], kind: str | None) -> tuple[str, ...]:
    """Return the column of the label, or all columns of 0 and 1 if there are several.

    `kind` is that of the task, if it is known; one label is in one column. A file that also has another
    column that looks like a label is refused: only its owner knows which it is.
    """
    rest = [name for name in sheet.names if name not in taken and is_candidate(name)]
    indicators = find_indicators(sheet, rest) if kind in (None, "labels") else []
    if len(indicators) < 2:
        return (find_label(sheet, set(taken)),)
    if kind == "labels":
        return tuple(indicators)
    lower = {name.lower(): name for name in rest}
    named = [lower[name] for name in LABELS if name in lower]
    if named and named[0].lower() in FIRST_LABELS:
        return (named[0],)
    others = [name for name in rest if name not in indicators]
    rivals = named or [name for name in others if looks_like_label(sheet, name)]
    if rivals:
        listed = ", ".join(f'"{shorten(name, 30)}"' for name in indicators[:SHOWN])
        more = f" and {len(indicators) - SHOWN} more" if len(indicators) > SHOWN else ""
        raise UserError(
            f'{sheet.path} {sheet.unit} 1: "{shorten(rivals[0], 30)}" looks like the label, and '
            f"{listed}{more} like one column of 0 and 1 per label; say which with --label-column "
            f"{shorten(rivals[0], 30)} or --kind labels"
        )
    return tuple(indicators)


def find_indicators(sheet: Sheet, names: Sequence[str]) -> list[str]:
    """Return the columns that hold only 0 and 1 (or true and false), as far as the sample tells."""
    return [name for name in names if is_indicator(sheet, name)]


def is_indicator(sheet: Sheet, name: str) -> bool:
    column = sheet.names.index(name)
    try:
        values = [parse_indicator(row[column]) for row in sheet.sample]
    except ValueError:
        return False
    return any(value is not None for value in values)


def looks_like_label(sheet: Sheet, name: str) -> bool:
    """Return whether a column without a telling name may be a label: values recur, or are measurements."""
    cells = sample_values(sheet, name)
    measured = all(NUMBER.fullmatch(cell.strip()) for cell in cells) and any("." in cell for cell in cells)
    return measured or (not is_prose(sheet, name) and has_few_values(cells))


def find_label(sheet: Sheet, taken: set[str | None]) -> str:
    rest = [name for name in sheet.names if name not in taken]
    if not rest:
        raise UserError(
            f"{sheet.path} {sheet.unit} 1: one column only; a task needs a text and a label "
            f"(unlabeled text is a corpus, not a task)"
        )
    lower = {name.lower(): name for name in rest}
    named = [lower[name] for name in LABELS if name in lower]
    if len(named) == 1 or (named and named[0].lower() in FIRST_LABELS):
        return named[0]
    looks = named or [name for name in rest if is_candidate(name)]
    if len(looks) == 1:
        return looks[0]
    if not named:
        short = [name for name in looks if not is_prose(sheet, name)]
        few = [name for name in short if has_few_values(sample_values(sheet, name))]
        if len(few) == 1:
            return few[0]
    raise ambiguous_column_error(sheet, looks or rest, "label", "--label-column")


def is_candidate(name: str) -> bool:
    """Return whether a column may be text or label, by its name: not a row number or an address."""
    return bool(name) and name.lower() not in OTHERS


def ambiguous_column_error(sheet: Sheet, names: Sequence[str], role: str, option: str) -> UserError:
    candidates = ", ".join(f'"{shorten(name, 30)}"' for name in names)
    return UserError(
        f"{sheet.path} {sheet.unit} 1: which column is the {role}, of {candidates}? Say it with {option}"
    )


def sample_values(sheet: Sheet, name: str) -> list[str]:
    column = sheet.names.index(name)
    return [str(row[column]) for row in sheet.sample]


def is_prose(sheet: Sheet, name: str) -> bool:
    """Return whether a column holds texts: mostly different ones, of three or more words on average."""
    cells = sample_values(sheet, name)
    words = sum(len(cell.split()) for cell in cells)
    return bool(cells) and words >= 3 * len(cells) and not has_few_values(cells)


def choose_label_column(sheet: Sheet, names: Sequence[str]) -> str:
    """Choose which of two columns of short values is the label: numbers, or fewer and shorter values."""
    cells = [sample_values(sheet, name) for name in names]
    numeric = [all(NUMBER.fullmatch(cell.strip()) for cell in column) for column in cells]
    if numeric[0] != numeric[1]:
        return names[numeric.index(True)]
    sizes = [(len(set(column)), sum(map(len, column))) for column in cells]
    if sizes[0][0] < sizes[1][0] and sizes[0][1] <= sizes[1][1]:
        return names[0]
    if sizes[1][0] < sizes[0][0] and sizes[1][1] <= sizes[0][1]:
        return names[1]
    raise ambiguous_column_error(sheet, names, "label", "--text-column and --label-column")
