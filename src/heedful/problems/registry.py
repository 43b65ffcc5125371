"""The kinds of problems by name: those of this package, then those of installed packages.

A kind is one class in one file. Another package adds one through an entry point, and
`heedful adapt --kind NAME` uses it:

    [project.entry-points."heedful.problems"]
    graded = "my_package:Graded"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heedful.errors import UserError
from heedful.plugins import Registry
from heedful.problems.base import Problem

PROBLEMS: Registry[type[Problem]] = Registry(
    "problem",
    {
        "label": "heedful.problems.label:Label",
        "labels": "heedful.problems.labels:Labels",
        "number": "heedful.problems.number:Number",
        "ordered": "heedful.problems.ordered:Ordered",
        "text": "heedful.problems.text:FreeText",
        "next_token": "heedful.problems.next_token:NextToken",
    },
)


def find_problem(name: str) -> Problem:
    """Return the problem of that name; an unknown name is a `UserError` that lists the nearest ones."""
    return PROBLEMS.find(name)()


def find_problem_of_task(kind: str) -> Problem:
    """Return the problem that a task of this kind asks for."""
    for name in PROBLEMS.paths:
        if PROBLEMS[name].task_kind == kind:
            return find_problem(name)
    raise UserError(f'a task of the kind "{kind}" asks for no known problem; --kind names one')


def find_problem_of_options(command: str, options: Mapping[str, Any]) -> Problem:
    """Return the problem that a run's options ask for, as far as they tell without its task or objective."""
    if options.get("kind") in PROBLEMS:
        return find_problem(options["kind"])
    problems = [PROBLEMS[name]() for name in PROBLEMS.paths if PROBLEMS[name].command == command]
    return next((p for p in problems if p.objective == options.get("objective")), problems[0])


def find_metric_name(options: Any, objective: Any) -> str:
    """Return the name of the metric that a run selects by.

    It is the one that the options name, else that of the kind of problem that they name, else that of the
    objective.
    """
    if options.metric is not None:
        return str(options.metric)
    kind = getattr(options, "kind", None)
    return PROBLEMS.find(kind).metric if kind is not None else str(objective.metric)
