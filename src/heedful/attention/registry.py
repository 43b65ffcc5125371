"""Mechanisms by name."""

from __future__ import annotations

import inspect
from typing import Any

from heedful.attention.additive import Additive
from heedful.attention.argmax import Argmax
from heedful.attention.bigbird import Bigbird
from heedful.attention.linformer import Linformer
from heedful.attention.mechanism import CAPABILITIES, Mechanism
from heedful.attention.performer import Performer
from heedful.attention.softmax import Softmax
from heedful.attention.synthesizer import Synthesizer
from heedful.attention.zero_after import ZeroAfter
from heedful.attention.zero_scores import ZeroScores
from heedful.errors import UserError, unknown
from heedful.options.values import convert_value, parse_assignments, type_hints

MECHANISMS: dict[str, type[Mechanism]] = {
    cls.name: cls
    for cls in (Softmax, Argmax, Additive, Linformer, Bigbird, Performer, Synthesizer, ZeroAfter, ZeroScores)
}
SIZES = ("n_heads", "d_head", "max_len")


def find(name: str) -> type[Mechanism]:
    """The class called `name`; an unknown one lists the nearest."""
    if name not in MECHANISMS:
        raise unknown("attention", name, MECHANISMS)
    return MECHANISMS[name]


def options(name: str) -> dict[str, Any]:
    """The options of a mechanism and their types, from its constructor alone."""
    hints = type_hints(find(name).__init__)
    parameters = inspect.signature(find(name).__init__).parameters
    return {p: hints[p] for p in parameters if p not in (*SIZES, "self")}


def make(name: str, *, n_heads: int, d_head: int, max_len: int, **given: Any) -> Mechanism:
    """Build a mechanism. An unknown option is an error that lists the known ones."""
    for size, number in (("n_heads", n_heads), ("d_head", d_head), ("max_len", max_len)):
        if not isinstance(number, int) or number < 1:
            raise UserError(f"{name} attention: {size} is a whole number from 1 on, not {number!r}")
    known = options(name)
    for option, value in given.items():
        if option not in known:
            raise UserError(f'{name} attention has no option "{option}"; it has {", ".join(sorted(known))}')
        convert_value(known[option], value, f"{name} attention: {option}")
    return find(name)(n_heads=n_heads, d_head=d_head, max_len=max_len, **given)


def parse(spec: str) -> tuple[str, dict[str, Any]]:
    """Read `name` or `name:option=value,option=value`, the form of the command line."""
    name, _, rest = spec.partition(":")
    return name, parse_assignments(filter(None, rest.split(",")), options(name), f"{name} attention", name)


def able(*capabilities: str) -> list[str]:
    """The safe mechanisms that can do all of this; for messages that say what to use instead."""
    assert set(capabilities) <= set(CAPABILITIES)
    return [
        n for n, cls in MECHANISMS.items() if not cls.unsafe and all(getattr(cls, c) for c in capabilities)
    ]
