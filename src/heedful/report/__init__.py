"""Charts and pages, made from run directories and plain numbers alone. Never imports torch.

The package can be called: `heedful.report(run, out="report.html")` is `heedful.api.use.report`.
"""

import sys
from importlib import import_module
from types import ModuleType
from typing import Any


class CallableModule(ModuleType):
    """A package that is also a function, because `heedful.report` is both."""

    def __call__(self, *folders: Any, **options: Any) -> Any:
        return import_module("heedful.api.use").report(*folders, **options)

    @property
    def __signature__(self) -> Any:
        from inspect import signature

        return signature(import_module("heedful.api.use").report)


sys.modules[__name__].__class__ = CallableModule
