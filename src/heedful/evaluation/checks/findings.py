"""How the findings of checks are written, and the summary in the last line of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from heedful.errors import shorten
from heedful.runs.schemas import FINDINGS, Check, summarize_check

SEVERITY = tuple(FINDINGS)
FIRST_PART = re.compile(r'(?:"[^"]*"|(?!; ).)+')
"""Matches the first part of a sentence; a semicolon inside quotes does not end it."""


def percent(share: float) -> str:
    """Format a share; only 1 is written as 100 % and only 0 as 0 %."""
    digits = f"{100 * share:.1f}".removesuffix(".0")
    if digits == "100" and share < 1:
        return "over 99.9 %"
    if digits == "0" and share > 0:
        return "under 0.1 %"
    return f"{digits} %"


def quote(text: str, width: int = 40) -> str:
    return f'"{shorten(" ".join(text.split()), width)}"'


def summarize(checks: Iterable[Check]) -> str:
    """Return the most serious finding in full and the others in short, for the last line of a run."""
    checks = list(checks)
    findings = sorted(
        (check for check in checks if check.status in ("failed", "warning")),
        key=lambda check: (check.status != "failed", severity_rank(check)),
    )
    if not findings:
        passed = sum(check.status == "passed" for check in checks)
        return f"{passed} check{'s' * (passed != 1)} passed" if passed else "nothing was checked"
    worst, *others = findings
    first = FIRST_PART.match(worst.message)
    summary = first[0].rstrip(".") if first else worst.name
    summary = summary if summary[1:2].isupper() else summary[:1].lower() + summary[1:]
    more = ", ".join(summarize_check(check.name) for check in others)
    return f"{summary} (also: {more})" if more else summary


def severity_rank(check: Check) -> int:
    return SEVERITY.index(check.name) if check.name in SEVERITY else len(SEVERITY)
