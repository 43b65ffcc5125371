"""One step on several processes: each computes some parts of the batch, and all get the whole gradient."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from heedful.objectives import Inputs, Losses, Objective
from heedful.training.ranks import Ranks, report_lost_process
from heedful.training.signals import STOP_SIGNALS

EXCHANGE_WORDS = ("gloo", "Gloo", "NCCL", "Connection", "Socket", "peer")
"""Words that torch's messages about a lost process contain."""


def agree_on_stop(
    ranks: Ranks, asked: signal.Signals | None, due: bool
) -> tuple[signal.Signals | None, bool]:
    """Return the signal that any of the processes received, and whether the first wants a checkpoint."""
    if ranks.alone:
        return asked, due
    flags = [asked is number for number in STOP_SIGNALS]
    *flags, due = map(bool, ranks.maximum([*flags, due and ranks.first]))
    return next((number for number, sent in zip(STOP_SIGNALS, flags, strict=True) if sent), None), due


class ObjectiveModule(nn.Module):
    """An objective and its model as one module, since DistributedDataParallel wraps a whole forward pass."""

    def __init__(self, model: nn.Module, objective: Objective) -> None:
        super().__init__()
        self.model = model
        self.objective = objective

    def forward(self, part: Inputs) -> tuple[dict[str, torch.Tensor], Any]:
        losses = self.objective.losses(self.model, part)
        return dict(losses.sums), losses.right


class GradientExchange:
    """Exchanges gradients: each process has those of its own parts, divided by the counts of the whole step.

    Torch takes the mean over the processes, and the sum is wanted: `scale` is the number of processes.
    """

    def __init__(
        self, model: nn.Module, objective: Objective, moving: Sequence[nn.Parameter], ranks: Ranks
    ) -> None:
        self.moving, self.ranks, self.scale = list(moving), ranks, float(ranks.size)
        self.shared = DistributedDataParallel(
            ObjectiveModule(model, objective),
            # Which parameters a part reaches depends on the part: joint training has two kinds.
            find_unused_parameters=True,
        )
        self.shared.broadcast_buffers = False  # they are the same from the beginning
        self.by_hand = False

    @contextmanager
    def part(self, *, last: bool) -> Iterator[None]:
        """Forward and backward pass of one part; after the last, the gradients are those of all processes."""
        waits: AbstractContextManager[None] = nullcontext()
        if self.by_hand or not last:
            waits = self.shared.no_sync()
        with waits, report_lost_process(EXCHANGE_WORDS):
            yield

    def losses(self, part: Inputs) -> Losses:
        sums, right = self.shared(part)
        return Losses(sums, right)

    def begin(self, parts: int) -> None:
        """Begin a step of this many parts.

        DistributedDataParallel waits for a backward pass in every process. In a step of fewer parts than
        processes, such as an epoch's last, some have none, and the gradients are added up without it.
        """
        self.by_hand = parts < self.ranks.size

    def finish(self) -> None:
        """Add up what was not added up in the last backward pass.

        A parameter that no part has reached keeps no gradient, so that the optimizer skips it.
        """
        if not self.by_hand:
            return
        reached = self.ranks.maximum([int(p.grad is not None) for p in self.moving])
        wanted = [p for p, used in zip(self.moving, reached, strict=True) if used]
        if not wanted:
            return
        for p in wanted:
            if p.grad is None:
                p.grad = torch.zeros_like(p)
        grads = [p.grad for p in wanted if p.grad is not None]
        flat = torch.cat([grad.flatten() for grad in grads]) / self.scale
        with report_lost_process():
            dist.all_reduce(flat)
        sizes = [grad.numel() for grad in grads]
        for grad, total in zip(grads, torch.split(flat, sizes), strict=True):
            grad.copy_(total.view_as(grad))
