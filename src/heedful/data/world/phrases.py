"""The phrases that the generated world is written with, from the TOML files in `phrase_files/`."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).with_name("phrase_files")


@cache
def read_phrases(name: str) -> dict[str, Any]:
    """Read one file of phrases, with a tuple in place of each array."""
    tables: dict[str, Any] = freeze(tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8")))
    return tables


def freeze(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(freeze, value))
    if isinstance(value, dict):
        return {key: freeze(item) for key, item in value.items()}
    return value


def capitalize(text: str) -> str:
    """Return a text with its first letter in upper case and the rest unchanged."""
    return text[0].upper() + text[1:]
