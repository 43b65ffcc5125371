"""Mechanisms by name."""

from __future__ import annotations

import inspect
import typing
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
    hints = typing.get_type_hints(find(name).__init__)
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
        check_type(name, option, value, known[option])
    return find(name)(n_heads=n_heads, d_head=d_head, max_len=max_len, **given)


def check_type(name: str, option: str, value: Any, kind: Any) -> None:
    """Refuse a value of the wrong type, naming the right one."""
    if typing.get_origin(kind) is typing.Literal:
        if value not in typing.get_args(kind):
            choices = ", ".join(map(str, typing.get_args(kind)))
            raise UserError(f"{name} attention: {option} is one of {choices}, not {value!r}")
        return
    kinds = typing.get_args(kind) or (kind,)
    if float in kinds:
        kinds = (*kinds, int)
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        expected = " or ".join(
            "nothing" if k is type(None) else k.__name__ for k in typing.get_args(kind) or (kind,)
        )
        raise UserError(f"{name} attention: {option} takes {expected}, not {value!r}")


def parse(spec: str) -> tuple[str, dict[str, Any]]:
    """Read `name` or `name:option=value,option=value`, the form of the command line."""
    name, _, rest = spec.partition(":")
    known = options(name)
    given: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        option, equals, text = part.partition("=")
        if not equals:
            raise UserError(f'attention "{spec}": "{part}" is not option=value')
        if option not in known:
            raise UserError(f'{name} attention has no option "{option}"; it has {", ".join(sorted(known))}')
        given[option] = convert(name, option, text, known[option])
    return name, given


def convert(name: str, option: str, text: str, kind: Any) -> Any:
    """Read an option's value from text by its declared type."""
    if typing.get_origin(kind) is typing.Literal:
        check_type(name, option, text, kind)
        return text
    for candidate in typing.get_args(kind) or (kind,):
        if candidate is bool and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if candidate in (int, float):
            try:
                return candidate(text)
            except ValueError:
                continue
        if candidate is str:
            return text
        if candidate is type(None) and text.lower() == "none":
            return None
    check_type(name, option, text, kind)
    raise AssertionError("unreachable: the text was not of the type")


def able(*capabilities: str) -> list[str]:
    """The safe mechanisms that can do all of this; for messages that say what to use instead."""
    assert set(capabilities) <= set(CAPABILITIES)
    return [
        n for n, cls in MECHANISMS.items() if not cls.unsafe and all(getattr(cls, c) for c in capabilities)
    ]
