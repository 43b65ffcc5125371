"""Checks a student's file against a suite, and names the mistake when it is a known one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.contracts.subject import Subject, SubjectError
from heedful.contracts.suite import SUITES, Suite, judge
from heedful.contracts.verdicts import Verdict
from heedful.course.bugs import Bug, name_mistake
from heedful.course.subject import ChildLimits, ChildSubject


def run_suite(
    name: str | Suite,
    subject: Subject,
    *,
    claims: Iterable[str] | None = None,
    on_verdict: Callable[[Verdict], Any] | None = None,
) -> list[Verdict]:
    """Check a subject against a suite, and name the known mistake whose outputs it has.

    The mistake is looked for when the first claim is broken, and stands in the verdict of every broken claim.
    """
    suite = SUITES.find(name) if isinstance(name, str) else name
    subject = suite.wrap(subject)
    searched: list[Bug | None] = []

    def name_it(verdict: Verdict) -> Verdict:
        if verdict.status != "failed":
            return verdict
        if not searched:
            searched.append(name_mistake(suite, subject))
        if (bug := searched[0]) is None:
            return verdict
        return replace(verdict, mistake=bug.name, hint=f"{bug.sentence} {bug.hint}")

    verdicts = []
    for claim in suite.select(claims):
        verdicts.append(name_it(judge(claim, subject)))
        if on_verdict is not None:
            on_verdict(verdicts[-1])
    return verdicts


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
