"""The loss of predicting a token: logits only where something is predicted, never all of them at once.

Grade: same mathematics.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.data.batches import IGNORED
from heedful.objectives.base import exact

NUMBERS = 1 << 21
"""Logits that are made at a time: 8 MB of float32."""


def vocabulary_loss(head: nn.Module, states: Tensor, labels: Tensor) -> Tensor:
    """The summed cross-entropy of states [n, d], a chunk of the vocabulary-wide logits at a time."""
    total: Tensor = token_losses(head, states, labels).sum()
    return total


def token_losses(head: nn.Module, states: Tensor, labels: Tensor) -> Tensor:
    """The cross-entropy of each of the states [n, d]: [n]."""
    out: Any = head.out
    rows = max(1, NUMBERS // int(out.out_features))
    if len(states) <= rows:
        return F.cross_entropy(exact(head(states)), labels, reduction="none")
    parts = [
        F.cross_entropy(exact(head(s)), y, reduction="none")
        for s, y in zip(torch.split(states, rows), torch.split(labels, rows), strict=True)
    ]
    return torch.cat(parts)


def labelled(states: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The states [n, d] and labels [n] of the positions of [b, t, d] that have a label."""
    wanted = labels != IGNORED
    if bool(wanted.all()):
        return states.flatten(0, 1), labels.flatten()
    return states[wanted], labels[wanted]
