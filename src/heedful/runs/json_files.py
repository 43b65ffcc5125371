"""The one reader of JSON: regular files of a limited size, decoded into typed records.

Errors are one line that names the file and the line or the field.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, get_args, get_origin

import msgspec

from heedful.errors import UserError, shorten
from heedful.options.values import NAMES, type_hints

R = TypeVar("R")
MAX_BYTES = 256 * 2**20
"""No JSON or TOML file that is read whole may be larger."""
MAX_ROWS_BYTES = 8 * 2**30
"""No file of one JSON object per line may be larger."""
MAX_TENSOR_BYTES = 2**40
"""No file of tensors or of a compiled graph may be larger."""
READ_AHEAD = 2**20
MAX_DEPTH, MAX_DIGITS = 100, 40
"""Of JSON: how deeply arrays and objects may be nested, and how long a whole number may be."""
LARGEST_INTEGER = 2**63
TYPES = {kind.__name__: words for kind, words in NAMES.items()} | {"array": "an array", "object": "an object"}
"""The types of msgspec's messages, in words."""
MISMATCH = re.compile(r"Expected `(?P<expected>[^`]+)`, got `(?P<actual>[^`]+)`")
MISSING_FIELD = re.compile(r"Object missing required field `(?P<name>[^`]+)`")


def read_bytes(path: str | Path, limit: int = MAX_BYTES) -> bytes:
    """Return the content of a regular file of at most `limit` bytes."""
    target = Path(path)
    try:
        with open_regular(target) as file:
            size = os.fstat(file.fileno()).st_size
            content = file.read(size + 1) if size <= limit else b""  # a larger number would be allocated
            while len(content) > size and len(content) <= limit:  # it grows, or does not know its size
                if not (more := file.read(READ_AHEAD)):
                    break
                content += more
    except OSError as error:
        raise UserError(f"{target}: cannot be read ({error.strerror or error})") from None
    if size > limit or len(content) > limit:
        raise UserError(f"{target}: is larger than {limit / 2**20:,.0f} MiB")
    return content


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file to read it; a pipe, a device or a socket is refused, and never waited for."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # opening a pipe must not wait
    except FileNotFoundError:
        raise UserError(f"{path}: there is no such file") from None
    except (OSError, ValueError) as error:  # a path with a NUL is a ValueError
        raise UserError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    raise UserError(f"{path}: is {'a folder' if stat.S_ISDIR(mode) else 'not a regular file'}")


def check_regular(path: Path, limit: int = MAX_TENSOR_BYTES) -> None:
    """Refuse what is no regular file, or larger than a limit, before another library opens it."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > limit:
            raise UserError(f"{path}: is larger than {limit / 2**30:,.0f} GiB")


def read_text(path: str | Path, limit: int = MAX_BYTES) -> str:
    """Return the content of a regular file in UTF-8, with line ends as Python has them."""
    try:
        text = read_bytes(path, limit).decode()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: is not UTF-8 (byte {error.start:,})") from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_json(path: str | Path) -> Any:
    text = read_text(path)
    try:
        value = json.loads(text, parse_int=parse_integer)
    except json.JSONDecodeError as error:
        reason = f"is not JSON ({error.msg}); the file is damaged"
        raise UserError(f"{path} line {error.lineno}: {reason}") from None
    except (RecursionError, OverflowError):
        raise UserError(f"{path}: cannot be read as JSON (nested too deeply, or a huge number)") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and measure_depth(value) > MAX_DEPTH:
        raise UserError(f"{path}: cannot be read as JSON (nested too deeply, or a huge number)")
    return value


def parse_integer(digits: str) -> int:
    """Return a whole number; transformers writes 10**30 for no limit, and nobody writes more."""
    if len(digits) > MAX_DIGITS:
        raise OverflowError
    return int(digits)


def measure_depth(value: Any) -> int:
    """Return how deeply arrays and objects are nested; at most one more than `MAX_DEPTH`."""
    level, depth = [value], 0
    while depth <= MAX_DEPTH and (level := [item for item in level if isinstance(item, dict | list)]):
        level = [one for item in level for one in (item.values() if isinstance(item, dict) else item)]
        depth += 1
    return depth


def read_json_object(path: str | Path) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise UserError(f"{path}: is not a JSON object")
    return value


def read_json_if_intact(path: str | Path) -> dict[str, Any] | None:
    """Return the object in a JSON file, or None where it is absent or damaged."""
    try:
        return read_json_object(path)
    except UserError:
        return None


def read_record(kind: type[R], path: str | Path) -> R:
    return decode_record(kind, read_json(path), str(path))


def iterate_rows(kind: type[R], path: str | Path) -> Iterator[R]:
    """Yield the records of a file with one per line.

    A last line without its end is what a killed writer leaves, and is left out.
    """
    with open_regular(Path(path)) as file:
        if os.fstat(file.fileno()).st_size > MAX_ROWS_BYTES:
            raise UserError(f"{path}: is larger than {MAX_ROWS_BYTES / 2**30:,.0f} GiB")
        number = 0
        while raw := file.readline(MAX_BYTES):
            number += 1
            if raw.endswith(b"\n"):
                yield decode_record(kind, parse_row(raw, f"{path} line {number}"), f"{path} line {number}")
            elif len(raw) >= MAX_BYTES:
                raise UserError(f"{path} line {number}: is longer than {MAX_BYTES / 2**20:,.0f} MiB")


def read_jsonl(path: str | Path) -> list[dict[str, Any]]:
    """Return all complete rows of a file with one JSON object per line."""
    *lines, _unfinished = read_text(path, MAX_ROWS_BYTES).split("\n")
    return [parse_row(line, f"{path} line {number}") for number, line in enumerate(lines, 1)]


def parse_row(line: str | bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(line, parse_int=parse_integer)
    except (ValueError, RecursionError, OverflowError):
        row = None
    if not isinstance(row, dict):
        raise UserError(f"{where}: is not a JSON object; the file is damaged")
    return row


def decode_record(kind: type[R], data: Any, where: str) -> R:
    """Return plain data as a record. Fields of a newer version, which the record lacks, are ignored."""
    try:
        refuse_numbers(data)
        return msgspec.convert(fill_missing(kind, data), kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: {describe_error(str(error))}") from None
    except UnicodeEncodeError:
        raise UserError(f"{where}: a name in it has half a character") from None
    except (RecursionError, OverflowError):
        raise UserError(f"{where}: is nested too deeply, or has a number that no record holds") from None


def refuse_numbers(value: Any) -> None:
    """Refuse whole numbers beyond 64 bits, and numbers that are not finite, anywhere in a record."""
    if isinstance(value, dict):
        for item in value.values():
            refuse_numbers(item)
    elif isinstance(value, list):
        for item in value:
            refuse_numbers(item)
    elif (isinstance(value, int) and abs(value) >= LARGEST_INTEGER) or (
        isinstance(value, float) and not math.isfinite(value)
    ):
        raise OverflowError


def check_facts(kind: type[Any], facts: Any, where: str) -> dict[str, Any]:
    """Return the object of a foreign JSON file as it is, if the fields that a schema names are as it says."""
    if not isinstance(facts, dict):
        raise UserError(f"{where}: is not a JSON object")
    try:
        msgspec.convert(facts, kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: {describe_error(str(error))}") from None
    except UnicodeEncodeError:
        raise UserError(f"{where}: a name in it has half a character") from None
    except (RecursionError, OverflowError):
        raise UserError(f"{where}: is nested too deeply, or has a number that is too large") from None
    return facts


def fill_missing(hint: Any, data: Any) -> Any:
    """Add the fields that are not written when they are None, here and in the records inside."""
    if is_dataclass(hint) and isinstance(data, Mapping):
        hints = type_hints(hint)
        filled = {name: fill_missing(hints[name], value) for name, value in data.items() if name in hints}
        for field in fields(hint):
            required = field.default is MISSING and field.default_factory is MISSING
            if required and type(None) in get_args(hints[field.name]):
                filled.setdefault(field.name, None)
        return filled
    inner = get_args(hint)
    if isinstance(data, Mapping) and get_origin(hint) in (dict, Mapping):
        return {key: fill_missing(inner[1], value) for key, value in data.items()}
    if isinstance(data, list) and get_origin(hint) is tuple and inner[-1] is Ellipsis:
        return [fill_missing(inner[0], value) for value in data]
    if type(None) in inner and len(inner) == 2:
        return fill_missing(next(member for member in inner if member is not type(None)), data)
    return data


def describe_error(message: str) -> str:
    """Return msgspec's message in the words of this package."""
    reason, _, place = message.partition(" - at `")
    field = place.rstrip("`").removeprefix("key` in `").removeprefix("$").removeprefix(".")
    if missing := MISSING_FIELD.match(reason):
        return f'field "{f"{field}." if field else ""}{missing["name"]}" is missing'
    start = f'field "{shorten(field)}"' if field else "it"
    if wrong := MISMATCH.match(reason):
        expected = [TYPES.get(name, name) for name in wrong["expected"].split(" | ")]
        return f"{start} is {TYPES.get(wrong['actual'], wrong['actual'])}; it must be {' or '.join(expected)}"
    return f"{start}: {reason[:1].lower()}{shorten(reason[1:])}"
