"""The losses while training, between two evaluations."""

from __future__ import annotations

import math

from heedful.objectives import Inputs, Losses, Objective
from heedful.training.checkpoint import TrainingState
from heedful.training.ranks import Ranks


class RunningLosses:
    """Sums of losses in the training state, which every checkpoint has.

    The losses of the last steps are `pending`: on a GPU, reading them would wait for the device.
    """

    def __init__(self, objective: Objective, ranks: Ranks) -> None:
        self.objective, self.ranks = objective, ranks
        self.pending: list[list[Losses]] = []

    def count(self, state: TrainingState, part: Inputs) -> None:
        state.examples += part.examples
        state.tokens += part.tokens
        divisors = part.divisors or part.counts
        for name, n in part.counts.items():
            state.running_loss.setdefault(name, 0.0)
            state.running_weight[name] = state.running_weight.get(name, 0.0) + divisors[name]
            state.running_count[name] = state.running_count.get(name, 0) + n

    def add_pending(self, state: TrainingState) -> bool:
        """Add the pending losses of all processes, and return whether all sums are finite."""
        names = list(self.objective.weights)
        rows = [
            [sum(one.sums[name].item() for one in step if name in one.sums) for name in names]
            + [sum(int(one.right or 0) for one in step)]
            for step in self.pending
        ]
        for *sums, right in self.ranks.sum(rows) if rows else []:
            for name, total in zip(names, sums, strict=True):
                if name in state.running_loss:
                    state.running_loss[name] += total
            state.running_right += int(right)
        self.pending.clear()
        return all(math.isfinite(value) for value in state.running_loss.values())

    def means(self, state: TrainingState) -> tuple[float, dict[str, float]]:
        """Return the mean loss since the last row, and that of each part of the objective."""
        sums, divisors = state.running_loss, state.running_weight
        parts = {name: sums[name] / (divisors[name] or 1.0) for name in sums}
        weights = self.objective.weights_at(state.step - 1)
        loss = sum(weights.get(name, 0.0) * value for name, value in parts.items())
        if self.objective.one_mean:
            loss = sum(sums.values()) / (sum(divisors.values()) or 1.0)
        return loss, parts

    def clear(self, state: TrainingState) -> None:
        state.running_loss, state.running_weight, state.running_count = {}, {}, {}
        state.running_right = 0

    def describe(self, state: TrainingState, metric: str) -> str:
        """Return what is shown beside the progress bar: the loss, the best score so far and the speed."""
        main = next(iter(self.objective.weights))
        parts = []
        if state.running_weight.get(main):
            parts.append(f"loss {state.running_loss[main] / state.running_weight[main]:.3f}")
        if state.best_step >= 0 and math.isfinite(state.best_value):
            parts.append(f"best dev {metric} {state.best_value:.3f}")
        parts.append(f"{state.examples / max(state.seconds, 1e-9):.0f} examples/s")
        return ", ".join(parts)
