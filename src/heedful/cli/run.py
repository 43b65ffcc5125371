"""`heedful run`: run a recipe, or a run again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json

Flag = Annotated[bool, Parameter(negative=())]


def run(
    file: Path,
    /,
    *,
    set: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    out: Path | None = None,
    resume: Flag = False,
    overwrite: Flag = False,
    json: Json = False,
) -> None:
    """Run a recipe, or make a run again from its config.toml: on the same machine type, to the same bits.

    A file names its command and has a table with that command's options; heedful.toml is not read.

    Examples:

        heedful run runs/sst2/config.toml --out runs/sst2-again

        heedful run recipe.toml --set lr=3e-5 seed=1 --set method_options=rank=4

    Parameters
    ----------
    file
        A TOML file, or a run's folder.
    set
        Options to change, as key=value; none gives an option's default.
    out
        The run's folder; by default runs/TASK-MODEL-METHOD-sSEED.
    resume
        Continue the run in --out.
    overwrite
        Replace the run in --out.
    json
        Print results.json.
    """
    from heedful.cli import adapt, pretrain
    from heedful.options.training import AdaptOptions
    from heedful.runs.config import load_run_config

    options = load_run_config(file, set)
    options = replace(
        options,
        out=options.out if out is None else out,
        resume=options.resume or resume,
        overwrite=options.overwrite or overwrite,
    )
    if isinstance(options, AdaptOptions):
        adapt.finish(options, json=json)
    else:
        pretrain.finish(options, json=json)
