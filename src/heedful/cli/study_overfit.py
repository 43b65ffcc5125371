"""`heedful study overfit`: can this model learn at all?"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json
from heedful.options.studies import OverfitOptions, OverfitRun

RUN, STUDY = OverfitRun(), OverfitOptions()


def overfit(
    model: str,
    task: str,
    /,
    *,
    study: Annotated[OverfitOptions, Parameter(name="*")] = STUDY,
    options: Annotated[OverfitRun, Parameter(name="*")] = RUN,
    json: Json = False,
) -> None:
    """Can this model learn at all? Trains on a few examples until they are known by heart.

    PASS: every example is right in evaluation mode after the last epoch, at
    least three of each label among them. FAIL names the likely cause.
    Accuracy on trained examples is never a test score; dev and test are not
    looked at.

    Examples:
      heedful study overfit minilm boolq --examples 10 --epochs 20
      heedful study overfit minilm reviews.csv --method lora --lr 1e-3

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
    from heedful.studies.overfit import overfit as work

    finish(*work(replace(options, model=model, task=task), study), json=json)
