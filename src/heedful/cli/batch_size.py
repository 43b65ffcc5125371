"""`heedful batch-size`: the largest batch that fits, and the fastest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from heedful.cli.output import Json, console, print_json, print_table
from heedful.options.training import MAX_LEN, AdaptOptions, Precision
from heedful.options.types import Several

if TYPE_CHECKING:
    from heedful.training.batch_size import Found

STATUS_NOTHING_FITS = 1


def batch_size(
    model: str,
    task: str,
    /,
    *,
    memory_gb: float | None = None,
    at_most: int = 512,
    method: str = "full",
    method_options: Several = (),
    objective: str = "auto",
    unlabeled: Path | None = None,
    mlm_rate: float = AdaptOptions.mlm_rate,
    label_words: Several = (),
    head: Literal["auto", "linear", "family"] = "auto",
    max_len: int = MAX_LEN,
    accumulate: int = 1,
    optimizer: str = "adamw",
    attention: str | None = None,
    tokenizer: str | None = None,
    device: str = "auto",
    precision: Precision = "auto",
    threads: int | None = None,
    data_dir: Path | None = None,
    text_column: str | None = None,
    pair_column: str | None = None,
    label_column: str | None = None,
    json: Json = False,
) -> int:
    """Find the largest batch that fits, and the fastest: not always the same.

    Each size is tried in a process of its own: it builds the model and takes
    training steps on the longest texts. On a CPU that process is ended when it
    passes the budget, so the machine is never in danger; on CUDA it finds out by
    running out of memory. Sizes double from 32 or halve, then the gap is bisected
    to an eighth. Status 1 when nothing fits. `head` is measured with its body in
    each step; adapt's feature cache needs less.

    Examples:
      heedful batch-size minilm sst2
      heedful batch-size minilm boolq --max-len 256 --memory-gb 4
      heedful batch-size minilm reviews.csv --method lora --json
      heedful batch-size minilm yelp --objective joint --unlabeled more.txt

    Parameters
    ----------
    model
        A folder in Hub form, minilm, a preset (heedful list models), or a Hub id.
    task
        boolq, sst2, yelp, world/reviews, ..., a folder with train, dev and test files, or one file.
    memory_gb
        Units of 1e9 bytes; by default what is free, less a tenth (CUDA: all that the card has).
    at_most
        The largest size to try.
    method
        full, head, prompt, prefix, lora or bitfit.
    method_options
        Options of the method, as option=value.
    objective
        classify, text2text (T5), joint (classification and masked language modelling), answer; auto: what
        the task asks for.
    unlabeled
        joint: text without labels, one text a line; by default the training texts.
    mlm_rate
        joint: share of tokens to hide.
    label_words
        text2text: words for the labels, as 0=negative 1=positive; by default their names.
    head
        Form of the classification head.
    max_len
        Tokens a text.
    accumulate
        Compute each batch in so many parts.
    optimizer
        adamw, sgd, rmsprop or muon.
    attention
        Swap the attention mechanism.
    tokenizer
        A tokenizer's folder or a model's name; by default the model's own.
    device
        auto, cpu, cuda, cuda:1 or mps.
    precision
        auto (measured on this machine), float32 or bfloat16.
    threads
        CPU threads; by default the cores this process may use.
    data_dir
        Where a named task's files are.
    text_column
        Name of the text's column.
    pair_column
        Name of the second text's column.
    label_column
        Name of the label's column.
    json
        Print one JSON object.
    """
    from heedful.training.batch_size import find

    options = AdaptOptions(
        model=model,
        task=task,
        method=method,
        method_options=method_options,
        objective=objective,
        unlabeled=unlabeled,
        mlm_rate=mlm_rate,
        label_words=label_words,
        head=head,
        max_len=max_len,
        accumulate=accumulate,
        optimizer=optimizer,
        attention=attention,
        tokenizer=tokenizer,
        device=device,
        precision=precision,
        threads=threads,
        data_dir=data_dir,
        text_column=text_column,
        pair_column=pair_column,
        label_column=label_column,
    )
    found = find(options, budget_gb=memory_gb, at_most=at_most)
    if json:
        print_json(facts(found))
    else:
        show(found)
    return 0 if found.largest else STATUS_NOTHING_FITS


def facts(found: Found) -> dict[str, object]:
    """The same for a program."""
    return {
        "device": found.device,
        "budget_gb": found.budget_gb,
        "largest": found.largest.batch_size if found.largest else None,
        "fastest": found.fastest.batch_size if found.fastest else None,
        "tried": [
            {
                "batch_size": m.batch_size,
                "fits": m.fits,
                "memory_gb": m.memory_gb,
                "examples_per_second": m.examples_per_second,
                "reason": m.reason,
            }
            for m in found.tried
        ],
    }


def show(found: Found) -> None:
    """A line a size, and the answer."""
    numbers = ("batch size", "memory (GB)", "examples a second")
    rows = [
        (
            m.batch_size,
            f"{m.memory_gb:.2f}" if m.memory_gb is not None else "",
            f"{m.examples_per_second:.1f}" if m.examples_per_second is not None else "",
            m.reason or "",
        )
        for m in found.tried
    ]
    budget = f" in {found.budget_gb:.2f} GB" if found.budget_gb is not None else ""
    print_table(f"training on {found.device}{budget}", (*numbers, ""), rows, right=numbers)
    if found.largest is None or found.fastest is None:
        answer = "nothing fits; a smaller model, --max-len, --method lora or more memory may help"
    else:
        answer = f"largest: {found.largest.batch_size}; fastest: {found.fastest.batch_size}"
    console().print(answer, markup=False)
