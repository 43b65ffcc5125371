"""Heedful: from how attention works to a Transformer language model adapted to your problem.

    import heedful

    solved = heedful.solve("reviews.csv", minutes=10)
    solved.predict(["What a lovely place."])
    run = heedful.adapt("minilm", "reviews.csv", method="lora")
    run.results.splits["test"].value
    heedful.TextClassifier("minilm", method="head").fit(texts, labels)

Importing this package is quick: torch is imported only when something needs it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from heedful.api import tokenizer as tokenizer
    from heedful.api.commands import adapt as adapt
    from heedful.api.commands import attention_study as attention_study
    from heedful.api.commands import compare as compare
    from heedful.api.commands import knowledge as knowledge
    from heedful.api.commands import labels as labels
    from heedful.api.commands import optimizers as optimizers
    from heedful.api.commands import overfit as overfit
    from heedful.api.commands import pretrain as pretrain
    from heedful.api.commands import search as search
    from heedful.api.commands import solve as solve
    from heedful.api.use import evaluate as evaluate
    from heedful.api.use import explain as explain
    from heedful.api.use import load as load
    from heedful.api.use import predict as predict
    from heedful.api.use import report as report
    from heedful.contracts.selftest import selftest as selftest
    from heedful.errors import UserError as UserError
    from heedful.estimators import TextClassifier as TextClassifier
    from heedful.estimators import TextRegressor as TextRegressor
    from heedful.results import RunResult as RunResult
    from heedful.results import SolveResult as SolveResult
    from heedful.results import StudyResult as StudyResult

__version__ = "0.2.0"

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
    "solve",
    "statistics",
    "studies",
    "text",
    "training",
)
"""Reachable as attributes without importing them by name: `heedful.models.load("minilm")`."""

COMMANDS = "adapt attention_study compare knowledge labels optimizers overfit pretrain search"
PUBLIC = {
    **dict.fromkeys(COMMANDS.split(), "api.commands"),
    **dict.fromkeys(("evaluate", "explain", "load", "predict"), "api.use"),
    "RunResult": "results",
    "SolveResult": "results",
    "StudyResult": "results",
    "TextClassifier": "estimators",
    "TextRegressor": "estimators",
    "UserError": "errors",
    "selftest": "contracts.selftest",
    "tokenizer": "api",
}
"""Functions and classes, and the modules that they are in. `report` and `solve` are packages that can be
called."""

__all__ = ["PUBLIC", "SUBPACKAGES", "__version__", *PUBLIC, "report", "solve"]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    """Import a function or a subpackage when it is first asked for."""
    if name in PUBLIC:
        module = import_module(f"heedful.{PUBLIC[name]}")
        return getattr(module, name) if hasattr(module, name) else import_module(f"{module.__name__}.{name}")
    if name in SUBPACKAGES:
        return import_module(f"heedful.{name}")
    raise AttributeError(f"module 'heedful' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names for completion."""
    return sorted([*globals(), *PUBLIC, *SUBPACKAGES])
