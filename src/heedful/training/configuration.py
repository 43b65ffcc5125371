"""Options from a file or from Python, checked against the one list that the command line has too.

Nothing here imports torch before a run starts.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from heedful.data.named import NAMED, WORLD
from heedful.errors import UserError, shorten, unknown
from heedful.runs.directory import CONFIG
from heedful.runs.records import convert
from heedful.runs.toml import read_toml
from heedful.training.options import AdaptOptions, PretrainOptions

if TYPE_CHECKING:
    from heedful.data import Task
    from heedful.training.running import Finished

Options = AdaptOptions | PretrainOptions
O = TypeVar("O", AdaptOptions, PretrainOptions)  # noqa: E741
RUNNABLE: dict[str, type[Options]] = {"adapt": AdaptOptions, "pretrain": PretrainOptions}
"""The commands that a file can hold, each with its options."""
DATA = {AdaptOptions: "task", PretrainOptions: "corpus"}
"""What stands beside the model."""


def read_adapt(path: str | Path) -> AdaptOptions:
    """The options in the config.toml of a run of `heedful adapt`."""
    options = read_configuration(path)
    if not isinstance(options, AdaptOptions):
        raise UserError(f"{path}: is a run of pretrain; a run of adapt is wanted")
    return options


def read_pretrain(path: str | Path) -> PretrainOptions:
    """The options in the config.toml of a run of `heedful pretrain`."""
    options = read_configuration(path)
    if not isinstance(options, PretrainOptions):
        raise UserError(f"{path}: is a run of adapt; a run of pretrain is wanted")
    return options


def read_configuration(path: str | Path, changes: Iterable[str] = ()) -> Options:
    """The options in a recipe or a run's config.toml (or the run's folder); `changes` are `key=value`."""
    file = Path(path).expanduser()
    file = file / CONFIG if file.is_dir() else file
    read = read_toml(file)
    command = read.pop("command", None)
    if command is None:
        raise UserError(f'{file}: has no command; its first line is for example: command = "adapt"')
    if command not in RUNNABLE:
        raise UserError(f"{file}: {unknown('command', str(command), RUNNABLE)}")
    table = read.pop(command, {})
    if read:
        raise UserError(f"{file}: {unknown('table or key', next(iter(read)), [command, 'command'])}")
    if not isinstance(table, dict):
        raise UserError(f"{file}: {command} is no table; its options stand below [{command}]")
    kind = RUNNABLE[command]
    values = checked(kind, table, str(file)) | changed(kind, changes)
    options = kind(**values)
    for name in ("model", DATA[kind]):
        if not getattr(options, name):
            raise UserError(f"{file}: [{command}] has no {name}; {name} = ... or --set {name}=... names it")
    return options


def checked(kind: type[Options], table: Mapping[str, Any], where: str) -> dict[str, Any]:
    """A table's values under the options' names, each of its option's type."""
    hints = get_type_hints(kind)
    values = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in hints:
            raise UserError(f"{where}: {unknown('option', key, hints)}")
        values[name] = typed(hints[name], value, f"{where}: {key}")
    return values


def typed(hint: Any, value: Any, place: str) -> Any:
    """A value of an option's type, or one line that says which type that is."""
    if value is None and type(None) in get_args(hint):
        return None
    if Path in (hint, *get_args(hint)):
        if not isinstance(value, str | Path):
            raise UserError(f"{place} is {shorten(repr(value))}; it is a path")
        return Path(value).expanduser()
    return convert(hint, value, place)


def changed(kind: type[Options], changes: Iterable[str]) -> dict[str, Any]:
    """What `--set key=value` says: text as it stands, everything else as TOML; `none` is the default."""
    hints = get_type_hints(kind)
    values = {}
    for change in changes:
        key, equals, text = change.partition("=")
        name = key.strip().replace("-", "_")
        if not equals:
            raise UserError(f'--set "{shorten(change)}": is not key=value')
        if name not in hints:
            raise UserError(f"--set: {unknown('option', key, hints)}")
        values[name] = typed(hints[name], parsed(hints[name], text.strip()), f"--set {name}")
    return values


def parsed(hint: Any, text: str) -> Any:
    """One value from the command line."""
    choices = get_args(hint)
    if type(None) in choices and text.lower() == "none":
        return None
    if get_origin(hint) is tuple:
        return toml_value(text) if text.startswith("[") else [text]
    if {int, float, bool}.isdisjoint({hint, *choices}):
        return text
    return toml_value(text)


def toml_value(text: str) -> Any:
    """A number or a truth value; what is neither stays text, for the error that names the right type."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def whole_path(name: str, value: Any) -> Any:
    """A path as it reads from every folder; a name stays one."""
    if isinstance(value, Path):
        return str(value.expanduser().absolute())
    if name == "models":
        return ",".join(whole_path("model", model) for model in value.split(","))
    named = name in ("task", "corpus") and (value in NAMED or value in WORLD)
    paths = ("model", "task", "corpus", "tokenizer", "dev", "test", "questions")
    if name in paths and not named and Path(value).expanduser().exists():
        return str(Path(value).expanduser().absolute())
    return value


def task_of(options: AdaptOptions) -> Task:
    """Load the task that the options name, with as many rows of dev as they ask for."""
    from heedful.data import load_task
    from heedful.data.splits import sample

    task = load_task(
        options.task,
        data_dir=options.data_dir,
        text_column=options.text_column,
        pair_column=options.pair_column,
        label_column=options.label_column,
        split=options.split,
        seed=options.split_seed,
        kind="text2text" if options.objective == "answer" else None,
    )
    if options.dev_rows is None:
        return task
    dev = task.splits["dev"]
    if not 0 < options.dev_rows <= len(dev):
        raise UserError(f"--dev-rows {options.dev_rows}: dev has {len(dev)} rows")
    return replace(task, splits={**task.splits, "dev": sample(dev, options.dev_rows, options.split_seed)})


def given(kind: type[O], model: str | Path, data: str | Path, options: Mapping[str, Any], where: str) -> O:
    """Options from Python's keywords; options of a method or a model may come as a dictionary."""
    plain = {
        name: [f"{k}={v}" for k, v in value.items()]
        if name in ("method_options", "model_options") and isinstance(value, Mapping)
        else value
        for name, value in options.items()
    }
    values = {"model": str(model), DATA[kind]: str(data), **plain}
    return kind(**checked(kind, values, where))


def signature(kind: type[Options]) -> inspect.Signature:
    """What `help(heedful.adapt)` shows: every option with its default."""
    hints, names = get_type_hints(kind), ("model", DATA[kind])
    first = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str | Path)
        for name in names
    ]
    rest = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(kind)
        if f.name not in names
    ]
    return inspect.Signature([*first, *rest], return_annotation="Finished")


def sign(function: Callable[..., Finished], kind: type[Options]) -> None:
    """Let a function show its options."""
    function.__signature__ = signature(kind)  # type: ignore[attr-defined]
