from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, optim

from heedful.training.optimizers.base import Groups, OptimizerChoice


class MuonChoice(OptimizerChoice):
    """Muon for the matrices of the body's layers, AdamW for embeddings, norms, biases and heads."""

    name = "muon"
    about = "orthogonalized momentum for the layers' matrices, AdamW for the rest"
    paper = "Jordan et al. 2024, https://kellerjordan.github.io/posts/muon"

    @staticmethod
    def build(groups: Groups, lr: float) -> optim.Optimizer:
        return Muon(groups, lr=lr)


class Muon(optim.Optimizer):
    """Momentum whose matrices are made orthogonal by five Newton-Schulz steps, in float32.

    Float32 because a bfloat16 product fails on processors that announce it. The update of an m x n matrix is
    scaled by 0.2 sqrt(max(m, n)), which gives it the size of an AdamW update (Liu et al. 2025), so that one
    learning rate serves both groups.
    """

    def __init__(self, groups: Groups, lr: float, momentum: float = 0.95, steps: int = 5) -> None:
        super().__init__(groups, {"lr": lr, "weight_decay": 0.0, "momentum": momentum, "steps": steps})
        others = self.adamw_groups()
        self.adamw = optim.AdamW(others, lr=lr, fused=True) if others else None

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            if group["kind"] != "matrix":
                continue
            for parameter in group["params"]:
                if parameter.grad is None:
                    continue
                buffer = self.state[parameter].setdefault("momentum", torch.zeros_like(parameter))
                buffer.lerp_(parameter.grad, 1 - group["momentum"])
                update = orthogonalize(parameter.grad.lerp(buffer, group["momentum"]), group["steps"])
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                parameter.add_(update, alpha=-group["lr"] * 0.2 * max(parameter.shape) ** 0.5)
        if self.adamw is not None:
            for group, adamw_group in zip(self.adamw_groups(), self.adamw.param_groups, strict=True):
                adamw_group["lr"] = group["lr"]
            self.adamw.step()

    def adamw_groups(self) -> Groups:
        return [group for group in self.param_groups if group["kind"] != "matrix"]

    def state_dict(self) -> dict[str, Any]:
        return {
            "muon": super().state_dict(),
            "rest": self.adamw.state_dict() if self.adamw is not None else None,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict["muon"])
        if self.adamw is not None:
            self.adamw.load_state_dict(state_dict["rest"])


def orthogonalize(matrix: Tensor, steps: int) -> Tensor:
    """Return the nearest matrix with singular values near 1, by a quintic Newton-Schulz iteration."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x: Tensor = matrix.float()
    x = x / (x.norm() + 1e-7)
    wide = x.shape[0] <= x.shape[1]
    x = x if wide else x.T
    for _ in range(steps):
        gram = x @ x.T
        x = a * x + torch.addmm(gram, gram, gram, beta=b, alpha=c) @ x
    return (x if wide else x.T).to(matrix.dtype)
