"""Optimisers by name: one function each, from parameter groups to a torch optimiser."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, AdamW, Optimizer, RMSprop

from heedful.errors import unknown
from heedful.methods.prefix import KeysValues, Reparametrised
from heedful.models.embeddings import PromptVectors

Groups = list[dict[str, Any]]
HEADS = ("head", "masked_head")
EMBEDDINGS = (nn.Embedding, PromptVectors, KeysValues, Reparametrised)
"""Modules whose own parameters are vectors, of tokens, of places or of a prompt."""


def groups(model: nn.Module, parameters: Mapping[str, nn.Parameter], weight_decay: float) -> Groups:
    """Sort parameters by what they are: matrices decay; biases, norms and embeddings do not.

    The third group, of matrices inside the body's layers, is the second's for all optimisers but Muon.
    """
    wanted = {id(p) for p in parameters.values()}
    seen: set[int] = set()
    plain: list[nn.Parameter] = []
    heads: list[nn.Parameter] = []
    matrices: list[nn.Parameter] = []
    for path, module in model.named_modules():
        for parameter in module.parameters(recurse=False):
            if id(parameter) not in wanted or id(parameter) in seen:
                continue
            seen.add(id(parameter))
            if parameter.dim() < 2 or isinstance(module, EMBEDDINGS):
                plain.append(parameter)
            elif path.split(".")[0] in HEADS or not isinstance(module, nn.Linear):
                heads.append(parameter)
            else:
                matrices.append(parameter)
    made = [
        {"params": plain, "weight_decay": 0.0, "kind": "plain"},
        {"params": heads, "weight_decay": weight_decay, "kind": "head"},
        {"params": matrices, "weight_decay": weight_decay, "kind": "matrix"},
    ]
    return [group for group in made if group["params"]]


def adamw(made: Groups, lr: float) -> Optimizer:
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), fused into one pass over everything."""
    return AdamW(made, lr=lr, betas=(0.9, 0.999), eps=1e-8, fused=True)


def sgd(made: Groups, lr: float) -> Optimizer:
    """Gradient descent with momentum 0.9."""
    return SGD(made, lr=lr, momentum=0.9, fused=True)


def rmsprop(made: Groups, lr: float) -> Optimizer:
    """RMSprop (Tieleman and Hinton 2012)."""
    return RMSprop(made, lr=lr, alpha=0.99, eps=1e-8, foreach=True)


def muon(made: Groups, lr: float) -> Optimizer:
    """Muon (Jordan et al. 2024) for the layers' matrices, AdamW for embeddings, norms, biases and heads."""
    return Muon(made, lr=lr)


OPTIMISERS: dict[str, Callable[[Groups, float], Optimizer]] = {
    "adamw": adamw,
    "sgd": sgd,
    "rmsprop": rmsprop,
    "muon": muon,
}


def make(name: str, made: Groups, lr: float) -> Optimizer:
    """Build an optimiser; an unknown name lists the nearest."""
    if name not in OPTIMISERS:
        raise unknown("optimizer", name, OPTIMISERS)
    return OPTIMISERS[name](made, lr)


class Muon(Optimizer):
    """Momentum whose matrices are made orthogonal by five Newton-Schulz steps, in float32.

    Float32 because a bfloat16 product fails on processors that announce it. The update of an m x n matrix is
    scaled by 0.2 sqrt(max(m, n)), which gives it the size of an AdamW update (Liu et al. 2025), so that one
    learning rate serves both groups.
    """

    def __init__(self, made: Groups, lr: float, momentum: float = 0.95, steps: int = 5) -> None:
        super().__init__(made, {"lr": lr, "weight_decay": 0.0, "momentum": momentum, "steps": steps})
        others = [group for group in self.param_groups if group["kind"] != "matrix"]
        self.rest = AdamW(others, lr=lr, fused=True) if others else None

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """One update."""
        for group in self.param_groups:
            if group["kind"] != "matrix":
                continue
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                buffer = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
                buffer.lerp_(parameter.grad, 1 - group["momentum"])
                update = orthogonal(parameter.grad.lerp(buffer, group["momentum"]), group["steps"])
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(update, alpha=-group["lr"] * 0.2 * max(parameter.shape) ** 0.5)
        if self.rest is not None:
            for mine, theirs in zip(self.shared(), self.rest.param_groups, strict=True):
                theirs["lr"] = mine["lr"]
            self.rest.step()

    def shared(self) -> Iterable[dict[str, Any]]:
        """The groups that AdamW updates."""
        return [group for group in self.param_groups if group["kind"] != "matrix"]

    def state_dict(self) -> dict[str, Any]:
        """Both halves."""
        return {
            "muon": super().state_dict(),
            "rest": self.rest.state_dict() if self.rest is not None else None,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Both halves."""
        super().load_state_dict(state_dict["muon"])
        if self.rest is not None:
            self.rest.load_state_dict(state_dict["rest"])


def orthogonal(matrix: Tensor, steps: int) -> Tensor:
    """The nearest matrix with singular values near 1, by a quintic Newton-Schulz iteration."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x: Tensor = matrix.float()
    x = x / (x.norm() + 1e-7)
    wide = x.shape[0] <= x.shape[1]
    x = x if wide else x.T
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + torch.addmm(gram, gram, gram, beta=b, alpha=c) @ x
    return (x if wide else x.T).to(matrix.dtype)
