"""A run whose model was fitted before the first step: it is scored and saved as after training."""

from __future__ import annotations

from heedful.progress import ProgressBar
from heedful.training.loop import Loop


class FittedLoop(Loop):
    """A loop without steps: one evaluation, one checkpoint, and the same files as every run."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.plan.total = self.plan.warmup = self.state.warmup = 0

    def take_steps(self, bar: ProgressBar) -> None:
        if self.state.best_step >= 0:
            return
        lengths = self.objective.train_lengths()
        self.state.examples, self.state.tokens = len(lengths), int(lengths.sum())
        self.evaluate_and_select()
        self.log.write_timing(self.state)
        self.write_checkpoint()
