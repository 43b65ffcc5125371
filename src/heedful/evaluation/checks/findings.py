"""How findings are written, and which of them stands in the last line of a run."""

from __future__ import annotations

import re
from collections.abc import Iterable

from heedful.errors import shorten
from heedful.runs.schemas import Check, in_short

SEVERITY = (
    "collapse",
    "causality",
    "reload",
    "tokenizer_fits",
    "labels_everywhere",
    "shared_texts",
    "warmup",
    "beats_bag_of_words",
    "beats_constant_answer",
    "evaluation_size",
    "dev_falls_while_train_rises",
    "truncation",
    "unknown_tokens",
    "shared_parts",
)
"""Among findings of equal status the first here is told: what makes the result void before what dims it."""
FIRST_PART = re.compile(r'(?:"[^"]*"|(?!; ).)+')
"""What was found, without why it matters; a semicolon inside a quoted label or text does not end it."""


def percent(share: float) -> str:
    """Write a share; only a whole is ever 100 % and only nothing is 0 %."""
    digits = f"{100 * share:.1f}".removesuffix(".0")
    if digits == "100" and share < 1:
        return "over 99.9 %"
    if digits == "0" and share > 0:
        return "under 0.1 %"
    return f"{digits} %"


def quote(text: str, width: int = 40) -> str:
    """Quote a label or a text from data."""
    return f'"{shorten(" ".join(text.split()), width)}"'


def summarize(checks: Iterable[Check]) -> str:
    """Give the most serious finding in words, and the others in short; for the last line of a run."""
    checks = list(checks)
    findings = sorted(
        (check for check in checks if check.status in ("failed", "warning")),
        key=lambda check: (check.status != "failed", severity_rank(check)),
    )
    if not findings:
        passed = sum(check.status == "passed" for check in checks)
        return f"{passed} check{'s' * (passed != 1)} passed" if passed else "nothing was checked"
    worst, *others = findings
    first = FIRST_PART.match(worst.found)
    told = first[0].rstrip(".") if first else worst.name
    told = told if told[1:2].isupper() else told[:1].lower() + told[1:]
    more = ", ".join(in_short(check.name) for check in others)
    return f"{told} (also: {more})" if more else told


def severity_rank(check: Check) -> int:
    """Give a check's place in the order of gravity."""
    return SEVERITY.index(check.name) if check.name in SEVERITY else len(SEVERITY)
