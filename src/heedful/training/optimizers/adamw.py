from __future__ import annotations

from torch import optim

from heedful.training.optimizers.base import Groups, OptimizerChoice


class AdamWChoice(OptimizerChoice):
    """Adam with decoupled weight decay, fused into one pass over all parameters."""

    name = "adamw"
    about = "Adam with decoupled weight decay"
    paper = "Loshchilov and Hutter 2019, Decoupled Weight Decay Regularization, arXiv:1711.05101"

    @staticmethod
    def build(groups: Groups, lr: float) -> optim.Optimizer:
        return optim.AdamW(groups, lr=lr, betas=(0.9, 0.999), eps=1e-8, fused=True)
