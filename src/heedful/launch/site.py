"""Defaults of a whole cluster: the table [slurm] of heedful.toml, in this folder and in the user's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import UserError, unknown
from heedful.options.launch import LaunchOptions, StudyLaunchOptions, TrainLaunchOptions
from heedful.options.values import convert_value, type_hints
from heedful.paths import expand_path
from heedful.runs.toml import read_toml

L = TypeVar("L", bound=LaunchOptions)
NAME = "heedful.toml"
SLURM = "slurm"
NOT_OF_SITE = ("on", "wait", "dry_run")
"""Options that a table [slurm] cannot set."""


def configuration_files() -> list[Path]:
    """Return the files with a user's defaults; the first one that has an option wins."""
    if os.environ.get("HEEDFUL_TOML") == "none":
        return []
    home = os.environ.get("XDG_CONFIG_HOME")
    above = expand_path(home) if home else Path.home() / ".config"
    return [Path(NAME), above / "heedful" / NAME]


def add_site_options(options: L) -> L:
    """Return the options with the defaults of this cluster: flags first, then the nearer file."""
    for path in configuration_files():
        table = read_toml(path).get(SLURM) if path.is_file() else None
        if isinstance(table, dict):
            options = fill_from_table(options, table, str(path))
    return options


def fill_from_table(options: L, table: Mapping[str, Any], where: str) -> L:
    """Fill in from a table [slurm] what is not given; what other commands take is passed over."""
    hints = type_hints(StudyLaunchOptions) | type_hints(TrainLaunchOptions)
    site = [name for name in hints if name not in NOT_OF_SITE]
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in site:
            raise UserError(f"{where}: [slurm] {unknown('option', key, site)}")
        if name in ("setup", "slurm") and isinstance(value, str):
            value = [value]
        if name == "gpus" and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        values[name] = convert_value(hints[name], value, f"{where}: [slurm] {key}")
    missing = {
        field.name: values[field.name]
        for field in fields(options)
        if field.name in values and getattr(options, field.name) == field.default
    }
    if options.slurm:
        missing["slurm"] = (*values.get("slurm", ()), *options.slurm)  # the last of a key counts
    return replace(options, **missing)
