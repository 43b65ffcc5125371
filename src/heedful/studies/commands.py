"""What a study keeps of its command: the options that its runs share, and the words that repeat it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

from heedful.data.run_options import absolute_value
from heedful.options.command_line import option_flags
from heedful.options.training import AdaptOptions

NOT_SHARED = ("out", "resume", "overwrite", "score_test", "threads")
"""Options of a run that are not part of the study's question."""
ARGUMENTS = {"knowledge": ("data",), "attention": ("corpus",)}
"""The fields that are arguments of a study's command; model and task for the others."""
NOT_REPEATED = ("overwrite", "retry", "launch")


def shared_options(options: AdaptOptions, decided: Iterable[str] = ()) -> dict[str, Any]:
    """Return the options that all runs of a study have and that differ from the defaults of adapt."""
    left_out = {*NOT_SHARED, *decided}
    return {
        field.name: absolute_value(field.name, value)
        for field in fields(AdaptOptions)
        if field.name not in left_out and (value := getattr(options, field.name)) != field.default
    }


def study_command(kind: str, arguments: Iterable[str], *groups: Any) -> tuple[str, ...]:
    """Return the command that makes a study from any folder, without options at their default."""
    words = ["study", kind, *(absolute_value("task", word) for word in arguments)]
    left_out = (*ARGUMENTS.get(kind, ("model", "task")), *NOT_REPEATED)
    for options in groups:
        words += option_flags(options, left_out, absolute_value)
    return tuple(words)
