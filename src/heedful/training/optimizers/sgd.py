from __future__ import annotations

from torch import optim

from heedful.training.optimizers.base import Groups, OptimizerChoice


class SGDChoice(OptimizerChoice):
    """Gradient descent with momentum 0.9."""

    name = "sgd"
    about = "gradient descent with momentum 0.9"
    rate_factor = 200.0  # plain gradients are far smaller than the unit steps of the others

    @staticmethod
    def build(groups: Groups, lr: float) -> optim.Optimizer:
        return optim.SGD(groups, lr=lr, momentum=0.9, fused=True)
