"""What a topic of the lab returns, and the list of topics. Importing this module does not import torch.

A topic is one function in `heedful.lab.topics.NAME`, also called NAME. Its signature and its docstring are
the only list of its options: the command line is made from them. Options that mean the same in many topics
are described once, in `COMMON_OPTIONS`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from heedful.display import render_lines, render_table, render_title
from heedful.errors import unknown
from heedful.report.charts.vega import Chart
from heedful.runs.answers import Table as Table
from heedful.runs.files import to_json_value

R = TypeVar("R")
Value = float | np.floating[Any]
Vectors = Annotated[npt.ArrayLike, "vectors, one per row"]
"""An option that takes several vectors; on the command line a .npy file, or numbers like 1,0;0,1."""
Vector = Annotated[npt.ArrayLike, "one vector"]
COMMON_OPTIONS = {
    "values": "As many vectors as keys. By default generated.",
    "scale": "Factor by which scores are multiplied.",
    "eps": "The weight that may stay with the other keys.",
    "size": "Generate this many keys instead of the example.",
    "width": "Number of components of generated vectors.",
    "seed": "Seed of everything random.",
}
"""Descriptions of options that mean the same in many topics, unless a topic's docstring has its own."""


@dataclass(frozen=True)
class Number:
    """A number and the condition that it must meet; without a condition it decides nothing."""

    name: str
    value: float
    condition: str = ""
    holds: bool | None = None


def fact(name: str, value: Value) -> Number:
    return Number(name, float(value))


def at_most(name: str, value: Value, limit: Value) -> Number:
    """Return a number that must not be larger than the limit; NaN fails."""
    return Number(name, float(value), f"at most {limit:.6g}", float(value) <= float(limit))


def at_least(name: str, value: Value, limit: Value) -> Number:
    return Number(name, float(value), f"at least {limit:.6g}", float(value) >= float(limit))


def near(name: str, value: Value, target: Value, tolerance: Value) -> Number:
    holds = abs(float(value) - float(target)) <= float(tolerance)
    return Number(name, float(value), f"{target:.6g} within {tolerance:.2g}", holds)


def exactly(name: str, value: Value, target: Value) -> Number:
    """Return a number that must equal the target to the last bit."""
    return Number(name, float(value), f"exactly {target:.6g}", float(value) == float(target))


@dataclass(frozen=True)
class Finding(Generic[R]):
    """What a topic shows: a claim, how it is constructed, the numbers that verify it, and a figure.

    `results`, a dataclass, holds the topic's own numbers and vectors, typed, for further use in Python.
    """

    topic: str
    claim: str
    construction: tuple[str, ...]
    """Formulas, with the scale of the scores."""
    numbers: tuple[Number, ...]
    results: R
    figure: Chart
    tables: tuple[Table, ...] = ()
    interactive: Chart | None = None
    """An interactive figure: it comes first on the page, and is nowhere else."""

    @property
    def conditions(self) -> tuple[Number, ...]:
        return tuple(n for n in self.numbers if n.holds is not None)

    @property
    def failed(self) -> tuple[Number, ...]:
        return tuple(n for n in self.conditions if not n.holds)

    @property
    def passed(self) -> bool:
        """Whether there are conditions and all of them hold."""
        return bool(self.conditions) and not self.failed

    def verdict(self) -> tuple[str, str]:
        """Return `passed` or `FAILED`, and how many of the conditions hold."""
        n = len(self.conditions)
        return "passed" if self.passed else "FAILED", f"{n - len(self.failed)} of {n}"

    def facts(self) -> dict[str, Any]:
        """Return everything but the figure and long samples (fields of `results` with repr=False)."""
        results: Any = self.results
        long = [f.name for f in fields(results) if not f.repr]
        return {
            "topic": self.topic,
            "claim": self.claim,
            "construction": list(self.construction),
            "passed": self.passed,
            "numbers": [
                {"name": n.name, "value": to_json_value(n.value)}
                | {"condition": n.condition or None, "holds": n.holds}
                for n in self.numbers
            ],
            "tables": [to_json_value({"title": t.title, **vars(t)}) for t in self.tables],
            "results": {n: value for n, value in to_json_value(results).items() if n not in long},
        }

    def _repr_html_(self) -> str:
        from heedful.report.notebook import render_picture

        verdict, count = self.verdict()
        columns = ("number", "value", "condition", "holds")
        rows = [(n.name, format_value(n.value), n.condition, describe_condition(n)) for n in self.numbers]
        return "".join([
            render_title(f"{self.topic}: {self.claim}"),
            render_lines(self.construction),
            render_picture(self.figure),
            render_table(columns, rows),
            *(table._repr_html_() for table in self.tables),
            render_lines([f"{verdict}: {count} conditions hold"], "good" if self.passed else "bad"),
        ])  # fmt: skip

    def draw(self, path: str | Path) -> Path:
        """Write the figure as PNG, SVG or PDF; as HTML it is a page with the claim and the numbers too."""
        from heedful.report.charts.images import check_extension, save_chart

        target = Path(path)
        if check_extension(target) != ".html":
            return save_chart(self.figure, target)
        from heedful.report.page import Page

        page = Page(f"{self.topic}: {self.claim}", summary="passed" if self.passed else "failed")
        if self.interactive is not None:
            page.figure(self.interactive)
        page.figure(self.figure)
        page.section("Construction")
        page.text(*self.construction)
        page.section("Numbers")
        rows = [(n.name, format_value(n.value), n.condition, describe_condition(n)) for n in self.numbers]
        page.table(("number", "value", "condition", "holds"), rows)
        for table in self.tables:
            page.table(table.columns, table.rows, caption=table.title)
        return page.write(target)


def describe_condition(number: Number) -> str:
    return "" if number.holds is None else "yes" if number.holds else "NO"


def format_value(value: Any) -> str:
    """Format a number with enough digits to compare it; also vectors and words."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence) or (isinstance(value, np.ndarray) and value.ndim):
        return f"({', '.join(f'{float(v):.4g}' for v in value)})"
    number = float(value)
    if not math.isfinite(number):
        return f"{number}"
    if number == int(number) and abs(number) < 1e6:
        return f"{int(number)}"
    return f"{number:.3e}" if abs(number) < 1e-3 or abs(number) >= 1e6 else f"{number:.6g}"


@dataclass(frozen=True)
class Topic:
    """A topic with a line about it; its module is imported only when it is loaded."""

    name: str
    about: str
    in_all: Mapping[str, Any] = field(default_factory=dict)
    """Options when every topic is run: one that measures time keeps to a small range."""

    def load(self) -> Callable[..., Finding[Any]]:
        """Return the topic's function, its docstring completed by the common options."""
        module = import_module(f"heedful.lab.topics.{self.name}")
        topic: Callable[..., Finding[Any]] = getattr(module, self.name)
        text = inspect.cleandoc(topic.__doc__ or "")
        for name in inspect.signature(topic).parameters:
            if name in COMMON_OPTIONS and f"\n{name}\n    " not in text:
                text += f"\n{name}\n    {COMMON_OPTIONS[name]}"
        topic.__doc__ = text
        return topic


IN_ALL: Mapping[str, Mapping[str, Any]] = {
    "scaling": {"max_length": 2048, "mechanisms": ("softmax", "linformer", "bigbird", "performer")}
}
TOPICS: Mapping[str, Topic] = {
    name: Topic(name, about, IN_ALL.get(name, {}))
    for name, about in {
        "copy": "When attention copies one value: which queries do it, and how long they must be.",
        "argmax": "Hard attention: it selects one value, and its gradient to q and k is exactly zero.",
        "average": "When attention averages a chosen few: the query that does it, or why there is none.",
        "subspace": "How v_a is recovered from the average of v_a and v_b, each from a subspace of its own.",
        "noise": "Averaging with noisy keys: the window of beta for one head, and why two heads are safer.",
        "kqv": "What K, Q and V are good for: outputs that x alone can never give, from outer products.",
        "masking": "Four ways to mask the future, and how much it still changes the past under each.",
        "scaling": "Time and memory of every mechanism against length, forward and backward, causal and not.",
        "approximation": "What Performer, Linformer and BigBird leave out, and what that costs.",
        "heads": "What each head of a model attends to in your text, and what changes without it.",
    }.items()
}


def find_topic(name: str) -> Topic:
    """Return the topic called `name`; the error about an unknown one lists the nearest."""
    if name not in TOPICS:
        raise unknown("topic", name, TOPICS)
    return TOPICS[name]
