"""Checks a student's file against a suite, and names the mistake when it is a known one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from heedful.contracts.subject import Subject, SubjectError
from heedful.contracts.suite import SUITES, Suite, check_subject
from heedful.contracts.verdicts import Verdict
from heedful.course.subject import ChildLimits, ChildSubject


def run_suite(
    name: str | Suite,
    subject: Subject,
    *,
    claims: Iterable[str] | None = None,
    on_verdict: Callable[[Verdict], Any] | None = None,
) -> list[Verdict]:
    """Check a subject against a suite, and name the known mistake whose outputs it has."""
    return check_subject(name, subject, claims=claims, on_verdict=on_verdict)


def check_file(
    file: Path,
    name: str,
    *,
    claims: Iterable[str] | None = None,
    prefix: Sequence[str] = (),
    limits: ChildLimits | None = None,
    on_verdict: Callable[[Verdict], Any] | None = None,
) -> list[Verdict]:
    """Check a student's file in a child process.

    A file that cannot be imported has an error as the verdict of every claim; a file without anything that
    the suite is about is a `UserError`.
    """
    suite = SUITES.find(name)
    chosen = suite.select(claims)
    try:
        with ChildSubject(file, name, prefix=prefix, limits=limits) as subject:
            return run_suite(suite, subject, claims=claims, on_verdict=on_verdict)
    except SubjectError as error:
        verdicts = [
            Verdict(claim.name, claim.sentence, "error", f"{file.name} cannot be imported: {error}",
                    "; ".join(error.lines))
            for claim in chosen
        ]  # fmt: skip
        if on_verdict is not None:
            for verdict in verdicts:
                on_verdict(verdict)
        return verdicts
