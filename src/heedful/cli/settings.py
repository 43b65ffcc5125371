"""A person's own defaults: `./heedful.toml`, then `heedful/heedful.toml` in the configuration home.

A table a command (`[adapt]`), an option a key; `[slurm]` is for every command that is given `--on slurm`.
Flags beat both files; a recipe (`heedful run`) reads neither, nor does anything when HEEDFUL_TOML is `none`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from heedful.errors import UserError, unknown
from heedful.launch.site import SLURM, configuration_files

if TYPE_CHECKING:
    from cyclopts import App, ArgumentCollection


GROUPS = ("data", "list", "study", "tokenizer")
"""Commands that are nothing without a second word."""
Source = Callable[..., None]
"""Adds to what a person gave, or looks at it; called by the parser."""


def settings(commands: Mapping[str, tuple[str, str]]) -> list[Source]:
    """The files' tables, as the command line's parser takes them; then a look at what was given.

    `commands` are all of them, with the place of each.
    """
    found = [path for path in configuration_files() if path.is_file()]
    if not found:
        return [whole_numbers]
    from cyclopts.config import Dict

    from heedful.runs.toml import read_toml

    files = [Dict(tables(path, read_toml(path), commands), source=str(path)) for path in found]
    return [*files, whole_numbers]


def tables(path: Path, read: dict[str, Any], commands: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Refuse what is no command's table; keys may be written with underscores."""
    for name, table in read.items():
        if name not in (*commands, SLURM):
            raise UserError(f"{path}: {unknown('table', name, [*commands, SLURM])}")
        if not isinstance(table, dict):
            raise UserError(f"{path}: {name} is no table; a command's defaults stand below [{name}]")
        for key, value in table.items():
            if name in GROUPS and not isinstance(value, dict):
                raise UserError(
                    f"{path}: [{name}] {key}: {name} is several commands; write it below [{name}.COMMAND]"
                )
            if name in GROUPS and key.replace("_", "-") not in (known := parts(commands[name][0])):
                raise UserError(f"{path}: {unknown(f'table of {name}', key, known)}")
    return {
        name: {k.replace("_", "-"): v for k, v in table.items()}
        for name, table in read.items()
        if name != SLURM
    }


def parts(place: str) -> list[str]:
    """The second words of a command."""
    module, _, attribute = place.partition(":")
    return [name for name in getattr(import_module(module), attribute) if not name.startswith("-")]


def whole_numbers(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Refuse 4.5 for a whole number, in the files and on the command line: the parser would round it."""
    from cyclopts import CoercionError

    for argument in arguments:
        kinds = set(leaves(argument.hint))
        if int not in kinds or kinds & {float, str}:
            continue
        for token in argument.tokens:
            if not is_whole(token.value):
                raise CoercionError(token=token, argument=argument, target_type=int)


def leaves(hint: Any) -> Iterator[Any]:
    """The types inside a type: int and None in `int | None`."""
    inner = get_args(hint)
    if not inner:
        yield hint
    for one in inner:
        yield from leaves(one)


def is_whole(value: str) -> bool:
    """Whether a number has no fraction; what is no number is the parser's to refuse."""
    try:
        return "." not in value or float(value).is_integer()
    except ValueError:
        return True
