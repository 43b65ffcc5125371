"""`heedful course grade` and `heedful course autograder`: grade a class, here or on Gradescope."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Flag, Json, console, print_facts, print_json
from heedful.errors import UserError, one_line
from heedful.options.types import Positive


def grade(
    submissions: Path,
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    out: Path | None = None,
    jobs: Positive | None = None,
    no_sandbox: Flag = False,
    again: Flag = False,
    gradescope: Path | None = None,
    json: Json = False,
) -> None:
    """Grade what a class hands in: a folder, zip or .py file per student.

    Each submission runs in a sandbox (bubblewrap): without network, in an empty
    home, with limits of time, memory, processes and files, which assignment.toml
    states. It gets inputs through a pipe and gives back tensors; what is expected,
    hidden checks and verdicts are in another process. OUT/index.html is the page
    of the class, OUT/students has a page per student, OUT/grades.csv the points,
    OUT/gradescope a results.json per student. A second call grades only what is
    new or was changed.

    Examples:
      heedful course grade submissions a1 --out grades
      heedful course grade submissions a1 --jobs 1 --again

    Parameters
    ----------
    submissions
        A folder with a folder, zip or .py file per student.
    folder
        The teacher's folder of the assignment, which heedful course new has written.
    out
        Where the results are written; by default DIR/grades.
    jobs
        Submissions at the same time; by default one per core.
    no_sandbox
        Run the code without bubblewrap, with limits only: in a machine that you can throw away.
    again
        Grade all submissions again.
    gradescope
        Take SUBMISSIONS as a single submission, and write Gradescope's results.json to this file.
    json
        Print one JSON object.
    """
    from heedful.course.grade import grade_class, grade_for_gradescope
    from heedful.course.sandbox import warn_of_root

    if no_sandbox and (warning := warn_of_root()):
        print(f"heedful: {warning}", file=sys.stderr)
    if gradescope is not None:
        result = grade_for_gradescope(submissions, folder, gradescope, sandbox=not no_sandbox)
        console().print(f"{result.points:g} of {result.most:g} points", markup=False)
        return
    target = out or folder / "grades"
    if target.exists() and not target.is_dir():
        raise UserError(f"--out {target}: is a file; give a folder")
    grades = grade_class(submissions, folder, target, jobs=jobs, sandbox=not no_sandbox, again=again)
    troubled = [result for result in grades.results if result.problem or result.stopped]
    facts = {
        "submissions": len(grades.results),
        "graded now": grades.graded,
        "stopped or not graded": len(troubled),
        "similar pairs": len(grades.pairs),
        "page of the class": str(grades.page),
        "table": str(grades.table),
    }
    if json:
        points = {result.student: result.points for result in grades.results}
        print_json({**facts, "points": points, "most": grades.assignment.most})
        return
    if grades.others:
        names = ", ".join(one_line(name) for name in grades.others[:5])
        console().print(f"left out, because they are no folder, zip or .py file: {names}", markup=False)
    print_facts(grades.assignment.title, facts)
    for result in troubled:
        why = result.problem or result.stopped[0]
        console().print(f"  {one_line(result.student)}: {one_line(why)}", markup=False, soft_wrap=True)


def autograder(
    folder: Annotated[Path, Parameter(name="DIR")],
    /,
    *,
    out: Path = Path("autograder.zip"),
) -> None:
    """Write the zip that Gradescope takes as an autograder.

    It contains setup.sh, run_autograder, this version of Heedful, and the
    assignment without its solution. Upload it in Gradescope under "Configure
    Autograder"; choose a base image with Python 3.11 or newer.

    Examples:
      heedful course autograder a1 --out a1-autograder.zip

    Parameters
    ----------
    folder
        The teacher's folder of the assignment.
    out
        The name of the zip file.
    """
    from heedful.course.assignment import Assignment
    from heedful.course.gradescope import write_autograder

    path = write_autograder(Assignment(folder), out)
    size = path.stat().st_size / 2**20
    console().print(f"written: {one_line(str(path))} ({size:.1f} MiB)", markup=False, soft_wrap=True)
