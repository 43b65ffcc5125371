"""Trainable keys and values in every layer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention import MECHANISMS, find_capable
from heedful.errors import UserError
from heedful.methods.base import Method, Trainee
from heedful.models.blocks import Stack
from heedful.options.types import Positive


class KeysValues(nn.Module):
    """The keys and values themselves: [n_layers, 2, h, p, d_head]."""

    holds_vectors = True  # no weight decay, as for embeddings

    def __init__(self, values: Tensor) -> None:
        super().__init__()
        self.values = nn.Parameter(values)

    def forward(self) -> Tensor:
        return self.values


class ReparametrizedPrefix(nn.Module):
    """Keys and values that a small network makes from one vector per position (Li and Liang 2021, 4.3)."""

    holds_vectors = True  # no weight decay, as for embeddings

    def __init__(self, d_model: int, shape: tuple[int, ...], hidden: int) -> None:
        super().__init__()
        layers, _, heads, length, width = self.shape = shape
        self.vectors = nn.Parameter(torch.randn(length, d_model))
        self.inner = nn.Linear(d_model, hidden)
        self.outer = nn.Linear(hidden, layers * 2 * heads * width)

    def forward(self) -> Tensor:
        layers, _, heads, length, width = self.shape
        values: Tensor = self.outer(torch.tanh(self.inner(self.vectors)))  # [p, n_layers 2 h d]
        return values.view(length, layers, 2, heads, width).permute(1, 2, 3, 0, 4)


@dataclass(kw_only=True)
class Prefix(Method):
    """Prefix tuning (Li and Liang 2021; P-tuning v2, Liu et al. 2022): `length` keys and values per layer.

    They are in the self-attention of every layer, T5's encoder and decoder alike (its cross-attention is
    left alone), and carry no position bias. They start as the keys and values of random tokens; with
    `reparametrize` a network of width `hidden` makes them during training and is folded away in `state`.
    `shift` lets the text's positions begin at `length`, as transformers counts cached keys and so peft's
    prefixes do; without it the text keeps its positions and all of the position table.
    """

    name = "prefix"
    about = "trainable keys and values in every layer"
    paper = "Li and Liang 2021, Prefix-Tuning, arXiv:2101.00190"
    learning_rate = 1e-2
    frozen_body = True
    keeps_output = False
    mergeable = False

    length: Positive = 16
    reparametrize: bool = False
    hidden: Positive = 512
    shift: bool = True

    def add(self, model: Trainee) -> set[str]:
        body, config = model.body, model.config
        stacks: dict[str, Stack] = body.stacks()
        if not MECHANISMS[config.attention].prefix:
            raise UserError(
                f"prefix does not work with {config.attention} attention; "
                f"these take one: {', '.join(find_capable('prefix'))}"
            )
        absolute = config.position != "relative"
        if absolute and self.length >= body.room:
            raise UserError(f"prefix: length {self.length} leaves no room in {body.room} positions")
        started = {} if self.reparametrize else initial_keys_values(model, self.length)
        self.skip = self.length if self.shift and absolute else 0
        self.modules: dict[str, nn.Module] = {}
        for name, stack in stacks.items():
            shape = (len(stack.layers), 2, config.n_heads, self.length, config.d_head)
            if self.reparametrize:
                network = ReparametrizedPrefix(config.d_model, shape, self.hidden)
                self.modules[name] = network.to(body.embed.tokens.weight)
            else:
                self.modules[name] = KeysValues(started[name])
        self.switch(model, True)
        return self.names()

    def names(self) -> set[str]:
        return {
            f"body.{stack}.prefix.{name}"
            for stack, module in self.modules.items()
            for name, _ in module.named_parameters()
        }

    def state(self, model: Trainee) -> dict[str, Tensor]:
        """Return the head, and keys and values themselves: the network that made them is no longer needed."""
        kept = {name: t for name, t in super().state(model).items() if name not in self.names()}
        with torch.no_grad():
            values = {f"body.{name}.prefix.values": module().clone() for name, module in self.modules.items()}
        return {**values, **kept}

    def load_state(self, model: Trainee, state: Any) -> None:
        """Set keys and values; a network that made them is replaced."""
        self.check_attached(model)
        if self.reparametrize:
            with torch.no_grad():
                self.parts -= self.names()
                self.modules = {name: KeysValues(module().clone()) for name, module in self.modules.items()}
                self.parts |= self.names()
                self.reparametrize = False
            self.switch(model, True)
        super().load_state(model, state)

    def switch(self, model: Trainee, on: bool) -> None:
        for name, stack in model.body.stacks().items():
            stack.prefix = self.modules[name] if on else None
        model.body.skip = self.skip if on else 0

    def fold(self, model: Trainee) -> None:
        raise UserError(
            "prefix adds keys and values, which no weight can hold: it cannot be merged; "
            "export the adapter without --merge"
        )


def initial_keys_values(model: Trainee, length: int) -> dict[str, Tensor]:
    """Return the keys and values of random tokens in each layer, by stack: [n_layers, 2, h, p, d_head].

    Li and Liang 2021, section 7.4: prefixes that start as real activations learn better.
    """
    body, config = model.body, model.config
    weight = body.embed.tokens.weight
    seen: dict[str, list[Tensor]] = {name: [] for name in body.stacks()}
    hooks = [
        layer.attn.mechanism.register_forward_pre_hook(
            lambda _, inputs, name=name: seen[name].append(torch.stack([inputs[1][0], inputs[2][0]]))
        )
        for name, stack in body.stacks().items()
        for layer in stack.layers
    ]
    training = body.training
    body.eval()
    try:
        with torch.no_grad():
            body(torch.randint(config.vocab_size, (1, length)).to(weight.device))
    finally:
        body.train(training)
        for hook in hooks:
            hook.remove()
    return {name: torch.stack(layers) for name, layers in seen.items()}
