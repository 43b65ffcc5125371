"""Records (frozen dataclasses) to plain data and back. Reading names the field that is wrong."""

from __future__ import annotations

import types
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from heedful.errors import UserError

R = TypeVar("R")


def encode(record: Any) -> dict[str, Any]:
    """Turn a record into a dictionary, field by field; a field with nothing in it (None) is left out."""
    return {
        field.name: value for field in fields(record) if (value := getattr(record, field.name)) is not None
    }


@cache
def hints(kind: Hashable) -> dict[str, Any]:
    """Resolve a record's annotations once."""
    return get_type_hints(kind)


def decode(kind: type[R], data: Any, where: str) -> R:
    """Build a record from what was read at `where`. Unknown fields (of a newer version) are ignored."""
    if not isinstance(data, Mapping):
        raise UserError(f"{where}: holds {name_of(data)} where {kind.__name__} is a JSON object")
    values: dict[str, Any] = {}
    annotations = hints(cast(Hashable, kind))
    for field in fields(kind):  # type: ignore[arg-type]
        place = f'{where}: field "{field.name}"'
        if field.name in data:
            values[field.name] = convert(annotations[field.name], data[field.name], place)
        elif field.default is MISSING and field.default_factory is MISSING:
            if not accepts_none(annotations[field.name]):
                raise UserError(f"{place} is missing")
            values[field.name] = None
    return kind(**values)


def accepts_none(annotation: Any) -> bool:
    """Tell whether a field may hold nothing."""
    return annotation is Any or type(None) in get_args(annotation)


def convert(annotation: Any, value: Any, place: str) -> Any:
    """Check a value against its annotation, and build what the annotation names."""
    if annotation is Any:
        return value
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        if value is None and type(None) in arguments:
            return None
        (inner,) = [a for a in arguments if a is not type(None)]
        return convert(inner, value, place)
    if origin is Literal:
        if value not in arguments:
            raise UserError(f"{place} is {value!r}; it is one of {', '.join(map(repr, arguments))}")
        return value
    if origin is tuple:
        return convert_tuple(arguments, value, place)
    if origin in (dict, Mapping):
        if not isinstance(value, Mapping):
            raise wrong(place, value, "an object")
        return {key: convert(arguments[1], item, f"{place}, {key}") for key, item in value.items()}
    if is_dataclass(annotation):
        return decode(annotation, value, place)  # type: ignore[arg-type]
    return convert_scalar(annotation, value, place)


def convert_tuple(arguments: tuple[Any, ...], value: Any, place: str) -> tuple[Any, ...]:
    """Check an array of one type, or of a fixed length."""
    if not isinstance(value, list | tuple):
        raise wrong(place, value, "an array")
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if len(value) != len(arguments):
        raise UserError(f"{place} has {len(value)} entries; it has {len(arguments)}")
    return tuple(
        convert(a, v, f"{place}[{i}]") for i, (a, v) in enumerate(zip(arguments, value, strict=True))
    )


def convert_scalar(annotation: Any, value: Any, place: str) -> Any:
    """Check a word, a number or a truth value; a whole number is a fine float."""
    if annotation is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, annotation) or (annotation is not bool and isinstance(value, bool)):
        raise wrong(
            place, value, {"str": "text", "int": "a whole number", "float": "a number"}[annotation.__name__]
        )
    return value


def wrong(place: str, value: Any, right: str) -> UserError:
    """Say what stands where something else belongs."""
    return UserError(f"{place} is {name_of(value)}; it is {right}")


def name_of(value: Any) -> str:
    """Name a JSON value's kind in words."""
    names = {dict: "an object", list: "an array", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
