"""`heedful study compare`: which model and which method?"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json
from heedful.options.studies import CompareOptions, CompareRun

RUN, STUDY = CompareRun(), CompareOptions()


def compare(
    task: str,
    /,
    *,
    study: Annotated[CompareOptions, Parameter(name="*")] = STUDY,
    options: Annotated[CompareRun, Parameter(name="*")] = RUN,
    json: Json = False,
) -> None:
    """Which model and which method are best on a task, and what cannot be told apart?

    Arms are compared on the same examples (McNemar's test for single runs, a
    bootstrap over examples and seeds for several), corrected for the number of
    tests. What fails or does not fit stands at 0 with its reason.

    Examples:
      heedful study compare reviews.csv --models minilm --methods full,head,lora --seeds 3
      heedful study compare boolq --models minilm,bert-base-uncased --methods full,head --search --jobs 2

    Parameters
    ----------
    task
        boolq, sst2, yelp, world/reviews, ..., a folder with train, dev and test files, or one file.
    json
        Print one JSON object.
    """
    from heedful.cli.study_output import finish
    from heedful.studies.compare import compare as work

    finish(*work(replace(options, task=task), study), json=json)
