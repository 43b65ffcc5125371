"""What a study stores of its command: the options that its runs share, and the words that repeat it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from heedful.data.run_options import absolute_value
from heedful.options.command_line import option_flags
from heedful.options.training import AdaptOptions

if TYPE_CHECKING:
    from heedful.options.studies import StudyOptions
    from heedful.studies.base import Study

NOT_SHARED = ("out", "resume", "overwrite", "score_test", "threads")
"""Options of a run that are not part of the study's question."""
NOT_REPEATED = ("overwrite", "retry", "launch")


def shared_options(options: AdaptOptions, decided: Iterable[str] = ()) -> dict[str, Any]:
    """Return the options that all runs of a study have and that differ from the defaults of adapt."""
    left_out = {*NOT_SHARED, *decided}
    rows = {} if options.train_rows is None else {"balanced": options.balanced}
    return rows | {
        field.name: absolute_value(field.name, value)
        for field in fields(AdaptOptions)
        if field.name not in left_out and (value := getattr(options, field.name)) != field.default
    }


def write_command(
    kind: type[Study], options: StudyOptions, run: AdaptOptions | None = None
) -> tuple[str, ...]:
    """Return the command that makes a study from any folder, without options at their default."""
    groups = [options] if run is None else [options, run]
    arguments = [getattr(groups[-1], name) for name in kind.arguments]
    left_out = (*kind.arguments, *NOT_REPEATED)
    words = ["study", kind.name, *(absolute_value("task", word) for word in arguments)]
    for group in groups:
        words += option_flags(group, left_out, absolute_value)
    return tuple(words)
