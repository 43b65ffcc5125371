"""What `heedful adapt`, `pretrain` and `run` share: train here or submit a job, then print the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.cli.output import announce, console, print_json
from heedful.errors import shorten
from heedful.options.configuration import Options
from heedful.options.training import named_after

if TYPE_CHECKING:
    from collections.abc import Callable

    from heedful.options.launch import TrainLaunchOptions
    from heedful.runs.schemas import Results

    PrintResults = Callable[[Results], None]


FORMS = {
    "transformers": "best/ loads with transformers",
    "sentence-transformers": "best/ loads with sentence-transformers, its head is in best/head "
    "(--pool first: transformers)",
    "peft": "best/ loads with peft",
    "heedful": "best/ loads with heedful; heedful export writes other forms (of an adapter: --merge)",
}
"""What a run prints about the form of its best model."""


def train_or_submit(
    options: Options, launch: TrainLaunchOptions, print_results: PrintResults, *, json: bool
) -> int | None:
    if launch.elsewhere:
        from heedful.cli.submit import send_run

        return send_run(options, launch, json=json)
    train_here(options, print_results, json=json)
    return None


def train_here(options: Options, print_results: PrintResults, *, json: bool) -> None:
    """Train, and print results.json, or the results, the folder and the most serious finding."""
    from heedful.launch.rank_environment import detect_ranks

    if (ranks := detect_ranks()) is None or ranks.first:
        data, model, *_ = named_after(options)
        announce(f"{shorten(model, 60)} on {shorten(data, 60)}: loading")
    from heedful.evaluation.checks import summarize
    from heedful.launch.processes import is_first_process, launch_training
    from heedful.runs.files import to_json_value

    done = launch_training(options)
    if not is_first_process():
        return
    if json:
        print_json(to_json_value(done.results) | {"folder": str(done.folder)})
        return
    print_results(done.results)
    out = console()
    out.print(f"run: {done.folder}", markup=False)
    if done.results.loads_with is not None:
        out.print(f"best model: {FORMS[done.results.loads_with]}", markup=False)
    out.print(f"checks: {summarize(done.checks.checks)}", markup=False)
