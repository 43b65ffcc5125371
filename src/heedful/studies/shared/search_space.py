"""What a search goes through: lists of values, and ranges to draw from."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, product
from typing import Any

from heedful.data.random import stream
from heedful.errors import UserError, shorten
from heedful.methods.registry import METHODS

Value = str | int | float
KINDS: dict[str, type[str] | type[int] | type[float]] = {
    "method": str,
    "batch_size": int,
    "lr": float,
    "epochs": int,
}
"""What can be searched, in the order of a grid's loops, and what its values are."""
FACTORS = (0.3, 1.0, 3.0)
"""Times a method's usual learning rate, where none is given."""
DIGITS = 3
"""Of a learning rate that is drawn: more would only make it hard to read."""


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, both included; learning rates are drawn from its logarithm."""

    low: float
    high: float


Axis = tuple[Value, ...] | Range


def read_axis(name: str, text: str) -> Axis:
    """Read `5,7,9` or `2e-5:8e-5`."""
    option, kind = "--" + name.replace("_", "-"), KINDS[name]
    low, colon, high = text.partition(":")
    if colon and kind is not str:
        ends = (number(option, kind, low), number(option, kind, high))
        if not ends[0] < ends[1]:
            raise UserError(f"{option} {shorten(text)}: the first end of a range must be below the second")
        return Range(*ends)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise UserError(f"{option}: takes values such as {'head,lora' if kind is str else '5,7,9'}")
    values: list[Value] = [part if kind is str else number(option, kind, part) for part in parts]
    return tuple(dict.fromkeys(values))


def number(option: str, kind: type[Any], text: str) -> int | float:
    """Read one number above zero."""
    try:
        value: int | float = kind(text)
    except ValueError:
        what = "whole number" if kind is int else "number"
        raise UserError(f'{option}: "{shorten(text)}" is not a {what}') from None
    if not value > 0 or not math.isfinite(value):
        raise UserError(f"{option} {shorten(text)}: must be above 0")
    return value


def read_space(texts: Mapping[str, str], *, ranges: bool) -> dict[str, Axis]:
    """Read all axes. Without a learning rate it is left out: it depends on the method."""
    space = {name: read_axis(name, texts[name]) for name in KINDS if texts.get(name)}
    for name, axis in space.items():
        if isinstance(axis, Range) and not ranges:
            option = "--" + name.replace("_", "-")
            raise UserError(
                f"{option} {texts[name]}: a range belongs to --random or --tpe; a grid takes a list"
            )
    return space


def usual_rates(method: Any) -> tuple[float, ...]:
    """Learning rates around what suits a method."""
    return tuple(
        float(f"{factor * METHODS.find(str(method)).learning_rate:.{DIGITS}g}") for factor in FACTORS
    )


def grid(space: Mapping[str, Axis]) -> list[dict[str, Value]]:
    """Every combination, epochs innermost."""
    found: list[dict[str, Value]] = []
    outer = [axis for name, axis in space.items() if name not in ("lr", "epochs") and isinstance(axis, tuple)]
    names = [name for name in space if name not in ("lr", "epochs")]
    for values in product(*outer):
        chosen = dict(zip(names, values, strict=True))
        rates = space.get("lr") or usual_rates(chosen["method"])
        assert isinstance(rates, tuple)
        counts = space["epochs"]
        assert isinstance(counts, tuple)
        found += [{**chosen, "lr": rate, "epochs": n} for rate in rates for n in sorted(counts)]
    return found


def drawable(space: Mapping[str, Axis]) -> dict[str, Axis]:
    """A space to draw from: a learning rate that is not given is a range around the method's own."""
    if "lr" in space:
        return dict(space)
    names = space["method"]
    if not isinstance(names, tuple) or len(names) > 1:
        raise UserError("--lr: several methods need a range of learning rates, such as 1e-5:1e-3")
    rates = usual_rates(names[0])
    return {**space, "lr": Range(rates[0], rates[-1])}


def draw(space: Mapping[str, Axis], seed: int, trial: int) -> dict[str, Value]:
    """One draw: values of a list alike, learning rates alike in their logarithm."""
    rng = stream(seed, "trial", trial)
    found: dict[str, Value] = {}
    for name in KINDS:
        axis, share = space[name], float(rng.random())
        if isinstance(axis, tuple):
            found[name] = axis[int(share * len(axis))]
        elif KINDS[name] is int:
            found[name] = int(axis.low) + int(share * (int(axis.high) - int(axis.low) + 1))
        else:
            found[name] = rounded(axis.low * (axis.high / axis.low) ** share)
    return found


def draws(space: Mapping[str, Axis], seed: int) -> Iterator[dict[str, Value]]:
    """Draw after draw; of lists none twice, until all of their combinations are drawn.

    From a range of learning rates there is always another draw, though two may be rounded to the same one.
    """
    found: list[dict[str, Value]] = []
    most = combinations(space)
    for trial in count():
        if len(found) == most:
            return
        one = draw(space, seed, trial)
        if most == math.inf or one not in found:
            found.append(one)
            yield one


def combinations(space: Mapping[str, Axis]) -> float:
    """How many different draws there are; of a range of learning rates no end."""
    sizes = [
        len(axis) if isinstance(axis, tuple)
        else int(axis.high) - int(axis.low) + 1 if KINDS[name] is int
        else math.inf
        for name, axis in space.items()
    ]  # fmt: skip
    return math.prod(sizes)


def offered(space: Mapping[str, Axis]) -> list[str]:
    """The names that have more than one value to choose from."""
    return [name for name in KINDS if name in space and combinations({name: space[name]}) > 1]


def rounded(rate: float) -> float:
    """A learning rate with few digits."""
    return float(f"{rate:.{DIGITS}g}")


def varied(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names whose values differ, in the order of a grid's loops."""
    return [name for name in KINDS if len({s.get(name) for s in settings}) > 1]


def name_of(settings: Mapping[str, Any], names: Sequence[str]) -> str:
    """A folder's name for a cell of a grid."""
    parts = [f"{name}={settings[name]:g}" if name == "lr" else f"{name}={settings[name]}" for name in names]
    return ",".join(parts) or "run"
