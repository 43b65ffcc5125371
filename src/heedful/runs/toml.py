"""TOML, written: the reader is in the standard library, a writer is not. What is written reads back."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from heedful.errors import UserError, shorten
from heedful.runs.files import write_text
from heedful.runs.json_files import MAX_DEPTH, measure_depth, read_text

BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def to_toml(table: Mapping[str, Any]) -> str:
    """Write a table: text, whole numbers, floats (exactly), truth values, lists, tables. None is left out."""
    return "\n".join(table_lines(table, ())) + "\n"


def table_lines(table: Mapping[str, Any], path: tuple[str, ...]) -> list[str]:
    values = {key: value for key, value in table.items() if value is not None}
    lines = [f"{quote_key(k)} = {value_text(v, k)}" for k, v in values.items() if not isinstance(v, Mapping)]
    for key, value in values.items():
        if isinstance(value, Mapping):
            inner = (*path, key)
            lines += ["", f"[{'.'.join(quote_key(k) for k in inner)}]", *table_lines(value, inner)]
    return lines


def quote_key(key: str) -> str:
    return key if BARE_KEY.fullmatch(key) else quote(key)


def quote(text: str) -> str:
    """Write text as a basic string on one line."""
    if any("\ud800" <= c <= "\udfff" for c in text):
        raise UserError(f'"{shorten(text)}" holds half a character, which TOML cannot hold')
    printable = (ESCAPES.get(c, c if c >= " " and c != "\x7f" else f"\\u{ord(c):04x}") for c in text)
    return f'"{"".join(printable)}"'


def value_text(value: Any, key: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | Path):
        return quote(str(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(float(value)) if math.isfinite(value) else ("nan" if math.isnan(value) else f"{value:+}")
    if isinstance(value, list | tuple) and None not in value:
        return "[" + ", ".join(value_text(item, key) for item in value) + "]"
    if isinstance(value, Mapping):
        pairs = (f"{quote_key(k)} = {value_text(v, k)}" for k, v in value.items() if v is not None)
        return "{" + ", ".join(pairs) + "}"
    raise TypeError(f"{key}: {value!r} cannot be written as TOML")


def write_toml(path: str | Path, table: Mapping[str, Any], *, comment: str = "") -> Path:
    head = "".join(f"# {line}\n" for line in comment.splitlines())
    return write_text(path, head + to_toml(table))


def read_toml(path: str | Path) -> dict[str, Any]:
    """Read a TOML file, or say in one line where it is broken."""
    try:
        table = tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: is not TOML: {error}") from None
    except RecursionError:
        raise UserError(f"{path}: is not TOML that can be read (nested too deeply)") from None
    except ValueError:  # Python refuses numbers of thousands of digits
        raise UserError(f"{path}: is not TOML that can be read (a huge number)") from None
    if measure_depth(table) > MAX_DEPTH:
        raise UserError(f"{path}: is not TOML that can be read (nested too deeply)")
    return table
