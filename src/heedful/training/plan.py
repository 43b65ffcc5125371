"""The plan of a run: which examples each step has, when it evaluates, and its learning rate."""

from __future__ import annotations

from bisect import bisect_right

import numpy as np

from heedful.data.batches import Batches
from heedful.objectives import Objective
from heedful.objectives.base import Ints
from heedful.options.training import FIXED_SETTINGS, LoopOptions
from heedful.training import schedules

FEWEST_SCORED = 500
"""Training rows that an evaluation scores in any case, if there are as many: fewer tell little."""


def count_dev(objective: Objective) -> int:
    """Return the number of rows of dev, where the objective has the lengths of its texts."""
    lengths = getattr(objective, "lengths", None)
    return len(lengths["dev"]) if isinstance(lengths, dict) and "dev" in lengths else 0


class StepPlan:
    """Steps and epochs, as a pure function of the options and the lengths of the examples.

    Attributes
    ----------
    total
        Number of steps of the whole run.
    epoch_ends
        The step after each epoch.
    warmup
        Number of warm-up steps.
    decay_start
        The step at which a schedule with a stable part begins to decay, or -1.

    """

    def __init__(self, options: LoopOptions, objective: Objective) -> None:
        self.options, self.first = options, objective.first_steps
        self.warmup_option = FIXED_SETTINGS["warmup"] if options.warmup is None else options.warmup
        self.batches = Batches(
            objective.train_lengths(),
            batch_size=None if options.token_budget else options.batch_size or FIXED_SETTINGS["batch_size"],
            token_budget=options.token_budget,
            seed=options.seed,
        )
        self.epoch_ends: list[int] = []
        self.total = self.plan_epochs()
        self.warmup = schedules.warmup_steps(self.warmup_option, self.total - self.first)
        decay = schedules.decay_begins(options.schedule, self.total - self.first, self.warmup)
        self.decay_start = self.first + decay if decay >= 0 else -1

    def plan_epochs(self) -> int:
        """Find where each epoch ends, and return after which step the run does."""
        o, ends, end = self.options, self.epoch_ends, self.first
        epochs = o.epochs or FIXED_SETTINGS["epochs"]
        while len(ends) < epochs if o.steps is None else end < self.first + o.steps:
            # Only a token budget makes epochs of different numbers of batches.
            same = bool(ends) and o.token_budget is None
            end += (ends[0] - self.first) if same else len(self.batches.plan(len(ends)))
            ends.append(end)
        return end if o.steps is None else self.first + o.steps

    def epoch_of(self, step: int) -> tuple[int, int]:
        """Return the epoch of a step, and the step that it begins with."""
        epoch = bisect_right(self.epoch_ends, step)
        return epoch, self.first if epoch == 0 else self.epoch_ends[epoch - 1]

    def examples_of(self, step: int) -> tuple[int, Ints]:
        """Return the epoch of a step and its examples; there are none in steps before the task."""
        if step < self.first:
            return 0, np.empty(0, np.int64)
        epoch, begin = self.epoch_of(step)
        return epoch, self.batches.plan(epoch)[step - begin]

    def epochs_after(self, step: int) -> float:
        """Return how many epochs are done after this many steps, with the fraction of the current one."""
        if step <= self.first:
            return 0.0
        epoch, begin = self.epoch_of(step - 1)
        return round(epoch + (step - begin) / (self.epoch_ends[epoch] - begin), 6)

    def evaluates_after(self, step: int) -> bool:
        if step == self.total:
            return True
        done = step - self.first
        if done <= 0:
            return False
        if self.options.eval_every is not None:
            return done % self.options.eval_every == 0
        return step in self.epoch_ends

    @property
    def interval(self) -> int:
        """The number of steps between two evaluations; the first of those where epochs differ."""
        return self.options.eval_every or self.epoch_ends[0] - self.first

    def count_scored_rows(self, dev_rows: int) -> int:
        """Return how many training rows each evaluation scores, beside all rows of dev.

        These are `--train-eval-rows`, or as many as make scoring a quarter of the run's time, but at least
        `FEWEST_SCORED`. A row is scored in a third of the time in which it is trained on (a forward pass
        without a backward pass), so that a quarter is reached with as many rows as are trained on between two
        evaluations.
        """
        steps_per_epoch = self.epoch_ends[0] - self.first
        between = round(len(self.batches.lengths) * self.interval / max(1, steps_per_epoch))
        return min(self.options.train_eval_rows, max(FEWEST_SCORED, between - dev_rows))

    def rate_factor(self, step: int) -> float:
        """Return the factor of the learning rate; steps before the task have a schedule of their own."""
        total, warmup = self.total, self.warmup
        if step < self.first:
            total, warmup = self.first, schedules.warmup_steps(self.warmup_option, self.first)
        else:
            step, total = step - self.first, total - self.first
        return schedules.factor(self.options.schedule, step, total, warmup)
