"""`heedful study optimizers`: which optimizer?"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json
from heedful.options.studies import OptimizersOptions, OptimizersRun

RUN, STUDY = OptimizersRun(), OptimizersOptions()


def optimizers(
    model: str,
    task: str,
    /,
    *,
    study: Annotated[OptimizersOptions, Parameter(name="*")] = STUDY,
    options: Annotated[OptimizersRun, Parameter(name="*")] = RUN,
    json: Json = False,
) -> None:
    """Which optimizer is best? Each is searched for its own learning rate on dev.

    One rate for all would compare how well it suits each of them;
    --same-settings does that, and marks which collapsed. The best run of each
    is scored on test, once.

    Examples:
      heedful study optimizers minilm sst2 --epochs 2 --train-rows 2000
      heedful study optimizers minilm sst2 --optimizers adamw,sgd,rmsprop --same-settings --lr 5e-5

    Parameters
    ----------
    model
        A folder in Hub form, minilm, a preset (heedful list models), or a Hub id.
    task
        boolq, sst2, yelp, world/reviews, ..., a folder with train, dev and test files, or one file.
    json
        Print one JSON object.
    """
    from heedful.cli.study_output import finish
    from heedful.studies.optimizers import optimizers as work

    finish(*work(replace(options, model=model, task=task), study), json=json)
