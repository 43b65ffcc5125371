"""How studies print their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heedful.cli.output import console, print_json, print_table

PLAIN = ("epoch", "learning rate", "seconds")
"""Columns whose numbers are not scores."""

if TYPE_CHECKING:
    from heedful.runs.answers import Answer
    from heedful.runs.studies import StudyFolder


def print_result(study: StudyFolder, answer: Answer, *, json: bool) -> None:
    """Print a study's answer: one JSON object, or tables and sentences."""
    if json:
        from heedful.runs.files import to_json_value

        print_json({"folder": str(study.path), **to_json_value(answer)})
        return
    print_answer(study, answer)
    console().print(f"study: {study.path}", markup=False)


def print_answer(study: StudyFolder, answer: Answer) -> None:
    """Tables first, then warnings, then the answer in words."""
    for table in answer.tables:
        columns = table.columns
        by_column = {name: [row[i] for row in table.rows] for i, name in enumerate(columns)}
        numbers = [
            name for name, cells in by_column.items() if any(isinstance(c, int | float) for c in cells)
        ]
        rows = [tuple(map(format_cell, columns, row)) for row in table.rows]
        print_table(table.title or answer.title, columns, rows, right=numbers)
    out = console()
    for note in answer.notes:
        if note.text not in answer.summary:
            out.print(f"warning: {note.text}" if note.kind == "warning" else note.text, markup=False)
    for sentence in answer.summary:
        out.print(sentence, markup=False)


def format_cell(column: str, value: Any) -> str:
    """Return a cell as text; scores have three decimals."""
    if value is None:
        return ""
    if not isinstance(value, float):
        return str(value)
    if column in PLAIN or (value and abs(value) < 1e-3):
        return f"{value:g}"
    return f"{value:.3f}"
