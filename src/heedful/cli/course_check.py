"""`heedful course check`: check a file of a student's own code."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.text import Text

from heedful.cli.check import STATUS_FAILED
from heedful.cli.output import Json, console, print_json
from heedful.errors import UserError, one_line

STYLES = {"passed": "green", "failed": "bold red", "error": "bold red", "not applicable": "dim"}
SHOWN_VALUE = 400
"""Characters of a counterexample's value that are printed; --json has all of it."""


def command(
    file: Path,
    /,
    *,
    suite: Annotated[str, Parameter(name="--as")],
    claim: Annotated[list[str] | None, Parameter(name="--claim", negative=())] = None,
    json: Json = False,
) -> int:
    """Check a file of your own code against the contracts of what it should be.

    The function or class is found by its usual names, or through an adapters.py
    beside the file, whose functions are called like the operations of the suite
    (docs/contracts.md). The file runs in a process of its own. For each claim
    that is broken the smallest input that breaks it is shown, and the name of the
    mistake if it is a known one. The exit status is 1 if a claim is broken.

    Examples:
      heedful course check my_attention.py --as attention
      heedful course check lora.py --as lora --json
      heedful course check gpt.py --as gpt --claim causality
      heedful course check attention.py --as assignment.toml
      heedful list suites

    Parameters
    ----------
    file
        A Python file.
    suite
        A suite (attention, bert, gpt, lora, ...; heedful list suites), or an assignment.toml.
    claim
        Check only the claim with this name; can be repeated.
    json
        Print one JSON object.
    """
    from heedful.contracts.suite import SUITES
    from heedful.course.check import check_file

    if not file.is_file():
        raise UserError(f"{file}: there is no such file")
    if suite.endswith(".toml") or "/" in suite or Path(suite).is_dir():
        if claim:
            raise UserError("--claim is for one suite; an assignment has several")
        return check_points(file, Path(suite), json)
    about = SUITES.find(suite).about
    if not SUITES.find(suite).claims:
        raise UserError(f"--as {suite}: its claims come with an assignment; use --as assignment.toml")
    verdicts = check_file(file, suite, claims=claim)
    failed = [v for v in verdicts if not v.passed]
    if json:
        print_json(
            {
                "file": str(file),
                "as": suite,
                "passed": not failed,
                "verdicts": [to_facts(v) for v in verdicts],
            }
        )
    else:
        out = console()
        out.print(Text(f"{file} as {suite}: {about}", style="bold"))
        print_verdicts(out, verdicts)
        checked = [v for v in verdicts if v.status != "not applicable"]
        out.print(summarize(len(checked), len(failed)), markup=False)
    return STATUS_FAILED if failed else 0


def summarize(checked: int, failed: int) -> str:
    """Return the last line."""
    return f"{checked - failed} of {checked} claims hold" + ("" if failed else ": well done")


def check_points(file: Path, path: Path, json: bool) -> int:
    """Check a file against an assignment, and print its points."""
    from heedful.course.assignment import Assignment
    from heedful.course.check import check_assignment
    from heedful.course.scoring import add_points

    assignment = Assignment(path)
    scores = check_assignment(file, assignment)
    points, most = add_points(scores), assignment.most
    if json:
        facts = [to_facts(score) for score in scores]
        print_json({"file": str(file), "as": str(path), "points": points, "most": most, "criteria": facts})
    else:
        out = console()
        out.print(Text(f"{file}: {assignment.title}", style="bold"))
        for score in scores:
            full = score.points == score.most
            title = f"{score.name}: {score.points:g} of {score.most:g} points"
            out.print(Text(title, style="green" if full else "bold red"))
            print_verdicts(out, score.verdicts)
        out.print(f"{points:g} of {most:g} points" + (": well done" if points == most else ""), markup=False)
    return STATUS_FAILED if points < most else 0


def print_verdicts(out: Any, verdicts: Sequence[Any]) -> None:
    """Print verdicts; what has the same reason is printed once, because one line of code often breaks all."""
    for reason, group in groupby(verdicts, key=lambda v: (v.status, v.message, v.hint)):
        same = list(group)
        if len(same) == 1 or reason[0] == "passed":
            for verdict in same:
                print_verdict(out, verdict)
            continue
        out.print(
            Text(f"  {reason[0]:<15}", style=STYLES[reason[0]]),
            Text(f"{len(same)} claims ({', '.join(v.claim for v in same)}): {one_line(reason[1])}"),
        )
        if reason[0] != "not applicable" and reason[2]:
            out.print(Text(f"      hint: {one_line(reason[2])}"))


def print_verdict(out: Any, verdict: Any) -> None:
    """Print a verdict, and below a broken claim what broke it."""
    out.print(
        Text(f"  {verdict.status:<15}", style=STYLES[verdict.status]),
        Text(f"{verdict.claim}: {one_line(verdict.message or verdict.sentence)}"),
    )
    if verdict.passed:
        return
    details = {"claim": verdict.sentence, "mistake": verdict.mistake, "hint": verdict.hint}
    if (example := verdict.counterexample) is not None:
        details |= {**example.inputs, "your output": example.got, "expected": example.expected}
    for name, value in details.items():
        if value not in ("", None):
            text = textwrap.shorten(one_line(str(value)), SHOWN_VALUE, placeholder=" ...")
            out.print(Text(f"      {name}: {text}", style="dim" if name == "claim" else ""))


def to_facts(verdict: Any) -> dict[str, Any]:
    """Return a verdict as JSON."""
    from heedful.runs.files import to_json_value

    facts: dict[str, Any] = to_json_value(verdict)
    return facts
