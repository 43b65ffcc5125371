"""`heedful explain`: which words of a text carried an answer."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.output import Device, Json, console, print_json, print_table
from heedful.errors import shorten
from heedful.options.types import Count, ExplanationMethod

if TYPE_CHECKING:
    from heedful.inference.explanations import Explanation

BAR = 20
"""Number of characters of the longest bar."""


def command(
    run: Path,
    text: str,
    pair: str | None = None,
    /,
    *,
    label: str | None = None,
    against: str | None = None,
    method: ExplanationMethod | None = None,
    orders: Count = 19,
    seed: int = 0,
    device: Device = "auto",
    json: Json = False,
) -> None:
    """Show which words of a text carried the answer of a model, and whether that can be trusted.

    What is explained is the log-odds of the predicted label against the most
    probable other one; of several labels per text, against its absence; or
    the number. Linear models have exact contributions, networks integrated
    gradients of their word embeddings, whose completeness error is printed.

    The deletion test removes the most important words first, and compares
    with random orders: an explanation that is no better says nothing.

    Examples:
      heedful explain runs/reviews "What a lovely place."
      heedful explain runs/boolq "is the sea salty" "Sea water is salt water."
      heedful explain runs/reviews "Nice, but far too loud." --label positive
      heedful explain runs/reviews "What a lovely place." --method occlusion --json

    Parameters
    ----------
    run
        Folder of a run, a study or what heedful export wrote, or a classifier of transformers: a folder or a
        Hub id.
    text
        The text to label.
    pair
        The second text, if the task has pairs.
    label
        The label to explain. By default the predicted one.
    against
        The label that it is compared with. By default the most probable other one.
    method
        exact (linear models), gradients (networks) or occlusion (every model). By default the first of these
        that is possible.
    orders
        Number of random orders of the deletion test; 0 for no test.
    seed
        Seed of the random orders.
    """
    from heedful.inference.explanations import explain_run

    options = {"label": label, "against": against, "method": method, "orders": orders, "seed": seed}
    explanation = explain_run(run, text, pair, **options, device=device)
    if json:
        print_json(explanation.facts())
        return
    show(explanation)


def show(explanation: Explanation) -> None:
    named = f'"{shorten(explanation.label)}": {explanation.value:.3f}' if explanation.label else ""
    console().print(named or f"{explanation.value:.6g}", markup=False)
    most = max(abs(word.contribution) for word in explanation.words) or 1.0
    rows = [
        (shorten(word.text, 30), f"{word.contribution:+.3f}", draw_bar(word.contribution / most))
        for word in explanation.words
    ]
    print_table(f"what speaks for {explanation.subject}", ("word", "contribution", ""), rows,
                right=("contribution",))  # fmt: skip
    for sentence in explanation.sentences:
        console().print(sentence, markup=False)


def draw_bar(share: float) -> str:
    """Return a bar of plus or minus signs."""
    return ("+" if share > 0 else "-") * round(BAR * abs(share))
