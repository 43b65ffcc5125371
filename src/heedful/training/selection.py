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
        self.options = options
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

    def update(self, state: TrainingState, dev: Evaluation) -> None:
        """Note in the state whether the model after this step is the best, and whether to stop early."""
        if math.isnan(dev.value):
            raise UserError(f"--metric {self.metric.name}: has no value on dev, whose {dev.n} rows are alike")
        rank = self.metric.sort_key
        better = state.best_step < 0 or rank(dev.value, dev.loss) > rank(state.best_value, state.best_loss)
        if better or self.options.select == "last":
            state.best_step, self.selected = state.step, dev
        if better:
            state.best_value, state.best_loss = dev.value, dev.loss
            state.evaluations_since_best = 0
        else:
            state.evaluations_since_best += 1
            patience = self.options.patience
            state.stopped_early = patience is not None and state.evaluations_since_best >= patience
