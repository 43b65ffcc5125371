"""A person's own defaults: `./heedful.toml`, then `heedful/heedful.toml` in the configuration home.

A table a command (`[adapt]`), an option a key; `[slurm]` is for every command that is given `--on slurm`.
Flags beat both files; a recipe (`heedful run`) reads neither, nor does anything when HEEDFUL_TOML is `none`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import UserError, unknown
from heedful.launch.site import SLURM, places

if TYPE_CHECKING:
    from cyclopts.config import Dict


def settings(commands: Iterable[str]) -> list[Dict]:
    """The files' tables, as the command line's parser takes them."""
    found = [path for path in places() if path.is_file()]
    if not found:
        return []
    from cyclopts.config import Dict

    from heedful.runs.toml import read_toml

    names = list(commands)
    return [Dict(tables(path, read_toml(path), names), source=str(path)) for path in found]


def tables(path: Path, read: dict[str, Any], commands: list[str]) -> dict[str, Any]:
    """Refuse what is no command's table; keys may be written with underscores."""
    for name, table in read.items():
        if name not in (*commands, SLURM):
            raise UserError(f"{path}: {unknown('table', name, [*commands, SLURM])}")
        if not isinstance(table, dict):
            raise UserError(f"{path}: {name} is no table; a command's defaults stand below [{name}]")
    return {
        name: {k.replace("_", "-"): v for k, v in table.items()}
        for name, table in read.items()
        if name != SLURM
    }
