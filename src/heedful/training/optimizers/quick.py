"""Keeps torch's compiler out of a run that compiles nothing: it takes longer to import than torch."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import optim

COMPILER = "torch._dynamo"
MARK = "__dynamo_disable"
"""Where torch keeps the form of a function that its compiler is to leave alone."""


def build_without_compiler(build: Callable[..., optim.Optimizer], *arguments: Any) -> optim.Optimizer:
    """Return the optimizer that `build` makes, which does without torch's compiler if that is not imported.

    torch's optimizers ask the compiler to leave their methods alone, and import it to ask. Where there is no
    compiler, a method is its own such form. The steps are the same, bit for bit.
    """
    if COMPILER in sys.modules:
        return build(*arguments)
    for method in vars(optim.Optimizer).values():
        plain: Callable[..., Any] | None = getattr(method, "__wrapped__", None)
        code = getattr(method, "__code__", None)
        if plain is not None and code is not None and code.co_filename.endswith("_compile.py"):
            plain.__dict__.setdefault(MARK, plain)
    optimizer = build(*arguments)
    step = type(optimizer).step
    if step.__module__.startswith("torch.optim."):
        without_gradients = torch.no_grad()(partial(inspect.unwrap(step), optimizer))
        optimizer.step = without_gradients  # type: ignore[method-assign]
    return optimizer
