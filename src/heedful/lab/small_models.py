"""Small models of heedful's own kind that learn in seconds, for claims about training."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from heedful.models import TransformerConfig, build
from heedful.models.heads import Model
from heedful.progress import track
from heedful.training import optimizers

LR = 5e-3


def make_small_model(seed: int, head: str, n_classes: int = 2, **options: Any) -> Model:
    """Return a model of one layer, one head and width 32, whose weights depend on the seed alone."""
    sizes: dict[str, Any] = {"d_model": 32, "n_layers": 1, "n_heads": 1, "d_ff": 64, "pad_id": None}
    quiet = dict.fromkeys(("dropout", "attention_dropout", "embed_dropout", "head_dropout"), 0.0)
    config = TransformerConfig(**{**sizes, **quiet, **options})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build(config, head, n_classes=n_classes, head_form="linear")


def fit(
    model: nn.Module, loss: Callable[[torch.Generator], Tensor], steps: int, seed: int, label: str
) -> list[float]:
    """Train with AdamW and no weight decay; `loss` draws a batch from the generator. Returns every loss."""
    groups = optimizers.group_parameters(model, dict(model.named_parameters()), weight_decay=0.0)
    optimizer = optimizers.make("adamw", groups, LR)
    random = torch.Generator().manual_seed(seed)
    losses = []
    model.train()
    for _ in track(range(steps), label, steps):
        optimizer.zero_grad()
        value = loss(random)
        value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        losses.append(value.item())
    model.eval()
    return losses
