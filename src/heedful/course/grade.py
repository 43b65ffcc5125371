"""Grades a class: all submissions side by side, then the table, the pages and Gradescope's files."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path

import torch

from heedful.course.assignment import Assignment
from heedful.course.class_page import write_class_page
from heedful.course.grade_one import Result, Task, grade_submission
from heedful.course.gradescope import to_gradescope
from heedful.course.sandbox import require_bubblewrap
from heedful.course.similarity import Pair, find_similar
from heedful.course.starter import make_starter
from heedful.course.student_page import write_student_page
from heedful.course.submissions import Submission, list_submissions
from heedful.errors import UserError, one_line
from heedful.inference.row_writers import runs_in_spreadsheet
from heedful.progress import progress
from heedful.runs.files import write_json, write_text

SAFE_NAME = re.compile(r"[^\w.-]+")
LONGEST_NAME = 60
SOLUTION_NAME = "(the solution)"
"""Copies of the teacher's solution are listed too."""
RESULTS, STUDENTS, GRADESCOPE = "results", "students", "gradescope"


@dataclass(frozen=True)
class Grades:
    """What a class has."""

    assignment: Assignment
    folder: Path
    results: list[Result]
    pairs: list[Pair]
    others: list[str]
    """Entries of the folder that are no submissions."""
    graded: int
    """Submissions that were graded now; the other results were there."""

    @property
    def page(self) -> Path:
        """The page of the class."""
        return self.folder / "index.html"

    @property
    def table(self) -> Path:
        """The table for spreadsheets."""
        return self.folder / "grades.csv"


def grade_class(
    submissions: Path,
    assignment_folder: Path,
    out: Path,
    *,
    jobs: int | None = None,
    sandbox: bool = True,
    again: bool = False,
) -> Grades:
    """Grade all submissions of a folder, and write a table and pages.

    Parameters
    ----------
    submissions
        A folder with a folder, zip or Python file per student.
    assignment_folder
        The teacher's folder of an assignment.
    out
        Where the results are written. What is there already and still holds is not graded again.
    jobs
        Submissions at the same time; by default one per core.
    sandbox
        False runs the code without bubblewrap, with limits only.
    again
        Grade everything again.

    """
    if sandbox:
        require_bubblewrap()
    assignment = Assignment(assignment_folder)
    assignment.list_suites()
    students, others = list_submissions(submissions)
    names = name_files(students)
    (out / RESULTS).mkdir(parents=True, exist_ok=True)
    paths = {student.name: out / RESULTS / f"{names[student.name]}.json" for student in students}
    tasks = [Task(s, assignment.path, paths[s.name], sandbox, again) for s in students]
    times = {path: path.stat().st_mtime_ns for path in paths.values() if path.is_file()}
    results = grade_all(tasks, jobs or len(os.sched_getaffinity(0)))
    graded = sum(path.is_file() and path.stat().st_mtime_ns != times.get(path) for path in paths.values())
    pairs = compare(assignment, results)
    grades = Grades(assignment, out, results, pairs, others, graded)
    write_all(grades, names)
    return grades


def grade_all(tasks: Sequence[Task], jobs: int) -> list[Result]:
    """Grade in several processes, and return the results in the order of the tasks."""
    results: dict[str, Result] = {}
    with progress("submissions", len(tasks)) as bar:
        if jobs == 1 or len(tasks) == 1:
            for task in tasks:
                results[task.submission.name] = grade_submission(task)
                bar.advance(note=task.submission.name)
            return list(results.values())
        with ProcessPoolExecutor(min(jobs, len(tasks)), get_context("spawn"), use_one_thread) as pool:
            futures = {pool.submit(grade_submission, task): task for task in tasks}
            try:
                for future in as_completed(futures):
                    name = futures[future].submission.name
                    results[name] = future.result()
                    bar.advance(note=name)
            except BrokenProcessPool:
                raise UserError(
                    f"a process that grades was killed, probably because the memory is full; {len(results)} "
                    "results are written. Call the command again with --jobs 1: it goes on from there"
                ) from None
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return [results[task.submission.name] for task in tasks]


def use_one_thread() -> None:
    """Let a worker leave the other cores to the other workers."""
    torch.set_num_threads(1)


def name_files(students: Sequence[Submission]) -> dict[str, str]:
    """Return a file name for each student that is safe on every system, and different from all others."""
    names = {}
    for student in students:
        name = SAFE_NAME.sub("_", student.name).strip("._")[:LONGEST_NAME]
        if name != student.name:
            name += "-" + sha256(student.name.encode(errors="surrogateescape")).hexdigest()[:8]
        names[student.name] = name
    return names


def compare(assignment: Assignment, results: Sequence[Result]) -> list[Pair]:
    """Return pairs of similar submissions; the starter's code does not count."""
    sources = {result.student: result.source for result in results if result.source}
    solution = assignment.folder / "solution.py"
    starter = ""
    if solution.is_file():
        sources[SOLUTION_NAME] = solution.read_text("utf-8")
        starter = make_starter(sources[SOLUTION_NAME], solution)
    return find_similar(sources, starter)


def write_all(grades: Grades, names: dict[str, str]) -> None:
    """Write the table, the pages and Gradescope's files."""
    for folder in (STUDENTS, GRADESCOPE):
        (grades.folder / folder).mkdir(exist_ok=True)
    write_table(grades.table, grades.assignment, grades.results)
    pages = {name: f"{STUDENTS}/{file}.html" for name, file in names.items()}
    for result in grades.results:
        write_student_page(grades.folder / pages[result.student], grades.assignment, result)
        write_json(grades.folder / GRADESCOPE / f"{names[result.student]}.json", to_gradescope(result))
    sources = {result.student: result.source for result in grades.results}
    solution = grades.assignment.folder / "solution.py"
    if solution.is_file():
        sources[SOLUTION_NAME] = solution.read_text("utf-8")
    write_class_page(grades.page, grades.assignment, grades.results, grades.pairs, sources, pages)


def write_table(path: Path, assignment: Assignment, results: Sequence[Result]) -> None:
    """Write grades.csv; no cell is taken for a formula. Points that a person gives have empty cells."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    written = [question.name for question in assignment.table.written]
    head = [
        "student",
        "points",
        "of",
        *(c.name for c in assignment.criteria),
        *written,
        "mistakes",
        "problems",
    ]
    writer.writerow([safe(cell) for cell in head])
    for result in results:
        problems = "; ".join(filter(None, (result.problem, *result.stopped)))
        points = [f"{score.points:g}" for score in result.criteria]
        row = [result.student, f"{result.points:g}", f"{result.most:g}", *points, *[""] * len(written)]
        writer.writerow([safe(cell) for cell in (*row, "; ".join(result.mistakes), problems)])
    write_text(path, text.getvalue())


def safe(cell: str) -> str:
    """Return a cell as a spreadsheet shows it; one that would be computed gets a ' before it."""
    cell = one_line(cell)
    return f"'{cell}" if runs_in_spreadsheet(cell) else cell


def grade_for_gradescope(submission: Path, assignment_folder: Path, out: Path, *, sandbox: bool) -> Result:
    """Grade a single submission, and write Gradescope's results.json."""
    if not submission.exists():
        raise UserError(f"{submission}: there is no such submission")
    result_path = out.with_name(out.name + ".details")
    task = Task(Submission(submission.name, submission), assignment_folder, result_path, sandbox, again=True)
    try:
        result = grade_submission(task)
    finally:
        result_path.unlink(missing_ok=True)
    write_json(out, to_gradescope(result))
    return result
