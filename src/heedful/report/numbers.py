"""How numbers are written in tables: enough digits to compare, no more."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any


def is_number(value: Any) -> bool:
    """Tell numbers from everything else; True and False are words."""
    return isinstance(value, Real) and not isinstance(value, bool)


def show(value: Any) -> str:
    """Write one number."""
    return column_form([value])(value)


def column_form(values: Sequence[Any]) -> Callable[[Any], str]:
    """Choose how to write the numbers of a column, so that they can be compared by eye."""
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
