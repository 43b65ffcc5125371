"""Assignments: the solution has all points, the starter none, and nothing of the solution is in the starter."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from heedful.contracts.subject import Subject
from heedful.contracts.suite import Suite
from heedful.contracts.verdicts import Verdict
from heedful.course.assignment import Assignment
from heedful.course.assignments import ABOUT
from heedful.course.bugs import build_subject
from heedful.course.check import run_suite
from heedful.course.new import write_assignment, write_starter
from heedful.course.scoring import CriterionScore, check_suites, score_criteria
from heedful.course.starter import make_starter
from heedful.errors import UserError

pytestmark = pytest.mark.filterwarnings("ignore")
"""The process of a student's file ignores warnings too."""
SOURCE = """
class A:
    def f(self):
        x = 1
        # SOLUTION: add "x" and 1
        return x + 1
        # END SOLUTION

    def g(self):
        return 2
"""


@pytest.fixture(scope="module")
def write(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Assignment]:
    """Return a function that writes an assignment, once."""
    written: dict[str, Assignment] = {}

    def write_once(name: str) -> Assignment:
        if name not in written:
            written[name] = write_assignment(name, tmp_path_factory.mktemp(name) / "a", seed=4)
        return written[name]

    return write_once


def score(assignment: Assignment, source: str) -> list[CriterionScore]:
    """Check code in this process, without mistakes' names."""

    def check(suite: Suite) -> list[Verdict]:
        subject: Subject = build_subject(source, suite.name)
        return run_suite(suite, subject, name_mistakes=False)

    return score_criteria(assignment, check_suites(assignment.list_suites(), check))


@pytest.mark.parametrize("name", ABOUT)
def test_the_solution_has_all_points(name: str, write: Callable[[str], Assignment]) -> None:
    assignment = write(name)
    scores = score(assignment, (assignment.folder / "solution.py").read_text("utf-8"))
    broken = [
        (s.name, v.claim, v.status, v.message) for s in scores for v in s.verdicts if v.status != "passed"
    ]
    assert broken == []
    assert sum(s.points for s in scores) == assignment.most


@pytest.mark.parametrize("name", ABOUT)
def test_the_starter_has_no_points_and_every_error_says_what_to_write(
    name: str, write: Callable[[str], Assignment]
) -> None:
    assignment = write(name)
    starter = (assignment.folder / "starter" / assignment.file).read_text("utf-8")
    scores = score(assignment, starter)
    assert {s.points for s in scores} == {0.0}
    errors = [v for s in scores for v in s.verdicts if v.status == "error"]
    assert errors
    assert [v.message for v in errors if "is not written yet" not in v.message] == []


@pytest.mark.parametrize("name", ABOUT)
def test_students_get_nothing_that_is_hidden(name: str, write: Callable[[str], Assignment]) -> None:
    assignment = write(name)
    starter = assignment.folder / "starter"
    hidden = [each for each in assignment.criteria if each.hidden]
    public = Assignment(starter)
    assert public.criteria == tuple(each for each in assignment.criteria if not each.hidden)
    assert hidden
    assert not any((starter / each.claims_from).is_file() for each in hidden if each.claims_from)
    assert not any(question.guidance for question in public.table.written)
    assert "SOLUTION" not in (starter / assignment.file).read_text("utf-8")
    assert list((starter / "data").iterdir())
    rubric = (assignment.folder / "rubric.md").read_text("utf-8")
    assert all(question.guidance in rubric for question in assignment.table.written)


def test_a_change_of_the_solution_is_in_the_next_starter(tmp_path: Path) -> None:
    assignment = write_assignment("attention", tmp_path / "a", seed=1)
    solution = tmp_path / "a" / "solution.py"
    solution.write_text(
        solution.read_text("utf-8").replace("q is [batch, queries, d]", "q is [b, t, d]"), "utf-8"
    )
    starter = write_starter(assignment) / "attention.py"
    assert "q is [b, t, d]" in starter.read_text("utf-8")


def test_the_example_is_right_and_the_seed_decides_about_it(tmp_path: Path) -> None:
    examples = []
    for folder, seed in (("a", 1), ("b", 1), ("c", 2)):
        write_assignment("attention", tmp_path / folder, seed=seed)
        examples.append(
            json.loads((tmp_path / folder / "starter" / "data" / "example.json").read_text("utf-8"))
        )
        assert f"SEED = {seed}\n" in (tmp_path / folder / "hidden.py").read_text("utf-8")
    assert examples[0] == examples[1] != examples[2]
    assert examples[0]["output"][0] == examples[0]["v"][0]


def test_the_gap_names_its_function_and_quotes_the_hint() -> None:
    starter = make_starter(SOURCE, Path("s.py"))
    assert "x + 1" not in starter
    assert 'raise NotImplementedError("A.f is not written yet: add \\"x\\" and 1")' in starter
    scope: dict[str, type] = {}
    exec(starter, scope)
    assert scope["A"]().g() == 2


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("        # END SOLUTION\n", "", "line 5: this solution has no end"),
        ('# SOLUTION: add "x" and 1', "#", "line 7: # END SOLUTION ends nothing"),
        ('SOLUTION: add "x" and 1', "SOLUTION:", "line 5: say what to write"),
        ("return x + 1", "# SOLUTION: twice", "line 6: a solution begins within"),
        ("return 2", "return (", "it is not Python"),
    ],
)
def test_a_broken_annotation_is_named_with_its_line(old: str, new: str, reason: str) -> None:
    with pytest.raises(UserError, match=r"s\.py.*" + reason):
        make_starter(SOURCE.replace(old, new), Path("s.py"))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('suite = "attention"', 'suite = "atention"', "attention"),
        ('"causality", ', '"causalty", ', "causality"),
        ("points = 6", 'points = "six"', r"criteria\[0\].points"),
        ("points = 6", "points = -6", "at least 0"),
        ('"questions.py"', '"answers.py"', "there is no such file"),
        ("title", "titel", "titel"),
        ("[limits]", "[limit]", "limit"),
        ("hidden = true", "hidden == true", "is not TOML"),
    ],
)
def test_a_mistake_in_assignment_toml_is_named(tmp_path: Path, old: str, new: str, reason: str) -> None:
    write_assignment("attention", tmp_path / "a", seed=1)
    path = tmp_path / "a" / "assignment.toml"
    path.write_text(path.read_text("utf-8").replace(old, new, 1), "utf-8")
    with pytest.raises(UserError, match=reason):
        Assignment(tmp_path / "a").list_suites()


def test_an_assignment_is_never_written_over_something(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UserError, match="already exists"):
        write_assignment("attention", tmp_path)
    with pytest.raises(UserError, match="attention"):
        write_assignment("atention", tmp_path / "a")
