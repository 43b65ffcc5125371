"""`heedful adapt`: adapt a model to a task."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.output import JsonResults, console, print_table
from heedful.cli.training import train_or_submit
from heedful.errors import shorten
from heedful.options.launch import HERE, Launch
from heedful.options.training import AdaptOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heedful.runs.schemas import Results, SplitResult

DEFAULTS = AdaptOptions()


def command(
    model: str,
    task: str,
    /,
    *,
    options: Annotated[AdaptOptions, Parameter(name="*")] = DEFAULTS,
    launch: Launch = HERE,
    json: JsonResults = False,
) -> int | None:
    """Adapt a model to a task, and write its scores, checks and best model.

    Dev selects the best evaluation; test is scored once, at the end. A run that
    is stopped (Ctrl-C, SIGTERM, SIGUSR1: status 75) leaves a checkpoint; the same
    command with --resume continues it with the same result, bit for bit. Several
    processes (--processes) give the same result as one; if one of them dies, the
    run ends with status 70.

    Examples:
      heedful adapt minilm world/reviews --method lora --epochs 3
      heedful adapt minilm reviews.csv --method head --lr 1e-3 --epochs 20
      heedful adapt tfidf reviews.csv
      heedful adapt minilm imdb --train-rows 2000
      heedful adapt minilm sst2 --lr 5e-5 --epochs 3 --out runs/sst2 --resume
      heedful adapt minilm sst2 --batch-size 64 --processes 2
      heedful adapt minilm sst2 --on slurm --gpus 1 --time-min 60 --wait
      heedful adapt minilm sst2 --on slurm --nodes 2 --gpus 4 --batch-size 256

    Parameters
    ----------
    model
        A folder in Hub form, minilm, tfidf (words without a network), majority (the most frequent label), a
        preset (heedful list models), or a Hub id.
    task
        boolq, sst2, world/reviews, ..., a file, a folder of splits or classes, or a Hub data set (imdb).
    """
    return train_or_submit(replace(options, model=model, task=task), launch, print_results, json=json)


def print_results(results: Results) -> None:
    """Print scores, intervals and baselines, then the cost."""
    show_splits(f"{results.model} on {results.task}, {results.method}", results.splits)
    show_threshold(results.splits, results.labels)
    console().print(
        f"trained {results.trainable_parameters:,} of {results.total_parameters:,} parameters"
        f"{f' ({results.formula})' if results.formula else ''} in {results.seconds:.0f} s, "
        f"{results.examples_per_second or 0:.0f} examples per second",
        markup=False,
    )


def show_threshold(splits: Mapping[str, SplitResult], labels: Sequence[str] | None) -> None:
    from heedful.report.sentences.runs import describe_threshold

    for sentence in describe_threshold(splits, labels):
        console().print(sentence, markup=False)


def show_splits(title: str, splits: Mapping[str, SplitResult]) -> None:
    """Print one line per split: its score, interval and baselines."""
    rows = []
    for split, r in splits.items():
        interval = f"{r.ci95[0]:.3f} to {r.ci95[1]:.3f}" if r.ci95 and None not in r.ci95 else ""
        simple = [f"{v:.3f}" for v in (r.baselines or {}).values()]
        f1 = [f"{r.macro_f1:.3f}"] if shows_macro_f1(r) else []
        value = f"{r.value:.3f}" if r.value is not None else "not a number"
        n = f"{r.n:,} of {r.of:,}" if r.of else f"{r.n:,}"
        rows.append((split, n, value, interval, *f1, *simple))
    first = next(iter(splits.values()), None)
    if first is None:
        return
    f1 = ["macro F1"] if shows_macro_f1(first) else []
    names = [n.replace("_", " ") for n in (*f1, *(first.baselines or {}))]
    numbers = ("rows", str(first.title), *names)
    print_table(title, ("split", *numbers[:2], "95 % interval", *numbers[2:]), rows, right=numbers)
    show_other_metrics(splits)


def show_other_metrics(splits: Mapping[str, SplitResult]) -> None:
    """Print the metrics beside the one that selects, with their intervals; nothing of a plain label."""
    columns = {split: r.other_metrics for split, r in splits.items() if r.other_metrics}
    if not columns:
        return
    rows = []
    for name, first in next(iter(columns.values())).items():
        cells = []
        for metrics in columns.values():
            one = metrics.get(name)
            value = "" if one is None or one.value is None else f"{one.value:.3f}"
            known = one is not None and one.ci95 is not None and None not in one.ci95
            low, high = one.ci95 if known and one is not None and one.ci95 is not None else (None, None)
            cells.append(f"{value} ({low:.3f} to {high:.3f})" if known else value)
        rows.append((shorten(first.title or name.replace("_", " "), 40), *cells))
    print_table("other metrics, with 95 % intervals", ("metric", *columns), rows, right=tuple(columns))


def shows_macro_f1(result: SplitResult) -> bool:
    """Whether macro F1 is shown beside the metric: it is computed, and is not the metric itself."""
    return result.macro_f1 is not None and result.metric != "macro_f1"
