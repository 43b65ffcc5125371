"""answer.json: the answer of a study, in a form that can be shown without knowing the study.

A study names its figures by kind and stores their data; `heedful report` draws them. Nothing here is drawn or
computed, so that a study of any kind, also one of a later version, has a report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from heedful.display import render_lines, render_table, render_title
from heedful.runs.files import write_json
from heedful.runs.json_files import read_record

ANSWER = "answer.json"


@dataclass(frozen=True)
class Figure:
    """One figure: a function of `heedful.report.charts` by name, and what it is called with."""

    name: str
    """A word or two for the file that `--figures` writes, such as `heat-map`; unique in its study."""
    kind: Literal["lines", "bars", "scatter", "heat_map", "small_multiples", "histogram"]
    data: Any
    """The first argument. lines: `{curve: [[x, y], ...]}` or `[x, y, low, high]`, a missing number is null;
    bars and scatter: `[{...}, ...]`, a row without a value failed, its `note` is the reason;
    heat_map: a list of rows; small_multiples: `{panel: rows}`; histogram: numbers, or `{sample: numbers}`."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Its keyword arguments, such as `title x_title y_title y_domain log_x mark_best levels`. A heat map's
    `notes` are a list of `[row, column, note]`, since JSON has no keys of two numbers."""
    caption: str = ""


@dataclass(frozen=True)
class Table:
    """One table; a cell is text, a number, or null for an empty cell."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    title: str = ""

    def to_arrow(self) -> Any:
        """Return the table as a `pyarrow.Table`; a column of several types becomes text."""
        import pyarrow as pa

        def column(cells: list[Any]) -> Any:
            try:
                return pa.array(cells)
            except pa.ArrowException:
                return pa.array([None if cell is None else str(cell) for cell in cells])

        columns = {name: [row[i] for row in self.rows] for i, name in enumerate(self.columns)}
        return pa.table({name: column(cells) for name, cells in columns.items()})

    def to_pandas(self) -> Any:
        """Return the table as a `pandas.DataFrame`; pandas must be installed."""
        return self.to_arrow().to_pandas()

    def _repr_html_(self) -> str:
        return render_table(self.columns, self.rows, self.title)


@dataclass(frozen=True)
class Note:
    """A highlighted remark: a verdict or a warning."""

    text: str
    kind: Literal["plain", "good", "warning", "bad"] = "plain"


@dataclass(frozen=True)
class Answer:
    """answer.json, written again whenever a run of the study ends."""

    study: str
    """overfit, search, compare, labels, optimizers, attention or knowledge."""
    title: str
    summary: tuple[str, ...]
    """The answer in sentences, the most important first."""
    finished: bool = True
    notes: tuple[Note, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    runs: tuple[str, ...] = ()
    """Folders of its runs, relative to the study's, the selected one first."""
    command: tuple[str, ...] = ()
    """The words after `heedful`: the command that repeats the study."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further results, for programs."""

    def _repr_html_(self) -> str:
        notes = [render_lines([note.text], note.kind) for note in self.notes if note.text not in self.summary]
        tables = [table._repr_html_() for table in self.tables]
        return "".join([render_title(self.title), render_lines(self.summary), *notes, *tables])


def write_answer(folder: str | Path, answer: Answer) -> Path:
    return write_json(Path(folder) / ANSWER, answer)


def read_answer(folder: str | Path) -> Answer:
    return read_record(Answer, Path(folder) / ANSWER)
