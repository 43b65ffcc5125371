"""What was dragged and slid on the page Lab, checked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from heedful.errors import UserError, shorten
from heedful.lab.arrays import Array
from heedful.lab.vectors import check_vectors

MOST_VECTORS, MOST_COMPONENTS = 12, 16
MOST_CHARACTERS = 2000


class Settings:
    """The settings of a topic, each with its limits; a wrong one is a `UserError` that names it."""

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = params

    def number(self, name: str, default: float, least: float, most: float) -> float:
        value = self.params.get(name)
        if value is None or value == "":
            return default
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise UserError(f"{name} is a number, not {shorten(str(value), 20)}") from None
        if not (math.isfinite(number) and least <= number <= most):
            raise UserError(f"{name} is from {least:g} to {most:g}, not {number:g}")
        return number

    def whole(self, name: str, default: int, least: int, most: int) -> int:
        number = self.number(name, default, least, most)
        if number != int(number):
            raise UserError(f"{name} is a whole number, not {number:g}")
        return int(number)

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.params.get(name, default)
        return value in (True, 1, "1")

    def choice(self, name: str, choices: Sequence[str]) -> str:
        """Return one of the choices; the first is the default."""
        value = self.params.get(name) or choices[0]
        if value not in choices:
            raise UserError(f"{name} is one of {', '.join(choices)}, not {shorten(str(value), 20)}")
        return str(value)

    def text(self, name: str, default: str) -> str:
        value = self.params.get(name, default)
        if not isinstance(value, str) or len(value) > MOST_CHARACTERS:
            raise UserError(f"{name} is a text of at most {MOST_CHARACTERS:,} characters")
        return value

    def vectors(self, name: str, count: int | None = None, width: int | None = None) -> Array:
        rows = self.params.get(name)
        if not isinstance(rows, list):
            raise UserError(f"{name} is a table, one vector per row")
        vectors = check_vectors(name, rows, count=count, width=width)
        if len(vectors) > MOST_VECTORS or vectors.shape[1] > MOST_COMPONENTS:
            raise UserError(f"{name}: at most {MOST_VECTORS} vectors of {MOST_COMPONENTS} components")
        return vectors

    def numbers(self, name: str) -> tuple[int, ...]:
        """Return whole numbers, such as those of the chosen keys."""
        values = self.params.get(name)
        if not isinstance(values, list) or not all(type(value) is int for value in values):
            raise UserError(f"{name} is a list of whole numbers")
        return tuple(values)
