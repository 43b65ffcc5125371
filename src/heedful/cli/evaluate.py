"""`heedful evaluate`: score a run's best model."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from heedful.cli.output import Json, console, print_json
from heedful.launch.options import ONCE, Once


def evaluate(
    run: Path,
    /,
    *,
    split: Literal["train", "dev", "test"] = "test",
    launch: Once = ONCE,
    json: Json = False,
) -> int | None:
    """Score a run's best model on a split, with a 95 % interval and the baselines beside it.

    Task and options come from the run's config.toml; nothing is written. Test is for the one model that dev
    selected: looking at it for many and choosing the best makes its score too high.

    Examples:

        heedful evaluate runs/sst2 --split test

        heedful evaluate runs/sst2 --split dev --json

        heedful evaluate runs/sst2 --on slurm --gpus 1 --wait

    Parameters
    ----------
    run
        A run's folder.
    split
        train (all its rows, also those that --train-rows left out), dev or test.
    json
        Print one JSON object.
    """
    from heedful.runs.directory import Run

    opened = Run.open(run)
    if launch.elsewhere:
        from heedful.cli.launching import send
        from heedful.launch.words import command_words

        words = (*command_words(["evaluate"], [run]), f"--split={split}")
        words += ("--json",) if json and launch.wait else ()
        return send(words, launch, run / "jobs" / f"evaluate-{split}", json=json)
    from heedful.cli.adapt import show_splits
    from heedful.runs.files import plain
    from heedful.training.evaluating import evaluate as score

    found = score(run, split)
    before = opened.results().splits.get(split) if opened.finished else None
    recorded = before.value if before is not None else None
    if json:
        print_json({"run": str(run), "split": split, **plain(found), "recorded": recorded})
        return None
    show_splits(f"{run}, best model", {split: found})
    if recorded is not None:
        console().print(f"recorded when the run ended: {recorded:.3f}", markup=False)
    return None
