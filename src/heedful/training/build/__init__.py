"""Builders of a training run: they turn options into the parts that `heedful.training.train` runs."""

from __future__ import annotations

from heedful.options.training import AdaptOptions, LoopOptions, PretrainOptions
from heedful.training.build.adapt import build_adapt, is_trained_by_steps
from heedful.training.build.job import Job, learning_rate
from heedful.training.build.pretrain import build_pretrain

__all__ = ["Job", "build_adapt", "build_job", "build_pretrain", "is_trained_by_steps", "learning_rate"]


def build_job(options: LoopOptions) -> Job:
    """Load and build all parts of a run; nothing is written yet."""
    if isinstance(options, AdaptOptions):
        return build_adapt(options)
    assert isinstance(options, PretrainOptions)
    return build_pretrain(options)
