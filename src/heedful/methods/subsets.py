"""Methods that train a part of what the model has: everything, top layers, biases, or the head alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import nn

from heedful.errors import UserError
from heedful.methods.base import Method, Trainee
from heedful.models.bodies import LayeredBody
from heedful.options.types import Positive


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
    words
        With solver=convex: fit the words of the texts (tf-idf) together with the states.

    """

    name = "head"
    about = "the head alone, on a frozen body"
    learning_rate = 1e-3
    default_head_form = "linear"
    frozen_body = head_only = True

    solver: Literal["gradient", "convex"] = "gradient"
    words: bool = False

    def check(self) -> None:
        if self.words and self.solver != "convex":
            raise UserError("head: words are fitted together with the states; words=true needs solver=convex")

    @property
    def takes_steps(self) -> bool:
        return self.solver == "gradient"

    def add(self, model: Trainee) -> set[str]:
        return set()


@dataclass(kw_only=True)
class TopLayers(Method):
    """The top layers, with the last norm, the pooler and the head, on frozen lower layers.

    The lower layers run once per text, in evaluation mode: their dropout is off. Their states are kept in the
    cache (those of training texts in float16), so that an epoch costs the top layers alone. Lee, Tang and Lin
    2019 report that the top quarter of BERT's layers reaches 90 % of the quality of all.
    """

    name = "top-layers"
    about = "the top layers and the head; the layers below run once"
    paper = "Lee, Tang and Lin 2019, What Would Elsa Do? Freezing Layers, arXiv:1911.03090"
    learning_rate = 3e-4
    usual_width = 384
    saves_whole_model = True

    layers: Positive = 2

    def add(self, model: Trainee) -> set[str]:
        body = model.body
        if not isinstance(body, LayeredBody):
            raise UserError(
                f"top-layers cannot run the lower layers of {model.config.family} alone; full works there"
            )
        total = len(body.stack.layers)
        if self.layers > total:
            raise UserError(f"top-layers: layers {self.layers}: this model has {total}")
        upper = [f"body.stack.layers.{i}." for i in range(total - self.layers, total)]
        trained = (*upper, "body.stack.norm.", "body.pooler.")
        return {name for name, _ in model.named_parameters() if name.startswith(trained)}

    def count_frozen_layers(self, model: Trainee) -> int:
        return len(model.body.stack.layers) - self.layers


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
