"""`heedful pretrain`: train a language model on text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.output import JsonResults, console, print_table
from heedful.cli.training import train_or_submit
from heedful.errors import one_line
from heedful.options.launch import HERE, Launch
from heedful.options.training import PretrainOptions

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heedful.runs.schemas import Results, SentenceResult, SplitResult

DEFAULTS = PretrainOptions()


def command(
    model: str,
    corpus: str,
    /,
    *,
    options: Annotated[PretrainOptions, Parameter(name="*")] = DEFAULTS,
    launch: Launch = HERE,
    json: JsonResults = False,
) -> int | None:
    """Train a language model on text, from scratch or from a checkpoint.

    Documents are packed into rows and never see each other. Dev selects the
    best evaluation. A run that is stopped (Ctrl-C, SIGTERM, SIGUSR1: status 75)
    leaves a checkpoint; the same command with --resume continues it with the
    same result, bit for bit. Perplexities of different vocabularies cannot be
    compared; bits per character and bits per byte can.

    Examples:
      heedful pretrain char-gpt notes.txt --documents file --epochs 10
      heedful pretrain char-gpt notes.txt --minutes 10
      heedful pretrain gpt-micro ptb --tokenizer bpe --vocab-size 4000
      heedful pretrain gpt-nano news.txt --tokenizer word --min-count 3
      heedful pretrain bert-tiny world/reviews --objective masked
      heedful pretrain char-gpt world/birthplaces --objective span
      heedful pretrain runs/ptb more.txt --budget-min 30

    With --schedule wsd (warm-up, stable, decay) a run keeps the checkpoint at
    which its decay begins, and a longer run continues from there, with the same
    result as if it had started from the beginning:
      heedful pretrain char-gpt t.txt --schedule wsd --budget-min 90 --out short
      heedful pretrain char-gpt t.txt --schedule wsd --epochs 650 --branch short
      heedful pretrain gpt-micro ptb --tokenizer bpe --on slurm --gpus 1

    Several processes (--processes) give the same result as one; if one of them
    dies, the run ends with status 70:
      heedful pretrain gpt-micro ptb --tokenizer bpe --processes 2

    Parameters
    ----------
    model
        A preset (heedful list models) to train from scratch, or a folder, a run or a Hub id to continue.
    corpus
        A text file, a folder, a table, the text of a task, or world/...
    """
    return train_or_submit(replace(options, model=model, corpus=corpus), launch, print_results, json=json)


def print_results(results: Results) -> None:
    """Print the scores, then the cost."""
    if results.splits:
        show_figures(f"{results.model} on {results.task}, {results.objective}", results.splits)
    if results.sentences:
        show_sentences(results.sentences)
    if results.samples:
        rows = [(one_line(sample.prompt), one_line(sample.text)) for sample in results.samples]
        print_table("samples", ("prompt", "continued by the model"), rows)
    console().print(
        f"trained {results.trainable_parameters:,} parameters for {results.steps or 0:,} steps "
        f"({results.epochs or 0:.4g} epochs) in {results.seconds:.0f} s, "
        f"{results.tokens_per_second or 0:,.0f} tokens per second",
        markup=False,
    )


def show_figures(title: str, splits: Mapping[str, SplitResult]) -> None:
    """Print one line per split: perplexity, its interval and related numbers; below it, n-gram baselines."""
    rows = []
    for split, r in splits.items():
        interval = f"{r.ci95[0]:.2f} to {r.ci95[1]:.2f}" if r.ci95 and None not in r.ci95 else ""
        rows.append(
            (
                split,
                f"{r.n:,}",
                number(r.value, ".2f"),
                interval,
                number(r.mean_sentence_perplexity, ".2f"),
                number(r.bits_per_character, ".3f"),
                number(r.bits_per_byte, ".3f"),
                number(None if r.unknown_rate is None else 100 * r.unknown_rate, ".2f"),
            )
        )
        characters_per_byte = (r.bits_per_byte or 0.0) / (r.bits_per_character or 1.0)
        for name, value in (r.baselines or {}).items():
            bits = (r.baseline_bits_per_character or {}).get(name)
            per_byte = None if bits is None else bits * characters_per_byte
            scores = (number(value, ".2f"), "", "", number(bits, ".3f"), number(per_byte, ".3f"), "")
            rows.append((f"  {name}", "", *scores))
    numbers = ("tokens", "perplexity", "mean of sentences", "bits/character", "bits/byte", "unknown %")
    print_table(title, ("split", *numbers[:2], "95 % interval", *numbers[2:]), rows, right=numbers)


def show_sentences(sentences: Sequence[SentenceResult]) -> None:
    rows = [
        (one_line(s.text), s.tokens, f"{s.loss:.4f}", number(s.perplexity, ".2f"), s.unknown)
        for s in sentences
    ]
    numbers = ("tokens", "loss", "perplexity", "unknown")
    print_table("sentences", ("sentence", *numbers), rows, right=numbers)


def number(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
