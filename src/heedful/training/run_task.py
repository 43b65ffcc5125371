"""The task of a run, loaded as its kind of problem needs it."""

from __future__ import annotations

from dataclasses import replace

from heedful.data import Task, load_task
from heedful.data.folds import take_fold
from heedful.data.joining import join_dev
from heedful.data.named_tasks import Kind
from heedful.data.splits import sample
from heedful.errors import UserError
from heedful.options.training import AdaptOptions
from heedful.problems.registry import find_problem


def load_run_task(options: AdaptOptions) -> Task:
    """Load the task that the options name, with as many rows of dev as they ask for."""
    task = load_task(
        options.task,
        data_dir=options.data_dir,
        text_column=options.text_column,
        pair_column=options.pair_column,
        label_column=options.label_column,
        group=options.group,
        time=options.time,
        split=options.split,
        seed=options.split_seed,
        kind=find_task_kind(options),
        strict=options.strict,
    )
    if options.with_dev:
        for name in ("fold", "dev_rows"):
            if getattr(options, name) is not None:
                raise UserError(f"--with-dev and --{name.replace('_', '-')} exclude each other")
        return join_dev(task)
    if options.fold is not None:
        task = take_fold(task, options.fold, options.seed)
    if options.dev_rows is None:
        return task
    if "dev" not in task.splits:
        raise UserError(f"--dev-rows {options.dev_rows}: there is no dev split")
    dev = task.splits["dev"]
    if not 0 < options.dev_rows <= len(dev):
        raise UserError(f"--dev-rows {options.dev_rows}: dev has {len(dev)} rows")
    return replace(task, splits={**task.splits, "dev": sample(dev, options.dev_rows, options.split_seed)})


def find_task_kind(options: AdaptOptions) -> Kind | None:
    """Return the kind that a run's task is loaded as; None for the task's own."""
    if options.kind is not None:
        return find_problem(options.kind).load_as
    if options.objective == "auto":
        return None
    from heedful.objectives.registry import OBJECTIVES  # needs torch

    problem = find_problem(OBJECTIVES.find(options.objective).problem)
    return problem.load_as if problem.generates_text else None
