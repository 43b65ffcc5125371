"""The functions with their signatures: one parameter per option of the command.

The parameters come from the dataclasses in `heedful.options`. Editors and type checkers read them from
`commands.pyi`, which `python scripts/write_api.py` writes.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from heedful.api import solve, studies, training
from heedful.options.keywords import Signature

FUNCTIONS: dict[str, tuple[Callable[..., Any], Signature]] = {
    "solve": (solve.solve, solve.SOLVE),
    "adapt": (training.adapt, training.ADAPT),
    "pretrain": (training.pretrain, training.PRETRAIN),
    "search": (studies.search, studies.SEARCH),
    "compare": (studies.compare, studies.COMPARE),
    "labels": (studies.labels, studies.LABELS),
    "optimizers": (studies.optimizers, studies.OPTIMIZERS),
    "overfit": (studies.overfit, studies.OVERFIT),
    "knowledge": (studies.knowledge, studies.KNOWLEDGE),
    "attention_study": (studies.attention_study, studies.ATTENTION),
}
"""The functions by name, each with the options that it takes."""
LABELS_HELP = "\nlabels\n    The labels of texts in memory, one per text."


def list_parameters(function: Callable[..., Any], signature: Signature) -> list[inspect.Parameter]:
    """Return the arguments of a function, then one keyword per option."""
    written = inspect.signature(inspect.unwrap(function), eval_str=True).parameters.values()
    options = {n: o for n, o in signature.options().items() if n not in signature.arguments}
    return [
        *(parameter for parameter in written if parameter.kind is not parameter.VAR_KEYWORD),
        *(
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=option.default, annotation=option.annotation()
            )
            for name, option in options.items()
        ),
    ]


def describe_parameters(function: Callable[..., Any], signature: Signature) -> str:
    """Return the docstring of a function, completed by its parameters."""
    function = inspect.unwrap(function)
    text = inspect.cleandoc(function.__doc__ or "")
    section = signature.describe()
    if "labels" in inspect.signature(function).parameters:
        following = f"\n{list(signature.options())[len(signature.arguments)]}\n"
        section = section.replace(following, f"{LABELS_HELP}{following}", 1)
    about, examples, code = text.partition("Examples\n--------\n")
    return f"{about}{section}\n\n{examples}{code}\n"


def complete(function: Callable[..., Any], signature: Signature) -> Callable[..., Any]:
    """Give a function the signature and the docstring that `help` shows."""
    returned = inspect.signature(inspect.unwrap(function), eval_str=True).return_annotation
    parameters = list_parameters(function, signature)
    function.__signature__ = inspect.Signature(parameters, return_annotation=returned)  # type: ignore[attr-defined]
    function.__doc__ = describe_parameters(function, signature)
    function.__module__ = "heedful"
    return function


globals().update({name: complete(*entry) for name, entry in FUNCTIONS.items()})
