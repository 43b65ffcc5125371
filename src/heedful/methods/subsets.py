"""Methods that train a part of what the model has: everything, the head alone, or biases and the head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from heedful.errors import UserError
from heedful.methods.base import Method, Trainee


@dataclass(kw_only=True)
class Full(Method):
    """Fine-tuning of the whole model (Howard and Ruder 2018; Devlin et al. 2019, section 3.2)."""

    name = "full"
    about = "every parameter"
    learning_rate = 1e-4
    usual_width = 384
    saves_whole_model = True
    switchable = False

    def add(self, model: Trainee) -> set[str]:
        return {name for name, _ in model.named_parameters()}


@dataclass(kw_only=True)
class Head(Method):
    """A linear probe: the pretrained body stays as it is, so its features can be computed once.

    Attributes
    ----------
    solver
        gradient trains the head by steps. convex fits it as a logistic regression, whose regularization is
        chosen by cross-validation: there is no learning rate, and no epoch.

    """

    name = "head"
    about = "the head alone, on a frozen body"
    learning_rate = 1e-3
    default_head_form = "linear"
    frozen_body = head_only = True

    solver: Literal["gradient", "convex"] = "gradient"

    @property
    def takes_steps(self) -> bool:
        return self.solver == "gradient"

    def add(self, model: Trainee) -> set[str]:
        return set()


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
