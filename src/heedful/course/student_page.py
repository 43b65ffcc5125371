"""The page of one student: points, and for each broken claim what broke it."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path
from typing import Any

from heedful.contracts.verdicts import Verdict
from heedful.course.assignment import Assignment
from heedful.course.grade_one import Result
from heedful.course.pages import make_environment
from heedful.runs.files import write_text


def write_student_page(path: Path, assignment: Assignment, result: Result) -> Path:
    """Write the page of a student; it needs no other file."""
    from markupsafe import Markup

    parts = [
        {"score": score, "groups": [describe(list(group)) for group in group_verdicts(score.verdicts)]}
        for score in result.criteria
    ]
    drawings = {
        (score.name, verdict.claim): Markup(verdict.counterexample.heat_map)
        for score in result.criteria
        for verdict in score.verdicts
        if verdict.counterexample is not None and verdict.counterexample.heat_map
    }
    page = make_environment().get_template("student.html").render(
        assignment=assignment, result=result, parts=parts, drawings=drawings
    )  # fmt: skip
    return write_text(path, page)


def group_verdicts(verdicts: tuple[Verdict, ...]) -> list[list[Verdict]]:
    """Put verdicts with one reason together: one line of code often breaks all claims."""
    groups: list[list[Verdict]] = []
    for (status, _, _), group in groupby(verdicts, key=lambda v: (v.status, v.message, v.hint)):
        same = list(group)
        groups += [[verdict] for verdict in same] if status in ("passed", "failed") else [same]
    return groups


def describe(group: list[Verdict]) -> dict[str, Any]:
    """Return what the page says about verdicts with one reason."""
    first = group[0]
    words = {"passed": "holds", "failed": "broken", "error": "error", "not applicable": "missing"}
    return {
        "verdict": first,
        "names": [verdict.claim for verdict in group],
        "sentences": [verdict.sentence for verdict in group],
        "word": words[first.status],
        "kind": "good" if first.status == "passed" else "bad",
    }
