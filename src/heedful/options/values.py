"""The typed parser: text or a Python value, turned into an option's declared type, or an error in one line.

Every error has the form `WHERE VALUE: must be WHAT`, for example `--epochs 0: must be at least 1`.
"""

from __future__ import annotations

import math
import tomllib
import types
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from heedful.errors import UserError, shorten, unknown
from heedful.options.types import Bounds
from heedful.paths import expand_path

T = TypeVar("T")
NAMES = {int: "a whole number", float: "a number", str: "text", bool: "true or false", Path: "a path"}


class WrongTypeError(Exception):
    """A value is not of the one type that was tried."""


def type_hints(kind: Any) -> dict[str, Any]:
    """Return the annotations of a dataclass or function, with their bounds."""
    return cached_hints(kind)


@cache
def cached_hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


def resolve_field_types(cls: type[T]) -> type[T]:
    """Replace the annotations of a dataclass by the types that they name.

    So a subclass in another module need not import the names in the annotations of inherited fields.
    """
    hints = get_type_hints(cls, include_extras=True)
    for field in fields(cls):  # type: ignore[arg-type]
        field.type = hints[field.name]
    cls.__init__.__annotations__.update(hints)
    return cls


def flag(name: str) -> str:
    """Return an option's name as it is typed: `--batch-size` for `batch_size`."""
    return "--" + name.replace("_", "-")


def convert_value(hint: Any, value: Any, where: str) -> Any:
    """Return a value from Python, TOML or JSON as the declared type.

    Parameters
    ----------
    hint
        The declared type: a scalar, `Path`, `Literal`, `Optional`, a union, a tuple or a mapping, with
        `Bounds` where it is a number.
    value
        The value to check. A whole number is accepted where a float is declared; text is no number.
    where
        The file and the option, for the error message.

    """
    for member, bounds in members(hint):
        with suppress(WrongTypeError):
            return convert_member(member, bounds, value, where)
    raise wrong_value(hint, value, where)


def parse_value(hint: Any, text: str, where: str) -> Any:
    """Return text from the command line as the declared type; `none` is None where that is allowed."""
    for member, bounds in sorted(members(hint), key=lambda member: member[0] is not type(None)):
        try:
            value = read_text_as(member, text)
        except ValueError:
            continue
        with suppress(WrongTypeError):
            return convert_member(member, bounds, value, where)
    raise wrong_value(hint, text, where)


def parse_assignments(
    texts: Iterable[str], hints: Mapping[str, Any], where: str, owner: str = ""
) -> dict[str, Any]:
    """Read a list of `option=value`, each value as the type that `hints` declares.

    `owner` is what the options belong to, such as the name of a method, for the error message.
    """
    values = {}
    for text in texts:
        name, equals, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals:
            raise UserError(f'{where} "{shorten(text)}": must be option=value')
        if name not in hints:
            raise UserError(f"{where}: {unknown(f'option of {owner}' if owner else 'option', name, hints)}")
        values[name] = parse_value(hints[name], value.strip(), f"{where} {name}")
    return values


def check_bounds(options: Any) -> None:
    """Check every option of a dataclass against its declared type, for options that were made in Python."""
    for name, hint in type_hints(type(options)).items():
        convert_value(hint, getattr(options, name), flag(name))


def members(hint: Any, outer: tuple[Bounds, ...] = ()) -> list[tuple[Any, tuple[Bounds, ...]]]:
    """Return the alternatives of a type, each with its bounds and those of the whole."""
    if get_origin(hint) is Annotated:
        inner, *marks = get_args(hint)
        return members(inner, (*(mark for mark in marks if isinstance(mark, Bounds)), *outer))
    if get_origin(hint) in (Union, types.UnionType):
        return [member for part in get_args(hint) for member in members(part, outer)]
    return [(hint, outer)]


def convert_member(hint: Any, bounds: tuple[Bounds, ...], value: Any, where: str) -> Any:
    """Return a value as one type; WrongTypeError when it has another."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if hint is type(None):
        if value is not None:
            raise WrongTypeError
        return None
    if origin is Literal:
        if not any(value == choice and type(value) is type(choice) for choice in arguments):
            raise WrongTypeError
        return value
    if origin is tuple:
        return convert_tuple(arguments, value, where)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise WrongTypeError
        return {key: convert_value(arguments[1], item, f"{where}, {key}") for key, item in value.items()}
    if hint is Path:
        if not isinstance(value, str | Path):
            raise WrongTypeError
        try:
            return expand_path(value)
        except UserError as error:
            raise UserError(f"{where} {error}") from None
    return convert_scalar(hint, bounds, value, where)


def convert_scalar(hint: Any, bounds: tuple[Bounds, ...], value: Any, where: str) -> Any:
    if isinstance(value, bool) != (hint is bool):
        raise WrongTypeError
    if hint is float and isinstance(value, int):
        value = float(value) if abs(value) < 2**1023 else math.inf
    if not isinstance(value, hint):
        raise WrongTypeError
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{where} {show_value(value)}: must be a finite number")
    for bound in bounds:
        if (expected := bound.violation(value)) is not None:
            raise UserError(f"{where} {show_value(value)}: must be {expected}")
    return value


def convert_tuple(arguments: tuple[Any, ...], value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise WrongTypeError
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(value) != len(arguments):
        raise UserError(f"{where}: has {len(value)} entries; it must have {len(arguments)}")
    return tuple(
        convert_value(hint, item, f"{where}[{number}]")
        for number, (hint, item) in enumerate(zip(arguments, value, strict=True))
    )


def read_text_as(hint: Any, text: str) -> Any:
    """Return text as the Python value that a type expects; ValueError when it cannot be one."""
    if hint is type(None):
        return None if text.lower() == "none" else text
    if hint is bool:
        return {"true": True, "false": False}[text.lower()] if text.lower() in ("true", "false") else text
    if hint is int:
        return read_whole_number(text)
    if hint is float:
        return float(text)
    if get_origin(hint) is Literal:
        return next((choice for choice in get_args(hint) if str(choice) == text), text)
    if get_origin(hint) is tuple:
        return tomllib.loads(f"value = {text}")["value"] if text.startswith("[") else [text]
    return text


def read_whole_number(text: str) -> int:
    """Return a whole number, which may be written as 1e3 or 4.0."""
    try:
        return int(text, 0) if text.lower().startswith(("0x", "0o", "0b")) else int(text)
    except ValueError:
        number = float(text)
        if not number.is_integer():
            raise
        return int(number)


def wrong_value(hint: Any, value: Any, where: str) -> UserError:
    return UserError(f"{where} {show_value(value)}: must be {describe_type(hint)}")


def show_value(value: Any) -> str:
    """Return a value for a message: text in quotes, a number without a needless fraction."""
    if isinstance(value, str):
        return f'"{shorten(value)}"'
    if isinstance(value, float):
        return f"{value:.12g}"
    if value is None or isinstance(value, bool):
        return str(value).lower()
    return shorten(repr(value))


def describe_bounds(hint: Any) -> str:
    """Return the bounds of an option in words, for `--help`; empty where it has none."""
    return " and ".join(dict.fromkeys(bound.describe() for _, bounds in members(hint) for bound in bounds))


def describe_type(hint: Any) -> str:
    """Return in words what a type accepts: `a whole number`, `auto, linear or family`."""
    words: list[str] = []
    for kind, _ in members(hint):
        origin = get_origin(kind)
        if kind is type(None):
            continue
        if origin is Literal:
            words += [str(choice) for choice in get_args(kind)]
        elif origin is tuple:
            words.append("an array")
        elif origin in (dict, Mapping):
            words.append("a table")
        else:
            words.append(NAMES.get(kind, getattr(kind, "__name__", str(kind))))
    words = list(dict.fromkeys(words))
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
