"""`heedful batch-size`: the largest batch that fits, and the fastest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.output import Json, console, print_json, print_table
from heedful.options.batch_size import BatchSizeOptions
from heedful.options.types import Bounds, Positive

if TYPE_CHECKING:
    from heedful.training.batch_size import BatchSizeSearch

DEFAULTS = BatchSizeOptions()
STATUS_NOTHING_FITS = 1


def batch_size(
    model: str,
    task: str,
    /,
    *,
    memory_gb: Annotated[float, Bounds(above=0)] | None = None,
    at_most: Positive = 512,
    options: Annotated[BatchSizeOptions, Parameter(name="*")] = DEFAULTS,
    json: Json = False,
) -> int:
    """Find the largest batch size that fits into memory, and the fastest one.

    Each size is tried in its own process, which builds the model and takes
    training steps on the longest texts. On a CPU that process is stopped when it
    exceeds the budget, so that the machine itself never runs out of memory. The
    size is doubled or halved from 32 on, and then bisected until the gap is at
    most an eighth. The exit status is 1 if nothing fits. --method head is
    measured with the body in each step; heedful adapt needs less, because it
    computes the features of the body only once.

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
        Memory budget in units of 1e9 bytes. By default 90 % of the free memory; on CUDA all of the card's.
    at_most
        The largest size to try.
    json
        Print one JSON object.
    """
    from heedful.training.batch_size import find_batch_size

    found = find_batch_size(replace(options, model=model, task=task), budget_gb=memory_gb, at_most=at_most)
    if json:
        print_json(facts(found))
    else:
        show(found)
    return 0 if found.largest else STATUS_NOTHING_FITS


def facts(found: BatchSizeSearch) -> dict[str, object]:
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


def show(found: BatchSizeSearch) -> None:
    numbers = ("batch size", "memory (GB)", "examples per second")
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
