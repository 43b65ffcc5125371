"""The objectives by name: those of this package, then those of installed packages.

An objective is one class in one file. Its class attributes declare what is true of it (see `Objective`), and
its `build` makes it from a task or from text. Another package adds one through an entry point:

    [project.entry-points."heedful.objectives"]
    focal = "my_package:Focal"
"""

from __future__ import annotations

from collections.abc import Iterable

from heedful.errors import UserError
from heedful.objectives.base import Objective
from heedful.options.training import LoopOptions
from heedful.plugins import Registry

OBJECTIVES: Registry[type[Objective]] = Registry(
    "objective",
    {
        "classify": "heedful.objectives.classify:Classify",
        "labels": "heedful.objectives.classify:ClassifySets",
        "number": "heedful.objectives.classify:Regress",
        "ordered": "heedful.objectives.classify:ClassifyOrdered",
        "text2text": "heedful.objectives.text2text:Text2Text",
        "joint": "heedful.objectives.joint:Joint",
        "answer": "heedful.objectives.answer:AnswerObjective",
        "causal": "heedful.objectives.causal:Causal",
        "masked": "heedful.objectives.masked:Masked",
        "span": "heedful.objectives.span:Span",
    },
)


def find_objective(name: str, command: str) -> type[Objective]:
    """Return the objective of that name, if the command can train it."""
    objective = OBJECTIVES.find(name)
    if command not in objective.commands:
        others = " or ".join(f"heedful {other}" for other in objective.commands)
        raise UserError(f"--objective {name}: is for {others}, not for heedful {command}")
    return objective


def refuse_options_of_others(options: LoopOptions, objectives: Iterable[str]) -> None:
    """Refuse options that change nothing because they belong to other objectives than these."""
    read = {name for objective in objectives for name in OBJECTIVES[objective].own_options}
    defaults = type(options)()
    for owner in OBJECTIVES.paths:
        for name in OBJECTIVES[owner].own_options:
            unread = name not in read and hasattr(options, name)
            if unread and getattr(options, name) != getattr(defaults, name):
                raise UserError(f"--{name.replace('_', '-')} belongs to --objective {owner}")
