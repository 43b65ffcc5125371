"""How numbers, durations and lists are written: enough digits to compare, no more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any


def is_number(value: Any) -> bool:
    """Whether a value is a number; True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool)


def format_number(value: Any) -> str:
    return choose_format([value])(value)


def choose_format(values: Sequence[Any]) -> Callable[[Any], str]:
    """Choose one format for the numbers of a column, so that they can be compared by eye."""
    finite = [float(v) for v in values if math.isfinite(v)]
    if all(v == int(v) for v in finite):
        return lambda v: f"{int(v):,}" if math.isfinite(v) else f"{v}"
    small = min((abs(v) for v in finite if v), default=1.0)
    large = max((abs(v) for v in finite), default=1.0)
    if small < 1e-3:
        return lambda v: f"{v:.4g}"
    most = 4 if large < 10 else 2 if large < 1000 else 1
    digits = next((d for d in range(1, most) if all(v == round(v, d) for v in finite)), most)
    return lambda v: f"{v:,.{digits}f}"


def format_p(p: float) -> str:
    """Format a p value with its relation, to follow the letter p: "= 0.032"."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def format_estimate(count: int) -> str:
    digits = max(0, len(str(count)) - 2)
    return f"{round(count, -digits):,}"


def format_duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def join_names(names: Sequence[str]) -> str:
    """Join names for a sentence: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def capitalize(text: str) -> str:
    """Return a text with its first letter in upper case and the rest unchanged: "Macro F1"."""
    return text[:1].upper() + text[1:]


def with_article(noun: str) -> str:
    """Return a noun with its article, also where it is a name of letters: "an AUROC", "an F1 of spam"."""
    first = noun.split()[0] if noun.split() else ""
    spelled = first[:1] in "FHLMNRSX" and (first.isupper() or any(c.isdigit() for c in first))
    return f"{'an' if first[:1].lower() in tuple('aeio') or spelled else 'a'} {noun}"
