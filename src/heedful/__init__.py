"""Heedful: from how attention works to a Transformer language model adapted to your problem.

Importing this package is quick: torch is imported only when something needs it.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

SUBPACKAGES = ("attention", "checkpoints", "data", "evaluation", "models", "report", "runs", "text")
"""Reachable as attributes without importing them by name: `heedful.models.load("minilm")`."""

__all__ = ["SUBPACKAGES", "__version__"]


def __getattr__(name: str) -> Any:
    """Import a subpackage when it is first asked for."""
    if name in SUBPACKAGES:
        return import_module(f"heedful.{name}")
    raise AttributeError(f"module 'heedful' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names for completion."""
    return sorted([*globals(), *SUBPACKAGES])
