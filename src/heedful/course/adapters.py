"""Finds in a student's file what a suite asks for, by the usual names or through a short `adapters.py`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

from heedful.contracts.suite import SUITES
from heedful.course.student_file import ADAPTERS, Operation, StudentFile
from heedful.errors import UserError

FORMS = {
    "answers": "heedful.course.forms.answers",
    "attention": "heedful.course.forms.attention",
    "bert": "heedful.course.forms.bert",
    "bpe": "heedful.course.forms.bpe",
    "generation": "heedful.course.forms.generation",
    "gpt": "heedful.course.forms.gpt",
    "joint-loss": "heedful.course.forms.joint_loss",
    "london-baseline": "heedful.course.forms.london_baseline",
    "lora": "heedful.course.forms.lora",
    "masked": "heedful.course.forms.masked",
    "span-corruption": "heedful.course.forms.span_corruption",
    "training": "heedful.course.forms.training",
}
"""The module that finds the operations of each suite in a student's file."""
SCRIPTS = frozenset({"london-baseline"})
"""Suites whose files may be scripts: importing one runs it, and it may end early."""


def load_operations(path: Path, suite: str) -> dict[str, Operation]:
    """Import a file and return the operations of a suite that it has; none is a `UserError`."""
    return find_operations(StudentFile(path, script=suite in SCRIPTS), suite)


def find_operations(file: StudentFile, suite: str) -> dict[str, Operation]:
    """Return the operations of a suite that a file has; none is a `UserError`."""
    needed = SUITES.find(suite).operations
    operations = {
        name: Operation(partial(call_adapter, function), {"found": function.__name__, "adapter": True})
        for name in needed
        if (function := file.adapter(name)) is not None
    }
    if suite in FORMS:
        found: dict[str, Operation] = import_module(FORMS[suite]).find_operations(file)
        operations = {**found, **operations}
    if not operations:
        names = [*file.classes(), *file.functions()]
        raise UserError(
            f"{file.path.name}: nothing in it is known as {suite}; "
            f"it has {', '.join(names[:10]) or 'no functions'}. "
            f"Use a usual name, or write {ADAPTERS} beside it with one of {', '.join(needed) or 'answer_...'}"
        )
    return operations


def call_adapter(function: Callable[..., Any], **inputs: Any) -> Any:
    """Call a function of `adapters.py` with those inputs that it takes."""
    parameters: Mapping[str, inspect.Parameter] = inspect.signature(function).parameters
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return function(**inputs)
    return function(**{name: value for name, value in inputs.items() if name in parameters})
