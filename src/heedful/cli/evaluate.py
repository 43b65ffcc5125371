"""`heedful evaluate`: score the best model of a run."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Literal

from heedful.cli.output import Json, console, print_json
from heedful.errors import UserError
from heedful.options.launch import ONCE, Once
from heedful.options.types import Several


def evaluate(
    run: Path,
    /,
    *,
    split: Literal["train", "dev", "test"] | None = None,
    corpus: str | None = None,
    sentences: Several = (),
    launch: Once = ONCE,
    json: Json = False,
) -> int | None:
    """Score the best model of a run on a split, with a 95 % interval.

    The score of a task is shown with its baselines; the perplexity of a
    language model with the mean over sentences, bits per character, bits per
    byte and the share of unknown tokens. Data and options come from the run's
    config.toml; nothing is written. Use test only for the one model that dev
    selected: the best of many test scores is too high.

    Examples:
      heedful evaluate runs/sst2 --split test
      heedful evaluate runs/sst2 --split dev --json
      heedful evaluate runs/sst2 --on slurm --gpus 1 --wait
      heedful evaluate runs/ptb --corpus other.txt
      heedful evaluate runs/ptb --sentences "the cat sat" "the sat cat"

    Parameters
    ----------
    run
        Folder of a run.
    split
        train (all rows, also those that --train-rows left out), dev (the rows that --dev-rows selected) or
        test. By default test, or dev for a language model without a test split.
    corpus
        For language models: score this text instead of a split.
    sentences
        For language models: sentences, or a file with one per line, whose loss and perplexity to report.
    """
    from heedful.runs.directory import Run

    opened = Run.open(run)
    if launch.elsewhere:
        from heedful.cli.submit import send
        from heedful.options.command_line import command_words

        words = command_words(["evaluate"], [run])
        words += (f"--split={split}",) if split else ()
        words += (f"--corpus={corpus}",) if corpus else ()
        words += tuple(f"--sentences={text}" for text in sentences)
        words += ("--json",) if json and launch.wait else ()
        stem = f"evaluate-{split or 'test'}"
        names = (stem if n == 1 else f"{stem}-{n}" for n in count(1))
        folder = next(path for name in names if not (path := run / "jobs" / name).exists())
        return send(words, launch, folder, name=f"evaluate-{run.absolute().name}", json=json)
    if opened.config().get("command") == "pretrain":
        evaluate_language(run, split, corpus, sentences, json=json)
        return None
    if corpus is not None or sentences:
        raise UserError(f"{run}: --corpus and --sentences are for language models (heedful pretrain)")
    split = split or "test"
    from heedful.cli.adapt import show_splits
    from heedful.runs.files import to_json_value
    from heedful.training.rescore import evaluate as score

    result = score(run, split)
    before = opened.results().splits.get(split) if opened.finished else None
    recorded = before.value if before is not None else None
    if json:
        print_json({"run": str(run), "split": split, **to_json_value(result), "recorded": recorded})
        return None
    show_splits(f"{run}, best model", {split: result})
    if recorded is not None:
        console().print(f"recorded when the run ended: {recorded:.3f}", markup=False)
    return None


def evaluate_language(
    run: Path, split: str | None, corpus: str | None, sentences: tuple[str, ...], *, json: bool
) -> None:
    from heedful.cli.pretrain import show_figures, show_sentences
    from heedful.runs.directory import Run
    from heedful.runs.files import to_json_value
    from heedful.training.rescore import LanguageModelScores

    model = LanguageModelScores(run)
    results = {corpus: model.score_corpus(corpus)} if corpus is not None else {}
    if split is not None or not (results or sentences):
        results |= dict([model.score_split(split)])
    scored_sentences = model.score_sentences(sentences)
    opened = Run.open(run)
    before = opened.results().splits if opened.finished else {}
    recorded = {name: before[name].value for name in results if name in before}
    if json:
        facts = {"run": run, "splits": results, "recorded": recorded, "sentences": scored_sentences}
        print_json(to_json_value(facts))
        return
    if results:
        show_figures(f"{run}, best model", results)
    if scored_sentences:
        show_sentences(scored_sentences)
    for name, value in recorded.items():
        if value is not None:
            console().print(f"{name}, recorded when the run ended: {value:.3f}", markup=False)
