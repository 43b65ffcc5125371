"""The user's defaults: `./heedful.toml`, then `heedful/heedful.toml` in the configuration home.

Each command has a table (`[adapt]`) with one key per option; `[slurm]` is for all commands with `--on slurm`.
Flags override both files. A recipe (`heedful run`) reads neither, nor does any command when HEEDFUL_TOML is
`none`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heedful.errors import UserError, unknown
from heedful.launch.site import SLURM, configuration_files
from heedful.options.values import members, parse_value

if TYPE_CHECKING:
    from cyclopts import App, ArgumentCollection


GROUPS = ("data", "list", "study", "tokenizer")
"""Commands that need a second word."""
Source = Callable[..., None]
"""Adds to the arguments of a command, or checks them; called by the parser."""


def load_defaults(commands: Mapping[str, tuple[str, str]]) -> list[Source]:
    """Return the tables of the files in the form of the command line's parser, and a check of all numbers.

    `commands` are all commands by name, each with its import path.
    """
    paths = [path for path in configuration_files() if path.is_file()]
    if not paths:
        return [check_numbers]
    from cyclopts.config import Dict

    from heedful.runs.toml import read_toml

    files = [Dict(check_tables(path, read_toml(path), commands), source=str(path)) for path in paths]
    return [*files, check_numbers]


def check_tables(path: Path, read: dict[str, Any], commands: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Return the tables of a file with the options' names as typed; refuse what is not a command's table."""
    for name, table in read.items():
        if name not in (*commands, SLURM):
            raise UserError(f"{path}: {unknown('table', name, [*commands, SLURM])}")
        if not isinstance(table, dict):
            raise UserError(f"{path}: {name} is not a table; write a command's defaults below [{name}]")
        for key, value in table.items():
            if name in GROUPS and not isinstance(value, dict):
                raise UserError(
                    f"{path}: [{name}] {key}: {name} has several commands; write it below [{name}.COMMAND]"
                )
            if name in GROUPS and key.replace("_", "-") not in (names := subcommands(commands[name][0])):
                raise UserError(f"{path}: {unknown(f'table of {name}', key, names)}")
    return {
        name: {k.replace("_", "-"): v for k, v in table.items()}
        for name, table in read.items()
        if name != SLURM
    }


def subcommands(path: str) -> list[str]:
    module, _, attribute = path.partition(":")
    return [name for name in getattr(import_module(module), attribute) if not name.startswith("-")]


def check_numbers(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse what is not a number or outside an option's bounds, in the files and on the command line."""
    for argument in arguments:
        hint = argument.field_info.annotation
        if {member for member, _ in members(hint)} <= {int, float, type(None)}:
            for token in argument.tokens:
                name = token.keyword or argument.name
                typed = token.source in ("", "cli")
                where = name if typed else f"{token.source}: {name.rpartition('[')[2].rstrip(']')}"
                parse_value(hint, token.value, where)
