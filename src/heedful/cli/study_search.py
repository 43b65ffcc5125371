"""`heedful study search`: which settings are best?"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from cyclopts import Parameter

from heedful.cli.output import Json
from heedful.options.studies import SearchOptions, SearchRun

RUN, STUDY = SearchRun(), SearchOptions()


def search(
    model: str,
    task: str,
    /,
    *,
    study: Annotated[SearchOptions, Parameter(name="*")] = STUDY,
    options: Annotated[SearchRun, Parameter(name="*")] = RUN,
    json: Json = False,
) -> None:
    """Which settings are best? A grid, or draws; the best on dev is scored on test, once.

    Runs that differ only in epochs share their beginning, to the same bits;
    heads of a frozen body are trained together. The same command continues a
    search that was stopped (Ctrl-C, SIGTERM: status 75).

    Examples:
      heedful study search minilm boolq --lr 1e-4,5e-4,1e-3 --epochs 5,7,9 --method head
      heedful study search minilm sst2 --random 4 --lr 2e-5:8e-5 --epochs 10,15,20 --batch-size 32,64
      heedful study search minilm reviews.csv --tpe 20 --prune --lr 1e-5:1e-3 --epochs 3:9 --jobs 2

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
    from heedful.studies.search.study import search as work

    finish(*work(replace(options, model=model, task=task), study), json=json)
