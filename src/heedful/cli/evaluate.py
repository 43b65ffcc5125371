"""`heedful evaluate`: score the best model of a run."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from heedful.cli.output import Flag, Json, console, print_json
from heedful.options.launch import ONCE, Once
from heedful.options.types import Several

if TYPE_CHECKING:
    from heedful.results import EvaluationResult


def command(
    run: Path,
    /,
    *,
    split: Literal["train", "dev", "test"] | None = None,
    data: str | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    strict: Flag = False,
    metric: str | None = None,
    corpus: str | None = None,
    sentences: Several = (),
    launch: Once = ONCE,
    json: Json = False,
) -> int | None:
    """Score the best model of a run on a split or on new data, with a 95 % interval.

    The score of a task is shown with its baselines; the perplexity of a
    language model with the mean over sentences, bits per character, bits per
    byte and the share of unknown tokens. Data and options come from the run's
    config.toml; nothing is written. Use test only for the one model that dev
    selected: the best of many test scores is too high.

    Examples:
      heedful evaluate runs/sst2 --split test
      heedful evaluate runs/sst2 --split dev --json
      heedful evaluate runs/reviews --data new-reviews.csv
      heedful evaluate runs/sst2 --metric macro_f1
      heedful evaluate runs/sst2 --on slurm --gpus 1 --wait
      heedful evaluate runs/ptb --corpus other.txt
      heedful evaluate runs/ptb --sentences "the cat sat" "the sat cat"

    Parameters
    ----------
    run
        Folder of a run; with --data, also one that heedful export wrote, or a classifier of transformers: a
        folder or a Hub id.
    split
        train (all rows, also those that --train-rows left out), dev (the rows that --dev-rows selected) or
        test. By default test, or dev for a language model without a test split.
    data
        Other data with labels: a file, or a folder or task whose test split is scored.
    text_column
        With --data: name of the column with the text. By default that of the run's own data.
    pair_column
        With --data: name of the column with the second text of a pair.
    label_column
        With --data: name of the column with the label.
    strict
        With --data: refuse a file with bad rows instead of skipping them.
    metric
        Metric to score by (heedful list metrics). By default that which the run was selected by.
    corpus
        For language models: score this text instead of a split.
    sentences
        For language models: sentences, or a file with one per line, whose loss and perplexity to report.
    """
    from heedful.inference.loading import is_export
    from heedful.runs.directory import Run

    exported = is_export(run)
    config = {} if exported else Run.open(run).read_config()
    if launch.elsewhere:
        from heedful.cli.submit import send
        from heedful.options.command_line import command_words

        words = command_words(["evaluate"], [run])
        words += (f"--split={split}",) if split else ()
        given = {"corpus": corpus, "data": data, "text-column": text_column, "pair-column": pair_column}
        given |= {"label-column": label_column, "metric": metric}
        words += tuple(f"--{name}={value}" for name, value in given.items() if value)
        words += ("--strict",) if strict else ()
        words += tuple(f"--sentences={text}" for text in sentences)
        words += ("--json",) if json and launch.wait else ()
        stem = f"evaluate-{split or 'test'}"
        names = (stem if n == 1 else f"{stem}-{n}" for n in count(1))
        folder = next(path for name in names if not (path := run / "jobs" / name).exists())
        return send(words, launch, folder, name=f"evaluate-{run.absolute().name}", json=json)
    from heedful.api.use import evaluate as score

    columns = {"text_column": text_column, "pair_column": pair_column, "label_column": label_column}
    result = score(
        run,
        split=split,
        data=data,
        **columns,
        strict=strict,
        metric=metric,
        corpus=corpus,
        sentences=sentences,
    )
    if config.get("command") == "pretrain":
        print_language_scores(run, result, json=json)
    else:
        print_task_scores(run, result, json=json)
    return None


def print_task_scores(run: Path, evaluated: EvaluationResult, *, json: bool) -> None:
    from heedful.cli.adapt import show_splits, show_threshold
    from heedful.runs.files import to_json_value

    ((split, result),) = evaluated.splits.items()
    recorded = evaluated.recorded.get(split)
    if json:
        print_json({"run": str(run), "split": split, **to_json_value(result), "recorded": recorded})
        return
    show_splits(f"{run}, best model", evaluated.splits)
    show_threshold(evaluated.splits, evaluated.run.results.labels if evaluated.run.finished else None)
    if recorded is not None:
        console().print(f"recorded when the run ended: {recorded:.3f}", markup=False)


def print_language_scores(run: Path, evaluated: EvaluationResult, *, json: bool) -> None:
    from heedful.cli.pretrain import show_figures, show_sentences
    from heedful.runs.files import to_json_value

    if json:
        scores = {"splits": evaluated.splits, "recorded": evaluated.recorded}
        print_json(to_json_value({"run": run, **scores, "sentences": evaluated.sentences}))
        return
    if evaluated.splits:
        show_figures(f"{run}, best model", evaluated.splits)
    if evaluated.sentences:
        show_sentences(evaluated.sentences)
    for name, value in evaluated.recorded.items():
        if value is not None:
            console().print(f"{name}, recorded when the run ended: {value:.3f}", markup=False)
