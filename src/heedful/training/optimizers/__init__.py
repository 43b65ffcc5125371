"""Optimizers by name, one file each. Importing this package imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heedful.plugins import Registry, lazy_attributes

if TYPE_CHECKING:
    from torch import optim

    from heedful.training.optimizers.base import Groups, OptimizerChoice, group_parameters
else:
    __getattr__ = lazy_attributes(
        __name__, {"heedful.training.optimizers.base": "Groups OptimizerChoice group_parameters"}
    )

__all__ = ["OPTIMIZERS", "Groups", "OptimizerChoice", "group_parameters", "make"]

OPTIMIZERS: Registry[type[OptimizerChoice]] = Registry(
    "optimizer",
    {
        "adamw": "heedful.training.optimizers.adamw:AdamWChoice",
        "sgd": "heedful.training.optimizers.sgd:SGDChoice",
        "rmsprop": "heedful.training.optimizers.rmsprop:RMSpropChoice",
        "muon": "heedful.training.optimizers.muon:MuonChoice",
    },
)


def make(name: str, groups: Groups, lr: float) -> optim.Optimizer:
    from heedful.training.optimizers.quick import build_without_compiler

    return build_without_compiler(OPTIMIZERS.find(name).build, groups, lr)
