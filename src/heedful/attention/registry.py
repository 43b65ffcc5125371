"""Mechanisms by name. Importing this module imports no torch."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from heedful.errors import UserError
from heedful.options.types import Positive
from heedful.options.values import convert_value, parse_assignments, type_hints
from heedful.plugins import Registry

if TYPE_CHECKING:
    from heedful.attention.mechanism import Mechanism

MECHANISMS: Registry[type[Mechanism]] = Registry(
    "attention",
    {
        "softmax": "heedful.attention.softmax:Softmax",
        "argmax": "heedful.attention.argmax:Argmax",
        "additive": "heedful.attention.additive:Additive",
        "linformer": "heedful.attention.linformer:Linformer",
        "bigbird": "heedful.attention.bigbird:Bigbird",
        "performer": "heedful.attention.performer:Performer",
        "synthesizer": "heedful.attention.synthesizer:Synthesizer",
        "zero_after": "heedful.attention.leaking_masks:ZeroAfter",
        "zero_scores": "heedful.attention.leaking_masks:ZeroScores",
    },
)
SIZES = ("n_heads", "d_head", "max_len")


def options(name: str) -> dict[str, Any]:
    """Return the options of a mechanism and their types: arguments of its constructor, `scale`, `dropout`."""
    from heedful.attention.mechanism import Mechanism

    accepted: dict[str, Any] = {}
    for constructor in (Mechanism.__init__, MECHANISMS.find(name).__init__):
        hints, parameters = type_hints(constructor), inspect.signature(constructor).parameters.values()
        names = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
        accepted |= {option: hints[option] for option in names if option not in (*SIZES, "self")}
    return accepted


def make(name: str, *, n_heads: int, d_head: int, max_len: int, **values: Any) -> Mechanism:
    """Build a mechanism. An unknown option is an error that lists the mechanism's options."""
    accepted = options(name)
    for option in values:
        if option not in accepted:
            has = ", ".join(sorted(accepted))
            raise UserError(f'{name} attention has no option "{option}"; it has {has}')
    sizes = {"n_heads": n_heads, "d_head": d_head, "max_len": max_len}
    for option, value in (sizes | values).items():
        convert_value(accepted.get(option, Positive), value, f"{name} attention: {option}")
    return MECHANISMS[name](n_heads=n_heads, d_head=d_head, max_len=max_len, **values)


def parse(spec: str) -> tuple[str, dict[str, Any]]:
    """Read `name` or `name:option=value,option=value`, the form of the command line."""
    name, _, rest = spec.partition(":")
    return name, parse_assignments(filter(None, rest.split(",")), options(name), f"{name} attention", name)


def find_capable(*capabilities: str) -> list[str]:
    """Return the names of the safe mechanisms that can do all of this, for messages that name a remedy."""
    return [
        n for n, cls in MECHANISMS.items() if not cls.unsafe and all(getattr(cls, c) for c in capabilities)
    ]
