"""What a run's options say about its data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from heedful.data import load_task
from heedful.data.named_tasks import TASKS
from heedful.data.splits import sample
from heedful.data.tasks import Task
from heedful.errors import UserError
from heedful.options.training import AdaptOptions

PATHS = ("model", "task", "corpus", "tokenizer", "dev", "test", "questions")
"""Options that hold a path or a name."""


def load_run_task(options: AdaptOptions) -> Task:
    """Load the task that the options name, with as many rows of dev as they ask for."""
    task = load_task(
        options.task,
        data_dir=options.data_dir,
        text_column=options.text_column,
        pair_column=options.pair_column,
        label_column=options.label_column,
        split=options.split,
        seed=options.split_seed,
        kind="text2text" if options.objective == "answer" else None,
    )
    if options.dev_rows is None:
        return task
    dev = task.splits["dev"]
    if not 0 < options.dev_rows <= len(dev):
        raise UserError(f"--dev-rows {options.dev_rows}: dev has {len(dev)} rows")
    return replace(task, splits={**task.splits, "dev": sample(dev, options.dev_rows, options.split_seed)})


def absolute_value(name: str, value: Any) -> Any:
    """Return an option's value with its path made absolute; a name of a task or a model stays a name."""
    if isinstance(value, Path):
        return str(value.expanduser().absolute())
    if name == "models":
        return ",".join(absolute_value("model", model) for model in value.split(","))
    named = name in ("task", "corpus") and value in TASKS
    if name in PATHS and not named and Path(value).expanduser().exists():
        return str(Path(value).expanduser().absolute())
    return value
