"""`heedful.solve`: the best model for labeled texts in the time there is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from heedful.api.studies import read_submission
from heedful.api.training import store_data
from heedful.errors import SubmittedElsewhere
from heedful.options.keywords import Signature
from heedful.options.launch import StudyLaunchOptions
from heedful.options.solve import SolveOptions
from heedful.process_state import keeps_process_state
from heedful.results import SolveResult

SOLVE = Signature("heedful.solve", (SolveOptions, StudyLaunchOptions), ("task", "unlabeled"), ("launch",))


@keeps_process_state
def solve(task: Any, labels: Any = None, *, unlabeled: Any = None, **options: Any) -> SolveResult:
    """Find the best model for labeled texts in the given minutes, and say how good it is.

    Several kinds of models are tried, from cheap to dear, as far as the time allows. Held-out rows select one
    of them, and test is scored once. `task` is a name or a path, or data in memory: texts with `labels`, a
    DataFrame, a `datasets.Dataset`, or a dict of splits. `unlabeled` are texts without labels in the same
    forms. The same call continues where it was stopped.

    Examples
    --------
    >>> solved = heedful.solve("reviews.csv", minutes=10)
    >>> solved.answer.summary
    >>> solved.predict(["What a lovely place."])
    >>> solved.best.results.splits["test"].value
    """
    from heedful.solve.runner import solve as find_best_model

    if unlabeled is not None:
        options["unlabeled"] = store_data(unlabeled)
    solve_options, launch = SOLVE.parse({"task": store_data(task, labels), **options})
    try:
        folder, _ = find_best_model(replace(solve_options, launch=launch))
    except SubmittedElsewhere as submitted:
        path, script = read_submission(submitted, launch)
        return SolveResult(path, script=script)
    return SolveResult(folder.path)
