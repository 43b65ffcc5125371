"""A count of parameters as a formula in d = d_model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable


def polynomial(shapes: Iterable[tuple[int, ...]], d: int, tables: Iterable[tuple[int, ...]] = ()) -> str:
    """The sum of the sizes of tensors: a side that is k times d counts as k d, any other as a number.

    Where only several sides together are, as heads and their width, these count as k d. The rows of `tables`,
    as of embeddings or of a prompt, are a number, though it may happen to be a multiple of d.
    """
    coefficients: Counter[int] = Counter()
    for shape, widths in [*((s, s) for s in shapes), *((s, s[1:]) for s in tables)]:
        power = sum(side % d == 0 for side in widths)
        if power == 0 and len(shape) > 1 and math.prod(shape) % d == 0:
            power = 1
        coefficients[power] += math.prod(shape) // d**power
    terms = [term(coefficients[power], power) for power in sorted(coefficients, reverse=True)]
    return " + ".join(terms) or "0"


def term(coefficient: int, power: int) -> str:
    """Format one term, as `130 d`, `d^2` or `2`."""
    symbol = {0: "", 1: "d"}.get(power, f"d^{power}")
    if not symbol:
        return f"{coefficient:,}"
    return symbol if coefficient == 1 else f"{coefficient:,} {symbol}"
