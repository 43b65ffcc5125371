"""`heedful course`: what a teacher and a student type, with mistakes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heedful.course import sandbox as sandboxes

Heedful = Callable[..., Any]


@pytest.fixture
def assignment(heedful: Heedful, tmp_path: Path) -> Path:
    folder = tmp_path / "a1"
    done = heedful("course", "new", "attention", str(folder), "--seed", "3")
    assert done.status == 0, done.err
    assert "27 by checks (6 of them hidden), 3 by a person" in done.out
    return folder


@pytest.mark.long
def test_the_solution_passes_and_the_starter_says_once_what_is_missing(
    heedful: Heedful, assignment: Path
) -> None:
    done = heedful("course", "check", str(assignment / "solution.py"), "--as", "attention")
    assert done.status == 0
    assert "22 of 22 claims hold: well done" in done.out
    starter = assignment / "starter"
    done = heedful("course", "check", str(starter / "attention.py"), "--as", str(starter / "assignment.toml"))
    assert done.status == 1
    assert "0 of 21 points" in done.out
    text = " ".join(done.out.split())
    assert text.count("dot_product_attention is not written yet: first the scores") == 1
    assert "Dot-product attention on other inputs" not in done.out


@pytest.mark.long
def test_points_as_json(heedful: Heedful, assignment: Path) -> None:
    path = str(assignment / "solution.py")
    done = heedful("course", "check", path, "--as", str(assignment / "assignment.toml"), "--json")
    facts = json.loads(done.out)
    assert facts["points"] == facts["most"] == 27
    assert facts["criteria"][0]["verdicts"][0]["status"] == "passed"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("new", "atention", "x"), "attention"),
        (("new", "attention", "a1"), "already exists; give a new folder"),
        (("starter", "nowhere"), "there is no such file; heedful course new"),
        (("check", "a1/solution.py", "--as", "answers"), "its claims come with an assignment"),
        (("check", "a1/solution.py", "--as", "a1", "--claim", "shapes"), "--claim is for one suite"),
        (("check", "a1/solution.py", "--as", "a1/assignment.tml"), "assignment.tml"),
        (("grade", "nowhere", "a1", "--no-sandbox"), "there is no such folder"),
        (("grade", "a1", "a1/starter/data", "--no-sandbox"), "there is no such file; heedful course new"),
        (("grade", "a1", "a1", "--no-sandbox", "--out", "a1/README.md"), "is a file; give a folder"),
        (("autograder", "a1", "--out", "a1.tar"), "is the name of a .zip file"),
    ],
)
def test_a_mistake_is_one_line(
    heedful: Heedful, assignment: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], reason: str
) -> None:
    monkeypatch.chdir(assignment.parent)
    done = heedful("course", *words)
    assert done.status == 2, done.out
    line = done.err.strip().splitlines()[-1]
    assert line.startswith("heedful: ")
    assert reason in line


def test_without_bubblewrap_nothing_is_graded(
    heedful: Heedful, assignment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes.shutil, "which", lambda name: None)
    sandboxes.require_bubblewrap.cache_clear()
    submissions = assignment.parent / "submissions"
    submissions.mkdir()
    shutil.copy(assignment / "solution.py", submissions / "ada.py")
    done = heedful("course", "grade", str(submissions), str(assignment))
    sandboxes.require_bubblewrap.cache_clear()
    assert done.status == 2
    assert "apt install bubblewrap, or grade with --no-sandbox" in done.err
    assert not (assignment / "grades").exists()
