"""`heedful course check`: check a file of a student's own code."""

from __future__ import annotations

import textwrap
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
      heedful list suites

    Parameters
    ----------
    file
        A Python file.
    suite
        What the file implements: attention, bert, gpt, lora, ... (heedful list suites).
    claim
        Check only the claim with this name; can be repeated.
    json
        Print one JSON object.
    """
    from heedful.contracts.suite import SUITES
    from heedful.course.check import check_file

    if not file.is_file():
        raise UserError(f"{file}: there is no such file")
    about = SUITES.find(suite).about
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
        for verdict in verdicts:
            print_verdict(out, verdict)
        checked = [v for v in verdicts if v.status != "not applicable"]
        out.print(summarize(len(checked), len(failed)), markup=False)
    return STATUS_FAILED if failed else 0


def summarize(checked: int, failed: int) -> str:
    """Return the last line."""
    return f"{checked - failed} of {checked} claims hold" + ("" if failed else ": well done")


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
