from __future__ import annotations

from torch import optim

from heedful.training.optimizers.base import Groups, OptimizerChoice


class RMSpropChoice(OptimizerChoice):
    """The gradient divided by its recent size, number by number."""

    name = "rmsprop"
    about = "gradients divided by a running mean of their size"
    paper = "Tieleman and Hinton 2012, lecture 6.5 of Neural Networks for Machine Learning"

    @staticmethod
    def build(groups: Groups, lr: float) -> optim.Optimizer:
        return optim.RMSprop(groups, lr=lr, alpha=0.99, eps=1e-8, foreach=True)
