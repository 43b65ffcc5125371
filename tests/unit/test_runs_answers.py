from __future__ import annotations

import json
from pathlib import Path

import pytest

from heedful.errors import UserError
from heedful.runs.answers import ANSWER, Answer, Figure, Note, Table, read_answer, write_answer

ANSWERED = Answer(
    study="search",
    title="minilm on boolq: search",
    summary=("The best is 1e-4.",),
    notes=(Note("It lies on the edge.", "warning"),),
    figures=(Figure("curves", "lines", {"a": [[1, 0.5], [2, None]]}, {"title": "t", "y_domain": [0, 1]}),),
    tables=(Table(("lr", "dev"), ((1e-4, 0.7), ("none", None))),),
    runs=("runs/a", "runs/b"),
    command=("study", "search", "minilm", "boolq"),
    facts={"best": {"lr": 1e-4}},
)


def test_an_answer_reads_back_as_it_was_written(tmp_path: Path) -> None:
    write_answer(tmp_path, ANSWERED)
    assert read_answer(tmp_path).tables == ANSWERED.tables
    assert read_answer(tmp_path) == ANSWERED


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (
            {"figures": [{"name": "a", "kind": "pie", "data": []}]},
            '"figures\\[0\\].kind": invalid enum value .pie',
        ),
        ({"summary": "words"}, 'field "summary" is text'),
        ({"title": None}, 'field "title" is null'),
    ],
)
def test_a_damaged_answer_names_its_field(tmp_path: Path, change: dict[str, object], told: str) -> None:
    write_answer(tmp_path, ANSWERED)
    path = tmp_path / ANSWER
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(UserError, match=told):
        read_answer(tmp_path)
