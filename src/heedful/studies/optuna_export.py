"""A study as a database of Optuna, which optuna-dashboard draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from heedful.errors import UserError
from heedful.runs.studies import Outcome, StudyFolder


def export_to_optuna(folder: Path, database: Path) -> int:
    """Write the runs of a study as trials into an SQLite database; return their number.

    Every setting is a categorical parameter. The value is the score on dev, and the curve on dev the
    intermediate values; a failed run is a failed trial, and one that was stopped a pruned one.
    """
    import optuna
    from optuna.trial import TrialState

    study = StudyFolder.open(folder)
    record, outcomes = study.read(), [one for one in study.read_outcomes() if one.over]
    if not outcomes:
        raise UserError(f"{folder}: no run of this study is over; there is nothing to export")
    if database.exists():
        raise UserError(f"--optuna {database}: is there already; choose another file")
    choices = {
        name: optuna.distributions.CategoricalDistribution(values)
        for name, values in list_choices(outcomes).items()
    }
    splits = [one.results.splits["dev"] for one in outcomes if one.results and "dev" in one.results.splits]
    higher = all(split.higher_is_better for split in splits)
    states = {"finished": TrialState.COMPLETE, "failed": TrialState.FAIL, "pruned": TrialState.PRUNED}
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        written = optuna.create_study(
            storage=f"sqlite:///{database}",
            study_name=folder.absolute().name,
            direction="maximize" if higher else "minimize",
        )
        written.set_user_attr("question", record.question)
        for outcome in outcomes:
            written.add_trial(make_trial(outcome, choices, states))
    finally:
        optuna.logging.set_verbosity(verbosity)
    return len(outcomes)


def list_choices(outcomes: list[Outcome]) -> dict[str, list[Any]]:
    """Return the values of each setting in the order in which they occur."""
    choices: dict[str, dict[Any, None]] = {}
    for outcome in outcomes:
        for name, value in outcome.configuration.settings.items():
            choices.setdefault(name, {})[plain(value)] = None
    return {name: list(values) for name, values in choices.items()}


def plain(value: Any) -> Any:
    """Return a value as Optuna stores it: numbers, texts and truth values as they are."""
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)


def make_trial(outcome: Outcome, choices: dict[str, Any], states: dict[str, Any]) -> Any:
    import optuna

    params = {name: plain(value) for name, value in outcome.configuration.settings.items()}
    curve = {
        row.step: row.value for row in outcome.find_metrics() if row.split == "dev" and row.value is not None
    }
    attributes = {"run": outcome.name}
    if outcome.ended is not None:
        attributes["reason"] = outcome.ended.reason
    state, value = states[outcome.state], outcome.dev
    if outcome.state == "finished" and value is None:
        state, attributes["reason"] = states["failed"], "the run has no score on dev"
    return optuna.trial.create_trial(
        state=state,
        value=value if state == states["finished"] else None,
        params=params,
        distributions={name: choices[name] for name in params},
        intermediate_values=curve,
        user_attrs=attributes,
    )
