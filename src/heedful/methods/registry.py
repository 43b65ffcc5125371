"""Methods by name."""

from __future__ import annotations

from typing import Any

from heedful.errors import UserError, unknown
from heedful.methods.base import Method, options_of
from heedful.methods.bitfit import Bitfit
from heedful.methods.full import Full
from heedful.methods.head import Head
from heedful.methods.lora import Lora
from heedful.methods.prefix import Prefix
from heedful.methods.prompt import Prompt

METHODS: dict[str, type[Method]] = {cls.name: cls for cls in (Full, Head, Prompt, Prefix, Lora, Bitfit)}


def find(name: str) -> type[Method]:
    """The class called `name`; an unknown one lists the nearest."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]


def options(name: str) -> dict[str, Any]:
    """The options of a method and their types, from its fields alone."""
    return options_of(find(name))


def make(name: str, **given: Any) -> Method:
    """Build a method. An unknown option is an error that lists the known ones."""
    known = options(name)
    for option in given:
        if option not in known:
            has = f"it has {', '.join(sorted(known))}" if known else "it has none"
            raise UserError(f'method {name} has no option "{option}"; {has}')
    return find(name)(**given)
