"""Options from a table of a TOML file, from `--set key=value` or from Python's keywords."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from heedful.errors import UserError, unknown
from heedful.options.training import AdaptOptions, PretrainOptions
from heedful.options.values import convert_value, type_hints

Options = AdaptOptions | PretrainOptions
O = TypeVar("O", AdaptOptions, PretrainOptions)  # noqa: E741
COMMANDS: dict[str, type[Options]] = {"adapt": AdaptOptions, "pretrain": PretrainOptions}
"""The commands that a file can hold, each with its options."""
DATA_ARGUMENT = {AdaptOptions: "task", PretrainOptions: "corpus"}
"""The argument that names the data, beside the model."""


def check_table(kind: type[Any], table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return a table's values under the names of the options, each converted to its option's type."""
    hints = type_hints(kind)
    values = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in hints:
            raise UserError(f"{where}: {unknown('option', key, hints)}")
        values[name] = convert_value(hints[name], value, f"{where}: {key}")
    return values


def check_stored_options(kind: type[Any], table: Any, where: str) -> None:
    """Refuse stored options whose values are not of their options' types; names of other versions pass."""
    if not isinstance(table, Mapping):
        raise UserError(f"{where}: is not a table of options")
    hints = type_hints(kind)
    for name, value in table.items():
        if name in hints and value is not None:
            convert_value(hints[name], value, f"{where}: {name}")


def options_from_keywords(
    kind: type[O], model: str | Path, data: str | Path, keywords: Mapping[str, Any], where: str
) -> O:
    """Return options from Python's keywords; options of a method or a model may be a dictionary."""
    listed = {
        name: [f"{key}={item}" for key, item in value.items()]
        if name in ("method_options", "model_options") and isinstance(value, Mapping)
        else value
        for name, value in keywords.items()
    }
    values = {"model": str(model), DATA_ARGUMENT[kind]: str(data), **listed}
    return kind(**check_table(kind, values, where))


def set_signature(function: Callable[..., Any], kind: type[Options]) -> None:
    """Let `help(heedful.adapt)` show every option with its default."""
    hints, names = get_type_hints(kind), ("model", DATA_ARGUMENT[kind])
    positional, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter(name, positional, annotation=str | Path) for name in names]
    for field in fields(kind):
        if field.name not in names:
            default, hint = field.default, hints[field.name]
            parameters.append(inspect.Parameter(field.name, keyword, default=default, annotation=hint))
    function.__signature__ = inspect.Signature(parameters, return_annotation="Finished")  # type: ignore[attr-defined]
