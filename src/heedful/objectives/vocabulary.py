"""The loss of predicting a token: logits only where something is predicted, never all of them at once.

Grade: same mathematics.
"""

from __future__ import annotations

from collections.abc import Iterator
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
CHUNK = 2048
"""The number of positions computed at a time by `score_tokens`."""


def vocabulary_loss(head: nn.Module, states: Tensor, labels: Tensor) -> Tensor:
    """Return the summed cross-entropy of states [n, d], computed a chunk of the logits at a time."""
    out: Any = head.out
    plain = type(out) is nn.Linear and not torch.is_autocast_enabled(states.device.type)
    if plain and states.device.type == "cpu" and torch.is_grad_enabled():
        features: Tensor = head.features(states)  # type: ignore[operator]
        loss: Tensor = OutputLoss.apply(features, out.weight, out.bias, labels)  # type: ignore[no-untyped-call]
        return loss
    return token_losses(head, states, labels).sum()


class OutputLoss(torch.autograd.Function):
    """The summed cross-entropy of a linear layer's outputs, computed in chunks that are not kept.

    The gradients of the sum are known up to a factor in the forward pass. They are computed there, while the
    chunk is in the processor's cache, so that no logits are kept for the backward pass.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, labels: Tensor) -> Tensor:
        rows = max(LEAST_ROWS, CACHED // len(weight))
        dx, total = torch.empty_like(x), x.new_zeros(())
        dweight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
        dbias = torch.zeros_like(bias) if bias is not None and ctx.needs_input_grad[2] else None
        for i in range(0, len(x), rows):
            chunk, targets = x[i : i + rows], labels[i : i + rows, None]
            logits = chunk @ weight.T if bias is None else torch.addmm(bias, chunk, weight.T)  # [c, v]
            torch.log_softmax(logits, -1, out=logits)
            total -= logits.gather(1, targets).sum()
            logits.exp_().scatter_add_(1, targets, logits.new_full(targets.shape, -1.0))
            torch.mm(logits, weight, out=dx[i : i + rows])
            if dweight is not None:
                dweight.addmm_(logits.T, chunk)
            if dbias is not None:
                dbias += logits.sum(0)
        ctx.save_for_backward(dx, dweight, dbias)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if d is None else d.mul_(grads[0]) for d in ctx.saved_tensors), None


def iterate_logits(
    head: nn.Module, states: Tensor, labels: Tensor, rows: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the logits [rows, vocab_size] of states [n, d] with their labels, `rows` states at a time."""
    for chunk, targets in zip(torch.split(states, rows), torch.split(labels, rows), strict=True):
        yield upcast(head(chunk)), targets


def token_losses(head: nn.Module, states: Tensor, labels: Tensor) -> Tensor:
    """Return the cross-entropy [n] of each of the states [n, d]."""
    out: Any = head.out
    chunks = iterate_logits(head, states, labels, max(1, NUMBERS // int(out.out_features)))
    return torch.cat([F.cross_entropy(logits, targets, reduction="none") for logits, targets in chunks])


def score_tokens(
    head: nn.Module, states: Tensor, labels: Tensor, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Return the cross-entropy [n] of states [n, d], and whether each label is the most probable."""
    losses, right = [], []
    for logits, targets in iterate_logits(head, states, labels, CHUNK):
        losses.append(F.cross_entropy(logits, targets, reduction="none", label_smoothing=smoothing))
        right.append(logits.detach().argmax(1) == targets)
    return torch.cat(losses), torch.cat(right)


def select_labeled(states: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the states [n, d] and labels [n] of those positions of [b, t, d] that have a label."""
    labeled = labels != IGNORED
    if bool(labeled.all()):
        return states.flatten(0, 1), labels.flatten()
    return states[labeled], labels[labeled]
