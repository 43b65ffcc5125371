"""`heedful pretrain`: train a language model on text."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.output import Json, console, print_json, print_table
from heedful.training.options import PretrainOptions

if TYPE_CHECKING:
    from heedful.training.running import Finished

DEFAULTS = PretrainOptions()


def pretrain(
    model: str,
    corpus: str,
    /,
    *,
    options: Annotated[PretrainOptions, Parameter(name="*")] = DEFAULTS,
    json: Json = False,
) -> None:
    """Train a language model on text, from nothing or from a checkpoint.

    Documents are packed into rows and never see each other. Dev selects the
    best step. A run that is stopped (Ctrl-C, SIGTERM, SIGUSR1: status 75)
    leaves a checkpoint; the same command with --resume continues to the same
    bits.

    Examples:
      heedful pretrain char-gpt notes.txt --tokenizer char --epochs 10
      heedful pretrain gpt-micro ptb --tokenizer bpe --vocab-size 4000
      heedful pretrain bert-tiny world/reviews --objective masked

    Parameters
    ----------
    model
        A preset (heedful list models), or a folder, a run or a Hub id.
    corpus
        A text file, a folder, a table, a task's text, or world/...
    json
        Print results.json.
    """
    finish(replace(options, model=model, corpus=corpus), json=json)


def finish(options: PretrainOptions, *, json: bool) -> None:
    """Pretrain, and print how it went."""
    from heedful.training.pretrain import pretrain as work

    done = work(options)
    if json:
        from heedful.runs.files import plain

        print_json(plain(done.results) | {"folder": str(done.folder)})
        return
    show(done)


def show(done: Finished) -> None:
    """Perplexities, cost, and the most serious finding last."""
    from heedful.evaluation.checks import summary

    results = done.results
    rows = [
        (split, f"{r.n:,}", f"{r.value:.3f}" if r.value is not None else "not a number", f"{r.loss:.4f}")
        for split, r in results.splits.items()
    ]
    numbers = ("tokens", "perplexity", "loss")
    print_table(f"{results.model} on {results.task}, {results.objective}", ("split", *numbers), rows, numbers)
    out = console()
    out.print(
        f"trained {results.trainable_parameters:,} parameters in {results.seconds:.0f} s, "
        f"{results.tokens_per_second or 0:,.0f} tokens a second",
        markup=False,
    )
    out.print(f"run: {done.folder}", markup=False)
    out.print(f"checks: {summary(done.checks.checks)}", markup=False)
