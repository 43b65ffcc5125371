"""What the pages of a class and of a student share: templates, numbers and values as text."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from heedful.report.theme import DEFAULT, write_css_variables

if TYPE_CHECKING:
    from jinja2 import Environment

LONGEST_VALUE = 1200
WIDE = 88
"""Characters of a line of numbers."""


@cache
def make_environment() -> Environment:
    """Return the environment of the templates; everything that is put into a page is escaped."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    def read(name: str) -> str:
        return (files("heedful.course") / "templates" / name).read_text(encoding="utf-8")

    environment = Environment(
        autoescape=True,
        loader=FunctionLoader(read),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["points"] = show_points
    environment.filters["value"] = show_value
    environment.globals["style"] = read_style()
    return environment


def read_style() -> Any:
    from markupsafe import Markup

    css = (files("heedful.course") / "templates" / "course.css").read_text(encoding="utf-8")
    css = css.replace("/* LIGHT */", write_css_variables(DEFAULT.light))
    css = css.replace("/* DARK */", write_css_variables(DEFAULT.dark)).replace("/* FONT */", DEFAULT.font)
    return Markup(css)


def show_points(value: float) -> str:
    return f"{round(value, 2):g}"


def show_value(value: Any) -> str:
    """Return a value of a counterexample as text, a matrix row by row."""
    text = write_value(value, 0)
    return text if len(text) <= LONGEST_VALUE else text[:LONGEST_VALUE] + " ..."


def write_value(value: Any, depth: int) -> str:
    if isinstance(value, str):
        return value
    text = json.dumps(value, ensure_ascii=False, default=str)
    if (
        not isinstance(value, list)
        or len(text) + depth <= WIDE
        or not any(isinstance(x, list) for x in value)
    ):
        return text
    rows = (",\n" + " " * (depth + 1)).join(write_value(row, depth + 1) for row in value)
    return f"[{rows}]"
