"""Guided draws and early stopping, by Optuna.

Optuna's study is rebuilt from the run directories for every question: there is no second record that could
differ from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from heedful.data.random import key
from heedful.evaluation.metrics import Metric
from heedful.runs.schemas import Metrics
from heedful.runs.studies import Ended, Outcome, StudyFolder
from heedful.studies.base import PrunedError
from heedful.studies.shared import search_space
from heedful.studies.shared.search_space import KINDS, Axis, Value, round_rate

ATTEMPTS = 10
"""Guided draws to try until one is new."""
STARTUP = 5
"""Random draws before the first guided one."""
REDUCTION = 3
"""Hyperband continues one run in this many at each rung."""


def make_distributions(space: Mapping[str, Axis]) -> dict[str, BaseDistribution]:
    distributions: dict[str, BaseDistribution] = {}
    for name, axis in space.items():
        if isinstance(axis, tuple):
            distributions[name] = CategoricalDistribution(axis)
        elif KINDS[name] is int:
            distributions[name] = IntDistribution(int(axis.low), int(axis.high))
        else:
            distributions[name] = FloatDistribution(axis.low, axis.high, log=True)
    return distributions


def rebuild_study(
    metric: Metric, space: Mapping[str, Axis], outcomes: Sequence[Outcome], seed: int, trial: int,
    asked: str | None = None,
) -> tuple[optuna.Study, bool]:  # fmt: skip
    """Return Optuna's study of the runs so far, and whether the run `asked` should be stopped."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler_seed, epochs = key(seed, "trial", trial) % 2**32, space["epochs"]
    most_epochs = int(max(map(int, epochs)) if isinstance(epochs, tuple) else epochs.high)
    study = optuna.create_study(
        study_name="search",
        direction="maximize" if metric.higher_is_better else "minimize",
        sampler=optuna.samplers.TPESampler(seed=sampler_seed, n_startup_trials=STARTUP, constant_liar=True),
        pruner=optuna.pruners.HyperbandPruner(1, most_epochs, reduction_factor=REDUCTION),
    )
    for outcome in outcomes:
        study.enqueue_trial({name: outcome.configuration.settings[name] for name in space})
    trials = [study.ask(make_distributions(space)) for _ in outcomes]
    current = next((pair for pair in zip(trials, outcomes, strict=True) if pair[1].name == asked), None)
    for one, outcome in zip(trials, outcomes, strict=True):
        if current is not None and one is current[0]:
            continue
        report_scores(one, outcome.find_metrics())
        if outcome.dev is not None:
            study.tell(one, outcome.dev)
        elif outcome.state == "pruned":
            study.tell(one, state=TrialState.PRUNED)
        elif outcome.state == "failed":
            study.tell(one, state=TrialState.FAIL)
    return study, report_scores(current[0], current[1].find_metrics()) if current is not None else False


def report_scores(trial: optuna.Trial, rows: Sequence[Metrics]) -> bool:
    """Report a run's scores in their order; return whether Optuna would stop it after the last one."""
    prune = False
    for row in rows:
        if row.split == "dev" and row.value is not None:
            trial.report(row.value, round(row.epoch))
            prune = trial.should_prune()
    return prune


def suggest(
    metric: Metric, space: Mapping[str, Axis], outcomes: Sequence[Outcome], seed: int
) -> dict[str, Value]:
    """Return the next settings, given the scores of the others; from lists, settings that are new."""
    seen = [outcome.configuration.settings for outcome in outcomes]
    lr = space["lr"]
    for attempt in range(ATTEMPTS):
        draw_seed = key(seed, "again", attempt) if attempt else seed
        study, _ = rebuild_study(metric, space, outcomes, draw_seed, len(outcomes))
        settings: dict[str, Any] = study.ask(make_distributions(space)).params
        if not isinstance(lr, tuple):
            settings["lr"] = min(max(round_rate(settings["lr"]), lr.low), lr.high)
        if settings not in seen or search_space.count_combinations(space) == math.inf:
            return settings
    return next(one for one in search_space.draw_distinct(space, seed) if one not in seen)


class Pruner:
    """Stops a run when it falls behind the others."""

    def __init__(
        self, folder: StudyFolder, name: str, metric: Metric, space: Mapping[str, Axis], epochs: int
    ) -> None:
        self.folder, self.name, self.metric, self.space, self.epochs = folder, name, metric, space, epochs

    def stop_if_worse(self, metrics: Metrics) -> None:
        """Ask Optuna after each score on dev but the last, which ends the run anyway."""
        if metrics.split != "dev" or metrics.epoch >= self.epochs:
            return
        _, prune = rebuild_study(self.metric, self.space, self.folder.read_outcomes(), 0, 0, self.name)
        if prune:
            reason = f"stopped after epoch {metrics.epoch:.3g} of {self.epochs}: others are better"
            raise PrunedError(Ended(reason, metrics.epoch, metrics.value))
