"""How studies print their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heedful.cli.output import console, print_json, print_table

if TYPE_CHECKING:
    from heedful.runs.answers import Answer
    from heedful.runs.studies import StudyFolder


def finish(study: StudyFolder, answer: Answer, *, json: bool) -> None:
    """Print what a study found: one JSON object, or a table and plain sentences."""
    if json:
        from heedful.runs.files import plain

        print_json({"folder": str(study.path), **plain(answer)})
        return
    print_answer(study, answer)
    console().print(f"study: {study.path}", markup=False)


def print_answer(study: StudyFolder, answer: Answer) -> None:
    """Tables first, then warnings, then the answer in words."""
    for table in answer.tables:
        numbers = [
            column
            for i, column in enumerate(table.columns)
            if any(isinstance(row[i], int | float) for row in table.rows)
        ]
        print_table(
            table.title or answer.title,
            table.columns,
            [tuple(map(cell, row)) for row in table.rows],
            right=numbers,
        )
    out = console()
    for note in answer.notes:
        if note.text not in answer.summary:
            out.print(f"{note.kind}: {note.text}" if note.kind != "plain" else note.text, markup=False)
    for sentence in answer.summary:
        out.print(sentence, markup=False)


def cell(value: Any) -> str:
    """A cell as text."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3f}" if 1e-3 <= abs(value) < 1000 and not value.is_integer() else f"{value:g}"
    return str(value)
