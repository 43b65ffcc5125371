"""The loss of predicting a token: logits only where something is predicted, never all of them at once.

Grade: same mathematics.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from heedful.data.batches import IGNORED
from heedful.objectives.base import upcast

NUMBERS = 1 << 21
"""The number of logits computed at a time: 8 MB of float32."""
CACHED, LEAST_ROWS = 1 << 18, 64
"""The number of logits computed at a time with their gradient (1 MB), and the smallest number of rows."""


def vocabulary_loss(head: nn.Module, states: Tensor, labels: Tensor) -> Tensor:
    """The summed cross-entropy of states [n, d], a chunk of the vocabulary-wide logits at a time."""
    out: Any = head.out
    plain = type(out) is nn.Linear and not torch.is_autocast_enabled(states.device.type)
    if plain and states.device.type == "cpu" and torch.is_grad_enabled():
        features: Tensor = head.features(states)  # type: ignore[operator]
        found: Tensor = OutputLoss.apply(features, out.weight, out.bias, labels)  # type: ignore[no-untyped-call]
        return found
    total: Tensor = token_losses(head, states, labels).sum()
    return total


class OutputLoss(torch.autograd.Function):
    """The summed cross-entropy of a linear layer's outputs, which are gone before the next chunk is made.

    The gradients of a sum are known with it, but for a factor: they are made in the forward pass, while the
    chunk is in the processor's cache, and no logits are kept for the backward pass.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Tensor:
        rows = max(LEAST_ROWS, CACHED // len(weight))
        dx, total = torch.empty_like(x), x.new_zeros(())
        dweight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
        dbias = torch.zeros_like(bias) if bias is not None and ctx.needs_input_grad[2] else None
        for i in range(0, len(x), rows):
            some, wanted = x[i : i + rows], labels[i : i + rows, None]
            logits = some @ weight.T if bias is None else torch.addmm(bias, some, weight.T)  # [c, v]
            torch.log_softmax(logits, -1, out=logits)
            total -= logits.gather(1, wanted).sum()
            logits.exp_().scatter_add_(1, wanted, logits.new_full(wanted.shape, -1.0))
            torch.mm(logits, weight, out=dx[i : i + rows])
            if dweight is not None:
                dweight.addmm_(logits.T, some)
            if dbias is not None:
                dbias += logits.sum(0)
        ctx.save_for_backward(dx, dweight, dbias)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        found = (None if made is None else made.mul_(grads[0]) for made in ctx.saved_tensors)
        return *found, None


def token_losses(head: nn.Module, states: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy of each of the states [n, d]: [n]."""
    out: Any = head.out
    rows = max(1, NUMBERS // int(out.out_features))
    if len(states) <= rows:
        return F.cross_entropy(upcast(head(states)), labels, reduction="none")
    parts = [
        F.cross_entropy(upcast(head(s)), y, reduction="none")
        for s, y in zip(torch.split(states, rows), torch.split(labels, rows), strict=True)
    ]
    return torch.cat(parts)


def select_labeled(states: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The states [n, d] and labels [n] of the positions of [b, t, d] that have a label."""
    wanted = labels != IGNORED
    if bool(wanted.all()):
        return states.flatten(0, 1), labels.flatten()
    return states[wanted], labels[wanted]
