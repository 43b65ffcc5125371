"""A topic as a page plays with it: its own finding, the command that prints it, and what figures show."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from heedful.errors import UserError
from heedful.lab.base import Finding, find_topic, format_value
from heedful.report.charts.vega import Chart
from heedful.runs.files import to_json_value
from heedful.studio.work.lab.settings import Settings

if TYPE_CHECKING:
    from heedful.studio.model_store import ModelStore
    from heedful.studio.worker import Report

Options = dict[str, Any]
Curves = dict[str, list[tuple[float, float | None]]]


def play(params: dict[str, Any], models: ModelStore, report: Report) -> dict[str, Any]:
    """Return what a topic says of the settings; of settings that it refuses, why."""
    topic = find_topic(str(params.get("topic")))
    module = import_module(f"heedful.studio.work.lab.{topic.name}")
    try:
        shown: dict[str, Any] = to_json_value(module.play(Settings(params), models, report))
    except UserError as error:
        return {"problem": str(error)}
    return shown


def find(topic: str, positional: tuple[str, ...] = (), **options: Any) -> tuple[Finding[Any], dict[str, Any]]:
    """Run a topic's function of `heedful.lab`; return its finding, and what the page says of it."""
    finding = find_topic(topic).load()(*positional, **options)
    return finding, describe(finding, write_command(topic, positional, options))


def describe(finding: Finding[Any], command: str) -> dict[str, Any]:
    """Return a finding's claim, verdict and numbers, as the command prints them."""
    verdict, count = finding.verdict()
    return {
        "claim": finding.claim,
        "construction": list(finding.construction),
        "passed": finding.passed,
        "verdict": f"{verdict}: {count} conditions hold",
        "numbers": [
            {"name": n.name, "value": n.value, "text": format_value(n.value), "condition": n.condition}
            | {"holds": n.holds}
            for n in finding.numbers
        ],
        "command": command,
    }


def write_command(topic: str, positional: tuple[str, ...], options: Mapping[str, Any]) -> str:
    """Return the command line that prints the same numbers."""
    words = ["heedful", "lab", topic]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is None:
            continue
        if isinstance(value, np.ndarray):
            rows = np.atleast_2d(value)
            words.append(f"{flag}={';'.join(','.join(f'{x:.10g}' for x in row) for row in rows)}")
        elif isinstance(value, tuple):
            words += [flag, *(str(one) for one in value)]
        else:
            words += [flag, f"{value:.10g}" if isinstance(value, float) else str(value)]
    if any(one.startswith("-") for one in positional):
        words.append("--")
    return shlex.join([*words, *positional])


def read_curves(chart: Chart) -> Curves:
    """Return the curves that a topic's own figure draws, by their names."""
    curves: Curves = {}
    for row in chart["data"]["values"]:
        curves.setdefault(row["series"], []).append((row["x"], row["y"]))
    return curves
