"""Options from a file or from Python, checked against the one list that the command line has too.

Nothing here imports torch before a run starts.
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_args, get_origin, get_type_hints

from heedful.data.named import NAMED, WORLD
from heedful.errors import UserError, shorten, unknown
from heedful.runs.directory import CONFIG
from heedful.runs.records import convert
from heedful.runs.toml import read_toml
from heedful.training.options import AdaptOptions

if TYPE_CHECKING:
    from heedful.training.adapt import Finished

O = TypeVar("O", bound=AdaptOptions)  # noqa: E741
RUNNABLE = {"adapt": AdaptOptions}
"""The commands that a file can hold, each with its options."""


def read_configuration(path: str | Path, changes: Iterable[str] = ()) -> AdaptOptions:
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
    for name in ("model", "task"):
        if not getattr(options, name):
            raise UserError(f"{file}: [{command}] has no {name}; {name} = ... or --set {name}=... names it")
    return options


def checked(kind: type[O], table: Mapping[str, Any], where: str) -> dict[str, Any]:
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


def changed(kind: type[O], changes: Iterable[str]) -> dict[str, Any]:
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
    named = name in ("task", "corpus") and (value in NAMED or value in WORLD)
    paths = ("model", "task", "corpus", "tokenizer", "dev", "test", "questions")
    if name in paths and not named and Path(value).expanduser().exists():
        return str(Path(value).expanduser().absolute())
    return value


def adapt(model: str | Path, task: str | Path, **options: Any) -> Finished:
    """Adapt a model to a task, and leave a run directory with its scores, checks and best model.

    The options are those of `heedful adapt`, with the same defaults; `method_options` may be a dictionary.
    What is given back has the `folder` of the run, its `results` and its `checks`.

        done = heedful.adapt("minilm", "reviews.csv", method="lora", epochs=3, method_options={"rank": 4})
        print(done.results.splits["test"].value)
        heedful.load(done.folder).predict(["What a lovely place."])
    """
    method_options = options.get("method_options")
    if isinstance(method_options, Mapping):
        options["method_options"] = [f"{name}={value}" for name, value in method_options.items()]
    given = {"model": str(model), "task": str(task), **options}
    made = AdaptOptions(**checked(AdaptOptions, given, "heedful.adapt"))
    from heedful.training.adapt import adapt as work

    return work(made)


def signature() -> inspect.Signature:
    """What `help(heedful.adapt)` shows: every option with its default."""
    hints = get_type_hints(AdaptOptions)
    first = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=str | Path)
        for name in ("model", "task")
    ]
    rest = [
        inspect.Parameter(f.name, inspect.Parameter.KEYWORD_ONLY, default=f.default, annotation=hints[f.name])
        for f in fields(AdaptOptions)
        if f.name not in ("model", "task")
    ]
    return inspect.Signature([*first, *rest], return_annotation="Finished")


adapt.__signature__ = signature()  # type: ignore[attr-defined]
