"""`heedful.adapt` and `heedful.pretrain`."""

from __future__ import annotations

import os
from typing import Any

from heedful.launch.processes import launch_training
from heedful.options.keywords import Signature
from heedful.options.launch import TrainLaunchOptions
from heedful.options.training import AdaptOptions, PretrainOptions
from heedful.process_state import keeps_process_state
from heedful.results import RunResult

Folder = str | os.PathLike[str]
"""A name, a path, or a result that was returned before."""
ADAPT = Signature("heedful.adapt", (AdaptOptions, TrainLaunchOptions), ("model", "task"))
PRETRAIN = Signature("heedful.pretrain", (PretrainOptions, TrainLaunchOptions), ("model", "corpus"))


@keeps_process_state
def adapt(model: Folder, task: Any, labels: Any = None, **options: Any) -> RunResult:
    """Adapt a model to a task, and return the run with its scores, checks and best model.

    The options are those of `heedful adapt`, with the same defaults. Dev selects the best evaluation; test
    is scored once, at the end. `task` is a name or a path, or data in memory: texts with `labels`, a
    DataFrame, a `datasets.Dataset`, or a dict of splits.

    Examples
    --------
    >>> run = heedful.adapt("minilm", "reviews.csv", method="lora", method_options={"rank": 4}, epochs=3)
    >>> run.results.splits["test"].value
    >>> run.predict(["What a lovely place."])
    >>> heedful.adapt("minilm", texts, labels, method="head")
    """
    run_options, launch = ADAPT.parse({"model": model, "task": store_data(task, labels), **options})
    return start_run(run_options, launch)


@keeps_process_state
def pretrain(model: Folder, corpus: Any, **options: Any) -> RunResult:
    """Train a language model on text, and return the run with its figures, checks and best model.

    The options are those of `heedful pretrain`, with the same defaults. `corpus` is a name or a path, or
    texts in memory.

    Examples
    --------
    >>> run = heedful.pretrain("char-gpt", "notes.txt", tokenizer="char", model_options={"n_layers": 2})
    >>> run.results.splits["dev"].bits_per_character
    """
    run_options, launch = PRETRAIN.parse({"model": model, "corpus": store_data(corpus), **options})
    return start_run(run_options, launch)


def start_run(options: AdaptOptions | PretrainOptions, launch: TrainLaunchOptions) -> RunResult:
    """Train here, or submit the same command to a cluster; then the run is not finished yet."""
    if not launch.elsewhere:
        return RunResult(launch_training(options).folder)
    from heedful.launch.submit import submit_run

    submitted = submit_run(options, launch)
    return RunResult(submitted.folder, script=submitted.job.script)


def store_data(data: Any, labels: Any = None) -> str:
    """Return the name or path of data; what is in memory is written to the cache."""
    from heedful.data.sources import materialize

    return materialize(data, labels)
