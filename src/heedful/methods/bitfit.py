"""Only biases and the head are trained."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from heedful.errors import UserError
from heedful.methods.base import Method, Trainee


@dataclass(kw_only=True)
class Bitfit(Method):
    """The biases of all linear layers and norms (Ben Zaken et al. 2022)."""

    name = "bitfit"
    about = "biases of linear layers and norms"
    paper = "Ben Zaken, Ravfogel and Goldberg 2022, BitFit, arXiv:2106.10199"
    learning_rate = 1e-3

    def add(self, model: Trainee) -> set[str]:
        biases = {
            f"body.{name}.bias"
            for name, part in model.body.named_modules()
            if isinstance(part, nn.Linear | nn.LayerNorm) and part.bias is not None
        }
        if not biases:
            raise UserError(
                f"bitfit trains biases, and this {model.config.family} model has none; lora works without"
            )
        return biases
