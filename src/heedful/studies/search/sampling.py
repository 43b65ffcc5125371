"""Guided draws and early stopping, by Optuna.

Its study is put together from the run directories whenever it is asked something: they are the truth, and
there is no second record that could differ from them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.trial import TrialState

from heedful.data.random import key
from heedful.runs.schemas import Metrics
from heedful.runs.studies import Ended, Outcome, StudyFolder
from heedful.studies.base import PrunedError
from heedful.studies.shared import search_space
from heedful.studies.shared.scores import lower_is_better
from heedful.studies.shared.search_space import KINDS, Axis, Value, rounded

ATTEMPTS = 10
"""Guided draws to look at for one that is new."""
STARTUP = 5
"""Draws before the first guided one."""
REDUCTION = 3
"""Hyperband keeps one in so many at each rung."""


def distributions(space: Mapping[str, Axis]) -> dict[str, BaseDistribution]:
    """The space in Optuna's words."""
    found: dict[str, BaseDistribution] = {}
    for name, axis in space.items():
        if isinstance(axis, tuple):
            found[name] = CategoricalDistribution(axis)
        elif KINDS[name] is int:
            found[name] = IntDistribution(int(axis.low), int(axis.high))
        else:
            found[name] = FloatDistribution(axis.low, axis.high, log=True)
    return found


def most_epochs(space: Mapping[str, Axis]) -> int:
    """The longest run of a space."""
    axis = space["epochs"]
    return int(max(int(v) for v in axis) if isinstance(axis, tuple) else axis.high)


def rebuilt(
    space: Mapping[str, Axis], outcomes: Sequence[Outcome], seed: int, trial: int, asked: str | None = None
) -> tuple[optuna.Study, bool]:
    """Optuna's view of the runs so far, and whether the run `asked` should be stopped."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        study_name="search",
        direction="minimize" if lower_is_better(outcomes) else "maximize",
        sampler=optuna.samplers.TPESampler(
            seed=key(seed, "trial", trial) % 2**32, n_startup_trials=STARTUP, constant_liar=True
        ),
        pruner=optuna.pruners.HyperbandPruner(
            min_resource=1, max_resource=most_epochs(space), reduction_factor=REDUCTION
        ),
    )
    for outcome in outcomes:
        study.enqueue_trial({name: outcome.configuration.settings[name] for name in space})
    trials = [study.ask(distributions(space)) for _ in outcomes]
    own = next((pair for pair in zip(trials, outcomes, strict=True) if pair[1].name == asked), None)
    for one, outcome in zip(trials, outcomes, strict=True):
        if own is not None and one is own[0]:
            continue
        follow(one, outcome.metrics())
        if outcome.dev is not None:
            study.tell(one, outcome.dev)
        elif outcome.state == "pruned":
            study.tell(one, state=TrialState.PRUNED)
        elif outcome.state == "failed":
            study.tell(one, state=TrialState.FAIL)
    return study, follow(own[0], own[1].metrics()) if own is not None else False


def follow(trial: optuna.Trial, rows: Sequence[Metrics]) -> bool:
    """Report a run's scores in their order; what Optuna said to the last one."""
    prune = False
    for row in rows:
        if row.split == "dev" and row.value is not None:
            trial.report(row.value, round(row.epoch))
            prune = trial.should_prune()
    return prune


def suggest(space: Mapping[str, Axis], outcomes: Sequence[Outcome], seed: int) -> dict[str, Value]:
    """The next configuration, given how the others do: of lists one that none of them has."""
    seen = [outcome.configuration.settings for outcome in outcomes]
    lr = space["lr"]
    for attempt in range(ATTEMPTS):
        own_seed = key(seed, "again", attempt) if attempt else seed
        study, _ = rebuilt(space, outcomes, own_seed, len(outcomes))
        found: dict[str, Any] = study.ask(distributions(space)).params
        if not isinstance(lr, tuple):
            found["lr"] = min(max(rounded(found["lr"]), lr.low), lr.high)
        if found not in seen or search_space.combinations(space) == math.inf:
            return found
    return next(one for one in search_space.draws(space, seed) if one not in seen)


class Pruner:
    """A hook that stops a run when it falls behind the others."""

    def __init__(self, folder: StudyFolder, name: str, space: Mapping[str, Axis], epochs: int) -> None:
        self.folder, self.name, self.space, self.epochs = folder, name, space, epochs

    def stop_if_worse(self, metrics: Metrics) -> None:
        """After each score on dev but the last, which is the end anyway."""
        if metrics.split != "dev" or metrics.epoch >= self.epochs:
            return
        _, prune = rebuilt(self.space, self.folder.outcomes(), 0, 0, self.name)
        if prune:
            reason = f"stopped after epoch {metrics.epoch:.3g} of {self.epochs}: others are better"
            raise PrunedError(Ended(reason, metrics.epoch, metrics.value))
