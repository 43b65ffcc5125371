"""Recipes and the config.toml of a run: a command, and the table of its options."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from heedful.errors import UserError, unknown
from heedful.options.configuration import COMMANDS, DATA_ARGUMENT, Options, check_table
from heedful.options.training import AdaptOptions, PretrainOptions, add_fixed_settings
from heedful.options.values import parse_assignments, type_hints
from heedful.paths import expand_path
from heedful.runs.directory import CONFIG, ENVIRONMENT
from heedful.runs.old_names import mark_balanced, mark_prompt_length, update_names
from heedful.runs.toml import read_toml


def load_run_config(path: str | Path, changes: Iterable[str] = ()) -> Options:
    """Return the options in a recipe or a run's config.toml (or the run's folder).

    `changes` are texts of the form `key=value`, which replace what the file says.
    """
    file = expand_path(path)
    file = file / CONFIG if file.is_dir() else file
    content = update_names(read_toml(file))
    content = mark_prompt_length(mark_balanced(content)) if file.name == CONFIG else content
    command = content.pop("command", None)
    if command is None:
        raise UserError(f'{file}: has no command; its first line is for example: command = "adapt"')
    if command not in COMMANDS:
        raise UserError(f"{file}: {unknown('command', str(command), COMMANDS)}")
    table = content.pop(command, {})
    if content:
        raise UserError(f"{file}: {unknown('table or key', next(iter(content)), [command, 'command'])}")
    if not isinstance(table, dict):
        raise UserError(f"{file}: {command} is not a table; write its options below [{command}]")
    kind = COMMANDS[command]
    if kind is AdaptOptions and (file.parent / ENVIRONMENT).is_file():
        table = add_fixed_settings(table)
    values = check_table(kind, table, str(file)) | parse_assignments(changes, type_hints(kind), "--set")
    options = kind(**values)
    for name in ("model", DATA_ARGUMENT[kind]):
        if not getattr(options, name):
            raise UserError(f"{file}: [{command}] has no {name}; add {name} = ... or --set {name}=...")
    return options


def load_adapt_config(path: str | Path) -> AdaptOptions:
    options = load_run_config(path)
    if not isinstance(options, AdaptOptions):
        raise UserError(f"{path}: is a run of pretrain; give a run of adapt")
    return options


def load_pretrain_config(path: str | Path) -> PretrainOptions:
    options = load_run_config(path)
    if not isinstance(options, PretrainOptions):
        raise UserError(f"{path}: is a run of adapt; give a run of pretrain")
    return options
