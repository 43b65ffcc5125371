"""The space of settings that a search tries: lists of values, and ranges to draw from."""

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
KINDS: dict[str, type[Value]] = {"method": str, "batch_size": int, "lr": float, "epochs": int}
"""The settings that can be searched, in the order of a grid's loops, and the types of their values."""
FACTORS = (0.3, 1.0, 3.0)
"""Factors of a method's usual learning rate, where no rate is given."""
DIGITS = 3
"""Significant digits of a drawn learning rate: more would only make it hard to read."""


@dataclass(frozen=True)
class Range:
    """From `low` to `high`, both included; learning rates are drawn from its logarithm."""

    low: float
    high: float


Axis = tuple[Value, ...] | Range


def read_axis(name: str, text: str) -> Axis:
    """Parse `5,7,9` or `2e-5:8e-5`."""
    option, kind = "--" + name.replace("_", "-"), KINDS[name]
    low, colon, high = text.partition(":")
    if colon and kind is not str:
        ends = (read_number(option, kind, low), read_number(option, kind, high))
        if not ends[0] < ends[1]:
            raise UserError(f"{option} {shorten(text)}: the first end of a range must be below the second")
        return Range(*ends)
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts:
        raise UserError(f"{option}: takes values such as {'head,lora' if kind is str else '5,7,9'}")
    values: list[Value] = [part if kind is str else read_number(option, kind, part) for part in parts]
    return tuple(dict.fromkeys(values))


def read_number(option: str, kind: type[Any], text: str) -> int | float:
    try:
        value: int | float = kind(text)
    except ValueError:
        what = "whole number" if kind is int else "number"
        raise UserError(f'{option}: "{shorten(text)}" is not a {what}') from None
    if not value > 0 or not math.isfinite(value):
        raise UserError(f"{option} {shorten(text)}: must be above 0")
    return value


def read_space(texts: Mapping[str, str], *, ranges: bool) -> dict[str, Axis]:
    """Parse all axes. A learning rate that is not given is left out: it depends on the method."""
    space = {name: read_axis(name, texts[name]) for name in KINDS if texts.get(name)}
    for name, axis in space.items():
        if isinstance(axis, Range) and not ranges:
            option = "--" + name.replace("_", "-")
            raise UserError(f"{option} {texts[name]}: a range needs --random or --tpe; a grid takes a list")
    return space


def usual_rate(method: str, model: str) -> float:
    """Return the learning rate that a run chooses for a method and a model; wider models get a lower one."""
    from heedful.checkpoints.reader import read_model_config
    from heedful.training.build.model import starts_from_scratch
    from heedful.training.build.settings import fixed_learning_rate

    kind = METHODS.find(method)
    if kind.usual_width is None:
        return kind.learning_rate
    if starts_from_scratch(model):
        return fixed_learning_rate(method)
    try:
        width = read_model_config(model).d_model
    except UserError:  # reported where the model is loaded
        return kind.learning_rate
    return kind.learning_rate_for(width)


def usual_rates(method: str, model: str) -> tuple[float, ...]:
    rate = usual_rate(method, model)
    return tuple(round_rate(factor * rate) for factor in FACTORS)


def list_grid(space: Mapping[str, Axis], model: str) -> list[dict[str, Value]]:
    """Return every combination, epochs innermost."""
    cells: list[dict[str, Value]] = []
    lists = {name: axis for name, axis in space.items() if isinstance(axis, tuple)}
    names = [name for name in lists if name not in ("lr", "epochs")]
    for values in product(*(lists[name] for name in names)):
        chosen = dict(zip(names, values, strict=True))
        rates = lists.get("lr") or usual_rates(str(chosen["method"]), model)
        cells += [{**chosen, "lr": rate, "epochs": n} for rate in rates for n in sorted(lists["epochs"])]
    return cells


def fill_rates(space: Mapping[str, Axis], model: str) -> dict[str, Axis]:
    """Return the space with a range of learning rates around the method's usual one, where none is given."""
    if "lr" in space:
        return dict(space)
    names = space["method"]
    if not isinstance(names, tuple) or len(names) > 1:
        raise UserError("--lr: several methods need a range of learning rates, such as 1e-5:1e-3")
    rates = usual_rates(str(names[0]), model)
    return {**space, "lr": Range(rates[0], rates[-1])}


def draw(space: Mapping[str, Axis], seed: int, trial: int) -> dict[str, Value]:
    """Draw once: uniformly from a list, learning rates uniformly in their logarithm."""
    rng = stream(seed, "trial", trial)
    drawn: dict[str, Value] = {}
    for name in KINDS:
        axis, share = space[name], float(rng.random())
        if isinstance(axis, tuple):
            drawn[name] = axis[int(share * len(axis))]
        elif KINDS[name] is int:
            drawn[name] = int(axis.low) + int(share * (int(axis.high) - int(axis.low) + 1))
        else:
            drawn[name] = round_rate(axis.low * (axis.high / axis.low) ** share)
    return drawn


def draw_distinct(space: Mapping[str, Axis], seed: int) -> Iterator[dict[str, Value]]:
    """Draw until all combinations of the lists have been drawn, none of them twice.

    A range of learning rates always has another draw, though two may be rounded to the same rate.
    """
    drawn: list[dict[str, Value]] = []
    most = count_combinations(space)
    for trial in count():
        if len(drawn) == most:
            return
        one = draw(space, seed, trial)
        if most == math.inf or one not in drawn:
            drawn.append(one)
            yield one


def count_combinations(space: Mapping[str, Axis]) -> float:
    """Return how many different draws there are; infinitely many from a range of learning rates."""
    sizes = [
        len(axis) if isinstance(axis, tuple)
        else int(axis.high) - int(axis.low) + 1 if KINDS[name] is int
        else math.inf
        for name, axis in space.items()
    ]  # fmt: skip
    return math.prod(sizes)


def searched_names(space: Mapping[str, Axis]) -> list[str]:
    return [name for name in KINDS if name in space and count_combinations({name: space[name]}) > 1]


def round_rate(rate: float) -> float:
    return float(f"{rate:.{DIGITS}g}")


def varied_names(settings: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the names whose values differ, in the order of a grid's loops."""
    return [name for name in KINDS if len({s.get(name) for s in settings}) > 1]


def name_cell(settings: Mapping[str, Any], names: Sequence[str]) -> str:
    parts = [f"{name}={settings[name]:g}" if name == "lr" else f"{name}={settings[name]}" for name in names]
    return ",".join(parts) or "run"
