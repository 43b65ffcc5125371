"""`heedful study labels`: how many labels are enough?"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json
from heedful.options.studies import LabelsOptions, LabelsRun

RUN, STUDY = LabelsRun(), LabelsOptions()


def labels(
    model: str,
    task: str,
    /,
    *,
    study: Annotated[LabelsOptions, Parameter(name="*")] = STUDY,
    options: Annotated[LabelsRun, Parameter(name="*")] = RUN,
    json: Json = False,
) -> None:
    """How many labels are enough, and does text without labels help?

    Learning rate, epochs (at least 200 steps) and the weight of masked language
    modelling are chosen on dev for each number of labels and each arm; further
    seeds draw other labels. Test is scored once for each chosen run.

    Examples:
      heedful study labels minilm yelp --sizes 50,200,1000,all --seeds 5
      heedful study labels minilm reviews.csv --arms classify --sizes 20,100,all --seeds 3

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
    from heedful.studies.labels import labels as work

    finish(*work(replace(options, model=model, task=task), study), json=json)
