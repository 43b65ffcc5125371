"""Which evaluation of a run is the best, and when to stop looking for a better one."""

from __future__ import annotations

import math

from heedful.errors import UserError
from heedful.evaluation.metrics import Metric, find_metric
from heedful.objectives import Evaluation, Objective
from heedful.options.training import LoopOptions
from heedful.problems import find_metric_name
from heedful.training.checkpoint import TrainingState


class Selection:
    """Compares evaluations on dev by a metric, and at equal values by the loss."""

    def __init__(self, options: LoopOptions, objective: Objective) -> None:
        self.options, self.objective = options, objective
        self.selected: Evaluation | None = None
        """The evaluation of the selected model, if it was made since this process began."""
        labels = objective.scored_objective.label_names
        self.metric: Metric = find_metric(find_metric_name(options, objective), labels)
        self.own_metric = self.metric.name == objective.metric
        """Whether the objective itself computes the metric, also while training."""
        if not self.own_metric and self.metric.reads not in objective.outputs:
            outputs = " and ".join(objective.outputs) or "none"
            raise UserError(
                f"--metric {self.metric.name}: is computed from {self.metric.reads}; "
                f"--objective {objective.name} gives {outputs}"
            )
        if options.patience is not None and "dev" not in objective.splits:
            raise UserError("--patience needs a dev split, and this task has none")

    @property
    def scores_start(self) -> bool:
        """Whether the model is scored before the first step: its head was fitted, and may be the best."""
        fitted = getattr(self.options, "head_start", None) == "fitted" and not self.objective.refits_head
        return fitted and "dev" in self.objective.splits

    def update(self, state: TrainingState, dev: Evaluation) -> None:
        """Note in the state whether the model after this step is the best, and whether to stop early."""
        if math.isnan(dev.value) and dev.n:
            raise UserError(f"--metric {self.metric.name}: has no value on dev, whose {dev.n} rows are alike")
        better = state.best_step < 0 or self.is_better(state, dev)
        if better or self.options.select == "last":
            state.best_step, self.selected = state.step, dev
        if better:
            state.best_value, state.best_loss = dev.value, dev.loss
            state.evaluations_since_best = 0
        else:
            state.evaluations_since_best += 1
            patience = self.options.patience
            state.stopped_early = patience is not None and state.evaluations_since_best >= patience

    def is_better(self, state: TrainingState, dev: Evaluation) -> bool:
        """Whether an evaluation is better than the best one so far.

        The model before the first step is kept only if it is better by more than chance: on few rows it often
        has the same score as a trained one, and a lower loss because it is less sure.
        """
        metric = self.metric
        if state.best_step == 0 and state.step > 0:
            lost = metric.improvement(dev.value, state.best_value)
            return lost <= metric.noise(state.best_value, dev.n)
        return metric.sort_key(dev.value, dev.loss) > metric.sort_key(state.best_value, state.best_loss)
