"""`heedful batch-size`: the largest batch that fits, and the fastest."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from heedful.cli.output import Json, ModelName, TaskName, console, print_json, print_table
from heedful.options.batch_size import BatchSizeOptions
from heedful.options.types import Bounds, Positive

if TYPE_CHECKING:
    from heedful.training.batch_size import BatchSizeSearch

DEFAULTS = BatchSizeOptions()
STATUS_NOTHING_FITS = 1


def command(
    model: ModelName,
    task: TaskName,
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
    memory_gb
        Memory budget in units of 1e9 bytes. By default 90 % of the free memory; on CUDA all of the card's.
    at_most
        The largest size to try.
    """
    from heedful.training.batch_size import find_batch_size

    search = find_batch_size(replace(options, model=model, task=task), budget_gb=memory_gb, at_most=at_most)
    if json:
        print_json(facts(search))
    else:
        show(search)
    return 0 if search.largest else STATUS_NOTHING_FITS


def facts(search: BatchSizeSearch) -> dict[str, object]:
    names = ("batch_size", "fits", "memory_gb", "examples_per_second", "reason")
    return {
        "device": search.device,
        "budget_gb": search.budget_gb,
        "largest": search.largest.batch_size if search.largest else None,
        "fastest": search.fastest.batch_size if search.fastest else None,
        "tried": [{name: getattr(m, name) for name in names} for m in search.tried],
    }


def show(search: BatchSizeSearch) -> None:
    numbers = ("batch size", "memory (GB)", "examples per second")
    rows = [
        (
            m.batch_size,
            f"{m.memory_gb:.2f}" if m.memory_gb is not None else "",
            f"{m.examples_per_second:.1f}" if m.examples_per_second is not None else "",
            m.reason or "",
        )
        for m in search.tried
    ]
    budget = f" in {search.budget_gb:.2f} GB" if search.budget_gb is not None else ""
    print_table(f"training on {search.device}{budget}", (*numbers, ""), rows, right=numbers)
    if search.largest is None or search.fastest is None:
        answer = "nothing fits; a smaller model, --max-len, --method lora or more memory may help"
    else:
        answer = f"largest: {search.largest.batch_size}; fastest: {search.fastest.batch_size}"
    console().print(answer, markup=False)
