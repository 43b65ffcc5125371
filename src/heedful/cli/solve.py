"""`heedful solve`: the best model that this machine can make in the time you have."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json, console, print_json
from heedful.options.solve import SolveOptions

DEFAULTS = SolveOptions()
STATUS_INTERRUPTED = 130
FRESH_SECONDS = 30.0
"""A process that is older was not started for this command alone."""


def command(
    task: str,
    /,
    *,
    options: Annotated[SolveOptions, Parameter(name="*")] = DEFAULTS,
    json: Json = False,
) -> int | None:
    """Find the best model for your labeled texts in the time you have, and say how good it is.

    Several kinds of models are tried, from cheap to dear, as far as the time
    allows; the plan is printed first. Held-out rows (dev) select one of them,
    and test is scored once, for that one. Among models that cannot be told
    apart, the fastest is chosen. Ctrl-C ends the search early, with the best
    model so far; the same command continues.

    Examples:
      heedful solve reviews.csv
      heedful solve reviews.csv --minutes 30 --prefer accuracy
      heedful solve tickets.csv --text-column body --label-column team
      heedful solve reviews.csv --candidates head full --out runs/reviews
      heedful solve reviews.csv --unlabeled more-reviews.csv
      heedful solve reviews.csv --on slurm --wait
      heedful predict runs/solve-reviews "What a lovely place."

    Parameters
    ----------
    task
        A file, a folder of splits or classes, a named task, or a Hub data set (imdb).
    json
        Print one JSON object.
    """
    import psutil

    from heedful.cli.study_output import print_answer
    from heedful.runs.files import to_json_value
    from heedful.solve.runner import solve

    age = time.time() - psutil.Process().create_time()
    age = age if 0 < age < FRESH_SECONDS else 0.0  # starting Python counts, unless something else came first
    folder, answer = solve(replace(options, task=task), time.monotonic() - age)
    if json:
        print_json({"folder": str(folder.path), **to_json_value(answer)})
    else:
        print_answer(folder, answer)
        if not answer.finished:
            console().print("stopped early; the same command continues", markup=False)
    return None if answer.finished else STATUS_INTERRUPTED
