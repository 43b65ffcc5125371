"""Writes an assignment: what students get and what the teacher keeps, both from one annotated solution."""

from __future__ import annotations

import random
import re
from importlib.resources import files
from pathlib import Path

import msgspec

from heedful.course.assignment import ASSIGNMENT, Assignment, Criterion
from heedful.course.assignment_data import MAKERS
from heedful.course.assignments import find_source
from heedful.course.starter import make_starter
from heedful.errors import UserError, unknown
from heedful.runs.files import new_folder, write_text
from heedful.runs.toml import to_toml

STARTER, SOLUTION, DATA = "starter", "solution.py", "data"
LARGEST_SEED = 10**6
SEED = re.compile(r"^SEED = \d+$", re.MULTILINE)
PUBLIC_COMMENT = "# What `make check` checks. The grade also counts checks that are not listed here.\n"


def write_assignment(name: str, folder: Path, *, seed: int | None = None) -> Assignment:
    """Write an assignment into a new folder.

    Parameters
    ----------
    name
        Name of an assignment: attention, classifier, birthplaces, variants or finetuning.
    folder
        A folder that does not exist yet or is empty.
    seed
        Seed of the data and of the hidden inputs; by default drawn at random.

    """
    source = find_source(name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UserError(f"{folder}: already exists; give a new folder")
    seed = random.SystemRandom().randrange(LARGEST_SEED) if seed is None else seed
    with new_folder(folder) as new:
        for path in sorted(source.iterdir()):
            if path.is_file() and path.name != "__init__.py":
                text = path.read_text("utf-8")
                write_text(
                    new / path.name, SEED.sub(f"SEED = {seed}", text) if path.suffix == ".py" else text
                )
        assignment = Assignment(new)
        if assignment.table.data:
            make_data(assignment, new / DATA, seed)
        write_starter(assignment)
        write_text(new / "README.md", describe_for_teacher(assignment, name, seed))
        write_text(new / "rubric.md", write_rubric(assignment))
        stem = assignment.file.removesuffix(".py")
        write_text(new / "Makefile", read_template("teacher.mk").replace("NAME", stem))
    return Assignment(folder)


def make_data(assignment: Assignment, folder: Path, seed: int) -> None:
    kind = assignment.table.data
    if kind not in MAKERS:
        raise unknown("data", kind, MAKERS)
    folder.mkdir()
    MAKERS[kind](folder, seed)


def write_starter(assignment: Assignment) -> Path:
    """Write the folder that students get, from the solution and the public part of assignment.toml."""
    solution = assignment.folder / SOLUTION
    if not solution.is_file():
        raise UserError(f"{solution}: there is no such file; the starter is made from it")
    starter = make_starter(solution.read_text("utf-8"), solution)
    public = [each for each in assignment.criteria if not each.hidden]
    with new_folder(assignment.folder / STARTER) as new:
        write_text(new / assignment.file, starter)
        write_text(new / ASSIGNMENT, PUBLIC_COMMENT + write_toml_of(assignment, public))
        write_text(new / "README.md", write_instructions(assignment))
        name = assignment.file.removesuffix(".py")
        write_text(new / "Makefile", read_template("student.mk").replace("NAME", name))
        for file in sorted({each.claims_from for each in public if each.claims_from}):
            write_text(new / file, (assignment.folder / file).read_text("utf-8"))
        data = assignment.folder / DATA
        if data.is_dir():
            (new / DATA).mkdir()
            for path in sorted(data.iterdir()):
                (new / DATA / path.name).write_bytes(path.read_bytes())
    return assignment.folder / STARTER


def write_toml_of(assignment: Assignment, criteria: list[Criterion]) -> str:
    """Return assignment.toml with these criteria, and without guidance."""
    parts = [to_toml({"title": assignment.title, "file": assignment.file})]
    for each in criteria:
        facts = msgspec.to_builtins(each)
        parts.append("[[criteria]]\n" + to_toml({k: v for k, v in facts.items() if v}))
    for question in assignment.table.written:
        parts.append("[[written]]\n" + to_toml({"name": question.name, "points": question.points}))
    parts.append(to_toml({"limits": msgspec.to_builtins(assignment.table.limits)}).lstrip())
    return "\n".join(parts)


def write_instructions(assignment: Assignment) -> str:
    """Return what students read: the instructions, how to check, and the points."""
    rows = [
        f"| {each.name} | {each.points:g} | {'when it is graded' if each.hidden else '`make check`'} |"
        for each in assignment.criteria
    ]
    rows += [f"| {each.name} | {each.points:g} | a person |" for each in assignment.table.written]
    total = assignment.most + sum(each.points for each in assignment.table.written)
    text = (assignment.folder / "instructions.md").read_text("utf-8").strip()
    return read_template("student.md").format(
        title=assignment.title, text=text, file=assignment.file, rows="\n".join(rows), total=total
    )


def write_rubric(assignment: Assignment) -> str:
    """Return the rubric: every claim with its points, and what right answers to written questions say."""
    parts = [f"# Rubric: {assignment.title}", "", f"{assignment.most:g} points by checks."]
    for criterion in assignment.criteria:
        claims = assignment.load_claims(criterion)
        who = "hidden from students" if criterion.hidden else "students have these checks"
        parts += [
            "",
            f"## {criterion.name}: {criterion.points:g} points",
            "",
            f"Suite `{criterion.suite}`, {who}.",
            "",
        ]
        parts += ["| claim | what it says | points |", "| --- | --- | ---: |"]
        parts += [f"| {c.name} | {c.sentence} | {criterion.points / len(claims):.3g} |" for c in claims]
    for question in assignment.table.written:
        parts += [
            "",
            f"## {question.name}: {question.points:g} points, given by a person",
            "",
            question.guidance,
        ]
    return "\n".join(parts) + "\n"


def describe_for_teacher(assignment: Assignment, name: str, seed: int) -> str:
    template = read_template("teacher.md")
    return template.format(title=assignment.title, name=name, seed=seed, file=assignment.file)


def read_template(name: str) -> str:
    """Return a file of the folder `templates`."""
    return (files("heedful.course") / "templates" / name).read_text(encoding="utf-8")
