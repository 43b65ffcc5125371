"""Heedful: from how attention works to a Transformer language model adapted to your problem.

    import heedful

    done = heedful.adapt("minilm", "reviews.csv", method="lora")
    model = heedful.load(done.folder)
    model.predict(["What a lovely place."])

Importing this package is quick: torch is imported only when something needs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.inference.loading import load_run as load
    from heedful.launch.api import adapt as adapt
    from heedful.launch.api import pretrain as pretrain

__version__ = "0.1.0"

SUBPACKAGES = (
    "attention",
    "checkpoints",
    "data",
    "evaluation",
    "inference",
    "lab",
    "methods",
    "models",
    "objectives",
    "report",
    "runs",
    "statistics",
    "studies",
    "text",
    "training",
)
"""Reachable as attributes without importing them by name: `heedful.models.load("minilm")`."""

PUBLIC = {
    "adapt": ("launch.api", "adapt"),
    "load": ("inference.loading", "load_run"),
    "pretrain": ("launch.api", "pretrain"),
}
"""Functions, and where they are."""

__all__ = ["PUBLIC", "SUBPACKAGES", "__version__", "adapt", "load", "pretrain"]


def __getattr__(name: str) -> Any:
    """Import a function or a subpackage when it is first asked for."""
    if name in PUBLIC:
        module, attribute = PUBLIC[name]
        return getattr(import_module(f"heedful.{module}"), attribute)
    if name in SUBPACKAGES:
        return import_module(f"heedful.{name}")
    raise AttributeError(f"module 'heedful' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names for completion."""
    return sorted([*globals(), *PUBLIC, *SUBPACKAGES])
