"""What an optimizer declares, and the parameter groups that it is built from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from torch import nn, optim

Groups = list[dict[str, Any]]
HEADS = ("head", "masked_head")


class OptimizerChoice:
    """One way to turn gradients into steps. The class constants are what studies need to know."""

    name: ClassVar[str]
    about: ClassVar[str]
    paper: ClassVar[str] = ""
    rate_factor: ClassVar[float] = 1.0
    """The usual learning rate as a multiple of AdamW's, which each method declares."""

    @classmethod
    def usual_learning_rates(cls, learning_rate: float) -> tuple[float, ...]:
        """Return the rates a search begins with, for a method whose rate with AdamW is `learning_rate`."""
        return tuple(factor * learning_rate * cls.rate_factor for factor in (0.3, 1.0, 3.0))

    @staticmethod
    def build(groups: Groups, lr: float) -> optim.Optimizer:
        """Return a torch optimizer for the groups of `group_parameters`."""
        raise NotImplementedError


def group_parameters(model: nn.Module, parameters: Mapping[str, nn.Parameter], weight_decay: float) -> Groups:
    """Sort parameters by their role. Matrices decay; biases, norms and vectors do not.

    The `kind` of a group is "plain" (no decay), "head" (matrices outside the body's layers) or "matrix". Most
    optimizers treat the last two alike; Muon does not. Vectors are the rows of an embedding and the
    parameters of a module with the attribute `holds_vectors`, such as the vectors of a prompt.
    """
    remaining = {id(p) for p in parameters.values()}
    plain: list[nn.Parameter] = []
    heads: list[nn.Parameter] = []
    matrices: list[nn.Parameter] = []
    for path, module in model.named_modules():
        vectors = isinstance(module, nn.Embedding) or getattr(module, "holds_vectors", False)
        for parameter in module.parameters(recurse=False):
            if id(parameter) not in remaining:
                continue
            remaining.remove(id(parameter))
            if parameter.dim() < 2 or vectors:
                plain.append(parameter)
            elif path.split(".")[0] in HEADS or not isinstance(module, nn.Linear):
                heads.append(parameter)
            else:
                matrices.append(parameter)
    groups: Groups = [
        {"params": plain, "weight_decay": 0.0, "kind": "plain"},
        {"params": heads, "weight_decay": weight_decay, "kind": "head"},
        {"params": matrices, "weight_decay": weight_decay, "kind": "matrix"},
    ]
    return [group for group in groups if group["params"]]
