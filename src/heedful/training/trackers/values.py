"""What trackers show: the numbers of a row, and a configuration without nesting."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from heedful.errors import UserError
from heedful.runs.schemas import Metrics, Results

PROJECT = "heedful"
"""The project, or experiment, that runs are shown in."""


def name_values(row: Metrics) -> dict[str, float]:
    """Return the numbers of a row as `split/name`."""
    values = {name: getattr(row, name) for name in ("loss", "value", "lr")}
    return {f"{row.split}/{name}": float(value) for name, value in values.items() if value is not None}


def name_results(results: Results) -> dict[str, float]:
    """Return the scores of a finished run as `split/metric`."""
    scores = {f"{name}/{split.metric}": split.value for name, split in results.splits.items()}
    return {
        "seconds": results.seconds,
        **{name: value for name, value in scores.items() if value is not None},
    }


def flatten_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were set; those of a command are in a table of its name."""
    flat: dict[str, Any] = {}
    for name, value in config.items():
        flat |= flatten_config(value) if isinstance(value, Mapping) else {name: value}
    return flat


def import_tracker(package: str, option: str) -> Any:
    try:
        return import_module(package)
    except ImportError:
        raise UserError(f'--track {option}: needs {package}; pip install "heedful[{option}]"') from None
