"""The main job: the best model that this machine can make in a given time, and the truth about it.

    measure -> plan -> candidates, cheap to dear -> choose on held-out rows -> score test once -> answer

A candidate is an ordinary run of `adapt` (`candidates.py` lists them). A solve folder is a study's folder
(`heedful.runs.studies`) with one run per candidate, and chosen.json names the run that every command uses.
"""

from heedful.callable_package import make_callable

make_callable(__name__, "heedful.api.commands:solve")
