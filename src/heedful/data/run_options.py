"""What a run's options say about its data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.data.named_tasks import TASKS
from heedful.options.model_names import ENSEMBLE, LINEAR_MODELS
from heedful.paths import expand_path
from heedful.runs.directory import CHECKPOINTS, is_output

PATHS = ("model", "task", "corpus", "tokenizer", "dev", "test", "questions")
"""Options that hold a path or a name."""


def absolute_value(name: str, value: Any) -> Any:
    """Return an option's value with its path made absolute; a name of a task or a model stays a name."""
    if isinstance(value, Path):
        return str(expand_path(value).absolute())
    if name == "models":
        return ",".join(absolute_value("model", model) for model in value.split(","))
    named = (name in ("task", "corpus") and value in TASKS) or (
        name == "model" and value in (*LINEAR_MODELS, ENSEMBLE)
    )
    if name not in PATHS or named:
        return value
    path = expand_path(value)
    # A run that is only beginning has no configuration yet; its folder may have the name of its task.
    is_of_run = name == "task" and len(path.parts) == 1 and (is_output(path) or (path / CHECKPOINTS).is_dir())
    return value if is_of_run or not path.exists() else str(path.absolute())
