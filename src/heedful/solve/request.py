"""What a command asks for, checked before the time is spent: its candidates, its data and its folder."""

from __future__ import annotations

from collections.abc import Sequence

from heedful.data import Task
from heedful.data.run_options import absolute_value
from heedful.errors import UserError, unknown
from heedful.options.command_line import option_flags
from heedful.options.solve import SolveOptions
from heedful.solve.candidates import CANDIDATES, Candidate, DataFacts


def find_candidates(names: Sequence[str]) -> list[Candidate]:
    by_name = {candidate.name: candidate for candidate in CANDIDATES}
    for name in names:
        if name not in by_name:
            raise unknown("candidate", name, by_name)
    return [candidate for candidate in CANDIDATES if not names or candidate.name in names]


def read_facts(task: Task) -> DataFacts:
    """Return what the plan needs to know; refuse data that cannot be solved."""
    rows = {name: len(split) for name, split in task.splits.items() if split.labels is not None}
    if len(task.label_names) < 2:
        raise UserError(f"{task.name}: solve needs rows with at least two different labels")
    if not rows.get("dev"):
        raise UserError(f"{task.name}: there are no dev rows to select on; add a dev file, or give one file")
    return DataFacts(rows, len(task.label_names), task.name)


def write_command(options: SolveOptions) -> tuple[str, ...]:
    """Return the words after `heedful` that repeat the command from any folder."""
    flags = option_flags(options, ("task", "overwrite"), absolute_value)
    return ("solve", str(absolute_value("task", options.task)), *flags)
