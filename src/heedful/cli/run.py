"""`heedful run`: run a recipe, or repeat a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Flag, JsonResults


def command(
    file: Path,
    /,
    *,
    set: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    out: Path | None = None,
    resume: Flag = False,
    overwrite: Flag = False,
    json: JsonResults = False,
) -> None:
    """Run a recipe, or repeat a run from its config.toml.

    The file names a command, adapt or pretrain, and has a table with its
    options. On the same type of machine the result is the same, bit for bit.
    The defaults in heedful.toml are not used.

    Examples:
      heedful run runs/sst2/config.toml --out runs/sst2-again
      heedful run recipe.toml --set lr=3e-5 seed=1 --set method_options=rank=4

    Parameters
    ----------
    file
        A TOML file, or the folder of a run.
    set
        Options to change, as option=value; none restores the default of an option.
    out
        Folder of the run. By default runs/TASK-MODEL-METHOD-sSEED.
    resume
        Continue the run in --out.
    overwrite
        Replace the run in --out.
    """
    from heedful.cli import adapt, pretrain
    from heedful.cli.training import train_here
    from heedful.options.training import AdaptOptions
    from heedful.runs.config import load_run_config

    options = load_run_config(file, set)
    resume, overwrite = options.resume or resume, options.overwrite or overwrite
    options = replace(options, out=out or options.out, resume=resume, overwrite=overwrite)
    command = adapt if isinstance(options, AdaptOptions) else pretrain
    train_here(options, command.print_results, json=json)
