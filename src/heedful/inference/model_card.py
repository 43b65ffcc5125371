"""The model card of a run: scores with intervals and baselines, failed checks, data and command."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from heedful import __version__
from heedful.runs.directory import CHECKS, Run
from heedful.runs.schemas import Results, SplitResult, summarize_check

BASELINES = {"majority": "most frequent label", "bag_of_words": "bag of words", "chance": "chance"}
NEVER = ("train", "train_eval")
"""Splits whose scores say nothing about new texts."""


def write_model_card(run: Run, loads_with: str, usage: str) -> str:
    """Return the card of a run's best model as Markdown with the metadata of the Hub.

    Parameters
    ----------
    run
        A finished run.
    loads_with
        What loads the folder: transformers, sentence-transformers, peft, onnxruntime or heedful.
    usage
        Code that uses the model.

    """
    from huggingface_hub import ModelCard, ModelCardData

    results, config = run.read_results(), run.read_config()
    options = next(value for value in config.values() if isinstance(value, Mapping))
    name = run.path.absolute().name
    libraries = {"transformers", "sentence-transformers", "peft"}
    data = ModelCardData(
        model_name=name,
        library_name=loads_with if loads_with in libraries else "heedful",
        base_model=public_name(results.model),
        pipeline_tag="text-classification" if results.labels else None,
        tags=["heedful"],
        eval_results=list(list_evaluations(results)) or None,
    )
    sections = [
        f"# {name}",
        f"`{public_name(results.model) or 'A model'}` adapted to `{Path(results.task).name}` by "
        f"{results.method}, with heedful {__version__}; {results.trainable_parameters:,} of "
        f"{results.total_parameters:,} parameters were trained.",
        "## Scores",
        score_table(results),
        "An interval is one of 95 % over the examples. A score on dev has chosen the model, and is a little "
        "too high.",
        *describe_failed_checks(run),
        "## Data",
        describe_data(results, options),
        "## Use",
        usage,
        "## How it was made",
        f"```\n{describe_command(str(config.get('command', 'adapt')), options)}\n```",
    ]
    return str(ModelCard(f"---\n{data.to_yaml()}\n---\n\n" + "\n\n".join(sections) + "\n"))


def public_name(model: str) -> str | None:
    """Return the name of a base model; a path on this machine is nobody else's business."""
    if Path(model).is_absolute() or model.startswith((".", "~")) or Path(model).is_dir():
        return None
    return model


def list_evaluations(results: Results) -> Iterator[Any]:
    """Yield the scores for `model-index`, which lists results by task, data set and metric."""
    from huggingface_hub import EvalResult

    for name, split in results.splits.items():
        if split.value is not None and name not in NEVER:
            yield EvalResult(
                task_type="text-classification",
                dataset_type=Path(results.task).stem,
                dataset_name=Path(results.task).stem,
                dataset_split=name,
                metric_type=split.metric,
                metric_value=round(split.value, 4),
            )


def score_table(results: Results) -> str:
    names = list(dict.fromkeys(name for split in results.splits.values() for name in split.baselines or {}))
    head = ["split", "rows", "metric", "value", "95 % interval", *(BASELINES.get(n, n) for n in names)]
    rows = [head, ["---"] * len(head)]
    for split, result in results.splits.items():
        baselines = [show_score((result.baselines or {}).get(name)) for name in names]
        rows.append([split, f"{result.n:,}", result.metric, *show_value(result), *baselines])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def show_value(result: SplitResult) -> tuple[str, str]:
    low, high = result.ci95 or (None, None)
    interval = "" if low is None or high is None else f"{low:.3f} to {high:.3f}"
    return show_score(result.value), interval


def show_score(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"


def describe_failed_checks(run: Run) -> list[str]:
    """Return what the run found wrong with itself, without the texts that its messages may quote."""
    if not (run.path / CHECKS).is_file():
        return []
    found = [check for check in run.read_checks().checks if check.status in ("failed", "warning")]
    lines = [f"- {check.status}: {summarize_check(check.name)}" for check in found]
    return ["## Checks", "\n".join(lines) if lines else "The run's checks of itself found nothing."]


def describe_data(results: Results, options: Mapping[str, Any]) -> str:
    rows = ", ".join(f"{split.n:,} of {name}" for name, split in results.splits.items())
    labels = "" if not results.labels else f" Labels: {', '.join(results.labels)}."
    read = options.get("max_len")
    cut = "" if read is None else f" Texts are read up to {read} tokens."
    return f"Scored on {rows} rows of `{Path(results.task).name}`.{labels}{cut}"


def describe_command(command: str, options: Mapping[str, Any]) -> str:
    """Return the command that makes the run again; paths are without their folders."""
    words = [
        f"--{name.replace('_', '-')} {value}"
        for name, value in sorted(options.items())
        if isinstance(value, str | int | float)
        and not isinstance(value, bool)
        and name not in ("model", "task", "out")
        and not str(value).startswith(("/", "~", "."))
    ]
    model, task = (Path(str(options.get(name, ""))).name for name in ("model", "task"))
    return " ".join(["heedful", command, model, task, *words])
