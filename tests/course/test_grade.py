"""A class is graded: verdicts are as planted, hostile submissions harm nobody, and what is written is right."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from benchmarks.course_class import Planted, find_errors, plant_class

from heedful.course.assignment import Assignment
from heedful.course.grade import Grades, grade_class
from heedful.course.gradescope import write_autograder
from heedful.course.new import write_assignment
from heedful.errors import UserError

GRADED_ALONE = ("fills", "deletes", "forges", "=cmd|'calc'!A1", "bomb", "link")


@dataclass(frozen=True)
class Case:
    assignment: Path
    submissions: Path
    planted: list[Planted]
    grades: Grades


def grade(folder: Path, number: int, names: tuple[str, ...] = ()) -> Case:
    assignment, submissions, planted = plant_class(folder, number, names)
    (folder / "tmp").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder / "tmp"))
        grades = grade_class(submissions, assignment, folder / "grades", jobs=2)
    return Case(assignment, submissions, planted, grades)


@pytest.fixture(scope="module")
def class_of_eight(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return grade(tmp_path_factory.mktemp("class"), 8)


@pytest.fixture(scope="module")
def others(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return grade(tmp_path_factory.mktemp("others"), 0, GRADED_ALONE)


@pytest.mark.long
@pytest.mark.needs("bubblewrap")
class TestGrading:
    def test_every_verdict_of_a_class_is_as_planted(self, class_of_eight: Case) -> None:
        """Right ones, known mistakes, and those that hang, fork, print, exit or patch the checker."""
        assert {p.name for p in class_of_eight.planted} >= {"hangs", "forks", "prints", "exits", "patches"}
        assert find_errors(class_of_eight.planted, class_of_eight.grades) == []

    def test_what_fills_the_disk_deletes_files_or_forges_messages_is_marked(self, others: Case) -> None:
        assert find_errors(others.planted, others.grades) == []
        assert (others.submissions / "deletes" / "attention.py").is_file()

    def test_nothing_is_left_running_or_lying_about(self, class_of_eight: Case, others: Case) -> None:
        words = (" ".join(p.info["cmdline"] or []) for p in psutil.process_iter(["cmdline"]))
        assert [
            w for w in words if "heedful.course.child" in w and str(class_of_eight.submissions.parent) in w
        ] == []
        for case in (class_of_eight, others):
            assert not list((case.submissions.parent / "tmp").iterdir())

    def test_the_table_is_safe_for_spreadsheets(self, others: Case) -> None:
        with others.grades.table.open(encoding="utf-8", newline="") as file:
            rows = {row["student"]: row for row in csv.DictReader(file)}
        assert rows["'=cmd|'calc'!A1"]["points"] == "27"
        assert rows["'=cmd|'calc'!A1"]["Question 8"] == ""
        assert "more than 50 MiB" in rows["bomb"]["problems"]

    def test_the_pages_show_what_happened_and_link_to_one_another(self, class_of_eight: Case) -> None:
        page = class_of_eight.grades.page.read_text("utf-8")
        for result in class_of_eight.grades.results:
            assert f"students/{result.student}.html" in page
            assert (class_of_eight.grades.folder / "students" / f"{result.student}.html").is_file()
        (bug, *_) = [p for p in class_of_eight.planted if p.mistakes]
        assert bug.mistakes[0] in page
        student = (class_of_eight.grades.folder / "students" / f"{bug.name}.html").read_text("utf-8")
        assert f"This looks like a known mistake: <b>{bug.mistakes[0]}</b>" in student
        assert "<svg" in student
        assert "The smallest input that breaks it" in student

    def test_text_of_students_is_no_markup(self, class_of_eight: Case, tmp_path: Path) -> None:
        folder = tmp_path / "submissions"
        folder.mkdir()
        (folder / "<b>eve").mkdir()
        (folder / "<b>eve" / "attention.py").write_text('raise ValueError("<script>alert(1)</script>")\n')
        grades = grade_class(folder, class_of_eight.assignment, tmp_path / "grades", jobs=1)
        (page,) = (tmp_path / "grades" / "students").iterdir()
        for text in (page.read_text("utf-8"), grades.page.read_text("utf-8")):
            assert "<script>" not in text
            assert "<b>eve" not in text
        assert "ValueError: &lt;script&gt;" in page.read_text("utf-8")

    def test_a_second_call_grades_only_what_was_changed(self, class_of_eight: Case) -> None:
        case = class_of_eight
        path = case.submissions / "student-01" / "attention.py"
        before = {r.student: r.points for r in case.grades.results}
        shutil.copy(case.assignment / "solution.py", path)
        again = grade_class(case.submissions, case.assignment, case.grades.folder, jobs=1)
        assert again.graded == 1
        after = {r.student: r.points for r in again.results}
        assert after.pop("student-01") == 27.0 > before.pop("student-01")
        assert after == before

    def test_gradescope_gets_a_test_per_claim(self, class_of_eight: Case) -> None:
        facts = json.loads(
            (class_of_eight.grades.folder / "gradescope" / "right-zip.json").read_text("utf-8")
        )
        assert facts["score"] == pytest.approx(27)
        assert sum(test["max_score"] for test in facts["tests"]) == pytest.approx(27, abs=1e-2)
        assert {test["status"] for test in facts["tests"]} == {"passed"}
        hidden = {test["visibility"] for test in facts["tests"] if "wide vectors" in test["name"]}
        assert hidden == {"after_published"}

    def test_the_autograder_grades_in_gradescopes_layout(self, class_of_eight: Case, tmp_path: Path) -> None:
        path = write_autograder(Assignment(class_of_eight.assignment), tmp_path / "autograder.zip")
        root = tmp_path / "autograder"
        with zipfile.ZipFile(path) as archive:
            archive.extractall(root / "source")
            modes = {entry.filename: entry.external_attr >> 16 & 0o777 for entry in archive.infolist()}
        assert modes["run_autograder"] == modes["setup.sh"] == 0o755
        assert not any("solution" in name or "starter" in name for name in modes)
        (root / "submission").mkdir()
        shutil.copy(class_of_eight.assignment / "solution.py", root / "submission" / "attention.py")
        environment = {**os.environ, "AUTOGRADER": str(root), "HEEDFUL_PYTHON": sys.executable}
        subprocess.run(["bash", str(root / "source" / "run_autograder")], env=environment, check=True)
        assert json.loads((root / "results" / "results.json").read_text("utf-8"))["score"] == 27
        assert [path.name for path in (root / "results").iterdir()] == ["results.json"]


def test_without_a_submission_or_an_assignment_the_error_says_what_is_missing(tmp_path: Path) -> None:
    write_assignment("attention", tmp_path / "a", seed=1)
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="no submissions"):
        grade_class(tmp_path / "empty", tmp_path / "a", tmp_path / "grades", sandbox=False)
    with pytest.raises(UserError, match=r"assignment\.toml: there is no such file; heedful course new"):
        grade_class(tmp_path / "empty", tmp_path / "empty", tmp_path / "grades", sandbox=False)


def test_the_autograder_has_the_whole_package(tmp_path: Path) -> None:
    write_assignment("attention", tmp_path / "a", seed=1)
    path = write_autograder(Assignment(tmp_path / "a"), tmp_path / "autograder.zip")
    with zipfile.ZipFile(path) as archive:
        (wheel,) = [name for name in archive.namelist() if name.endswith(".whl")]
        archive.extract(wheel, tmp_path)
    with zipfile.ZipFile(tmp_path / wheel) as archive:
        names = archive.namelist()
    assert "heedful/course/templates/class.html" in names
    assert "heedful/report/page.css" in names
    assert any(name.endswith("dist-info/METADATA") for name in names)
