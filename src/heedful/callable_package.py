"""Packages that are also functions: `heedful.report` and `heedful.solve` are both."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """A package whose `function` (`module:name`) is called when the package is."""

    function = ""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self.find_function()(*arguments, **options)

    @property
    def __signature__(self) -> Any:
        from inspect import signature

        return signature(self.find_function())

    def find_function(self) -> Any:
        module, _, name = self.function.partition(":")
        return getattr(import_module(module), name)


def make_callable(package: str, function: str) -> None:
    """Let a package that is being imported be called as the function that `function` names."""
    sys.modules[package].__class__ = type("CallablePackage", (CallablePackage,), {"function": function})
