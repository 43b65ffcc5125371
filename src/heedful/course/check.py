"""Checks a student's file against a suite, and names the mistake when it is a known one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.contracts.subject import Subject, SubjectError
from heedful.contracts.suite import SUITES, Claim, Suite, judge
from heedful.contracts.verdicts import Verdict
from heedful.course.assignment import Assignment
from heedful.course.bugs import Bug, name_mistake
from heedful.course.scoring import CriterionScore, absent, check_suites, score_criteria
from heedful.course.subject import ChildLimits, ChildSubject
from heedful.errors import UserError


def run_suite(
    name: str | Suite,
    subject: Subject,
    *,
    claims: Iterable[str] | None = None,
    on_verdict: Callable[[Verdict], Any] | None = None,
    name_mistakes: bool = True,
) -> list[Verdict]:
    """Check a subject against a suite, and name the known mistake whose outputs it has.

    The mistake is looked for when the first claim is broken, and stands in the verdict of every broken claim.
    """
    suite = SUITES.find(name) if isinstance(name, str) else name
    subject = suite.wrap(subject)
    searched: list[Bug | None] = []

    def name_it(verdict: Verdict) -> Verdict:
        if verdict.status != "failed" or not name_mistakes:
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
    name: str | Suite,
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
    suite = SUITES.find(name) if isinstance(name, str) else name
    chosen = suite.select(claims)
    try:
        with ChildSubject(file, suite.name, prefix=prefix, limits=limits) as subject:
            return run_suite(suite, subject, claims=claims, on_verdict=on_verdict)
    except SubjectError as error:
        verdicts = repeat_error(chosen, error)
        if on_verdict is not None:
            for verdict in verdicts:
                on_verdict(verdict)
        return verdicts


def repeat_error(claims: Iterable[Claim], error: SubjectError) -> list[Verdict]:
    """Return an error as the verdict of every claim."""
    hint = "; ".join(error.lines)
    return [Verdict(claim.name, claim.sentence, "error", str(error), hint) for claim in claims]


def check_assignment(file: Path, assignment: Assignment) -> list[CriterionScore]:
    """Check a file against an assignment on this machine, without a sandbox, and give it its points."""

    def check(suite: Suite) -> list[Verdict]:
        try:
            return check_file(file, suite)
        except UserError as error:
            return absent(suite, error)

    return score_criteria(assignment, check_suites(assignment.list_suites(), check))
