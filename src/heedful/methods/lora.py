"""Trainable products of two thin matrices beside frozen linear layers."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.attention.dropout import dropout
from heedful.errors import UserError, unknown
from heedful.methods.base import Method, Trainee
from heedful.models.bodies import ROLES, LayeredBody
from heedful.options.types import Count, Factor, Positive, Share
from heedful.runs.memory import require_memory


class LoRALinear(nn.Linear):
    """A linear layer and a product of rank r beside it: y = x W^T + b + scale (x A^T) B^T.

    The layer's own weight and bias keep their names, so that checkpoint tables find them.
    """

    def __init__(self, base: nn.Linear, rank: int, scale: float, p: float) -> None:
        super().__init__(base.in_features, base.out_features, bias=base.bias is not None, device="meta")
        self.weight, self.bias = base.weight, base.bias
        self.lora_a = nn.Parameter(base.weight.new_empty(rank, base.in_features))
        self.lora_b = nn.Parameter(base.weight.new_zeros(base.out_features, rank))
        nn.init.kaiming_uniform_(self.lora_a, a=math.sqrt(5))
        self.scale, self.p, self.on = scale, p, True
        self.train(base.training)

    def forward(self, x: Tensor) -> Tensor:
        y = F.linear(x, self.weight, self.bias)
        if not self.on:
            return y
        low = F.linear(dropout(x, self.p, self.training), self.lora_a)  # [..., r]
        return y + F.linear(low, self.lora_b * self.scale)

    def plain(self) -> nn.Linear:
        """Return the layer with the product added to its weight."""
        with torch.no_grad():
            self.weight += self.scale * (self.lora_b @ self.lora_a)
        layer = nn.Linear(self.in_features, self.out_features, bias=self.bias is not None, device="meta")
        layer.weight, layer.bias = self.weight, self.bias
        return layer.train(self.training)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, rank={len(self.lora_a)}, scale={self.scale:.4g}"


@dataclass(kw_only=True)
class Lora(Method):
    """Low-rank adaptation (Hu et al. 2022): weight changes of rank `rank`, scaled by `alpha` / `rank`.

    `targets` are roles, the same for every family: q, k, v, o (attention's projections, cross-attention's
    included) and ff (the whole feed-forward). With `rank_stabilized` the scale is `alpha` / sqrt(rank)
    (Kalajdzievski 2023), which keeps high ranks learning. `dropout` acts on what enters the product.

    `layers` adapts this many upper layers alone; 0 is all. What is below them never changes: no gradient goes
    there, and a classifier's run computes its states once, with its dropout off, as top-layers does.
    """

    name = "lora"
    about = "low-rank changes of linear layers"
    paper = "Hu et al. 2022, LoRA, arXiv:2106.09685"
    learning_rate = 5e-4

    rank: Positive = 8
    alpha: Factor = 16.0
    targets: str = "q,v"
    dropout: Share = 0.0
    rank_stabilized: bool = False
    layers: Count = 0

    def check(self) -> None:
        for role in self.roles:
            if role not in ROLES:
                raise unknown("lora target", role, ROLES)

    @property
    def roles(self) -> list[str]:
        """The targets, in the order of `ROLES`, each once."""
        targets = {part.strip() for part in self.targets.split(",")}
        return sorted(targets, key=lambda role: [*ROLES, role].index(role))

    @property
    def scale(self) -> float:
        return self.alpha / (math.sqrt(self.rank) if self.rank_stabilized else self.rank)

    def add(self, model: Trainee) -> set[str]:
        layers_of: dict[str, list[str]] = model.body.roles()
        if self.layers:
            upper = tuple(f"stack.layers.{i}." for i in self.upper_layers(model))
            layers_of = {role: [n for n in names if n.startswith(upper)] for role, names in layers_of.items()}
        for role in self.roles:
            if not layers_of[role]:
                raise UserError(f"lora: this model has no layer in the role {role}; choose other targets")
        self.adapted = [f"body.{name}" for role in self.roles for name in layers_of[role]]
        bases = {name: model.get_submodule(name) for name in self.adapted}
        width = sum(base.in_features + base.out_features for base in bases.values())
        require_memory(4.0 * self.rank * width, f"lora: a rank of {self.rank:,}")
        for name, base in bases.items():
            model.set_submodule(name, LoRALinear(base, self.rank, self.scale, self.dropout))
        return {f"{name}.{part}" for name in self.adapted for part in ("lora_a", "lora_b")}

    def upper_layers(self, model: Trainee) -> range:
        """Return the numbers of the layers that are adapted."""
        body = model.body
        if not isinstance(body, LayeredBody):
            raise UserError(f"lora: layers works for models of one stack, not for {model.config.family}")
        total = len(body.stack.layers)
        if self.layers > total:
            raise UserError(f"lora: layers {self.layers}: this model has {total}")
        return range(total - self.layers if self.layers else 0, total)

    def count_frozen_layers(self, model: Trainee) -> int | None:
        return self.upper_layers(model).start if self.layers else None

    def switch(self, model: Trainee, on: bool) -> None:
        for name in self.adapted:
            model.get_submodule(name).on = on

    def fold(self, model: Trainee) -> None:
        for name in self.adapted:
            model.set_submodule(name, model.get_submodule(name).plain())
