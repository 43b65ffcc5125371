"""Methods by name. Importing this module imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from heedful.errors import UserError
from heedful.plugins import Registry

if TYPE_CHECKING:
    from heedful.methods.base import Method

METHODS: Registry[type[Method]] = Registry(
    "method",
    {
        "full": "heedful.methods.subsets:Full",
        "head": "heedful.methods.subsets:Head",
        "top-layers": "heedful.methods.subsets:TopLayers",
        "prompt": "heedful.methods.prompt:Prompt",
        "prefix": "heedful.methods.prefix:Prefix",
        "lora": "heedful.methods.lora:Lora",
        "bitfit": "heedful.methods.subsets:Bitfit",
        "contrastive": "heedful.methods.contrastive:Contrastive",
    },
)


def options(name: str) -> dict[str, Any]:
    from heedful.methods.base import options_of

    return options_of(METHODS.find(name))


def make(name: str, **values: Any) -> Method:
    """Build a method. An unknown option is an error that lists the method's options."""
    accepted = options(name)
    for option in values:
        if option not in accepted:
            has = f"it has {', '.join(sorted(accepted))}" if accepted else "it has none"
            raise UserError(f'method {name} has no option "{option}"; {has}')
    return METHODS[name](**values)
