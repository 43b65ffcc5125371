"""A task that only attention can solve: each text pairs 16 keys with values and asks for one of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.lab.small_models import fit, make_small_model

KEYS, VALUES = 16, 8
BATCH, HELD_OUT = 64, 2000
BLIND = math.log(VALUES)
"""The loss of a model without attention: the question alone tells nothing about the answer."""


@dataclass(frozen=True)
class Lookup:
    """How well one mechanism learned."""

    losses: list[float]
    loss: float
    """On texts that were not trained on."""
    accuracy: float
    changed: int
    """Entries of q_proj and k_proj, weights and biases, whose bits are no longer those of the start."""
    entries: int


def texts(n: int, random: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
    """Return ids [n, 17] (the question, then values), types (the key of each) and the answers [n]."""
    keys = torch.rand(n, KEYS, generator=random).argsort(1)
    values = torch.randint(VALUES, (n, KEYS), generator=random)
    asked = torch.randint(KEYS, (n, 1), generator=random)
    ids = torch.cat([torch.full_like(asked, VALUES), values], 1)
    return ids, torch.cat([asked, keys], 1), values[keys == asked]


def learn(attention: str, steps: int, seed: int, **options: Any) -> Lookup:
    """Train one layer with this mechanism to look up values."""
    model = make_small_model(
        seed, "classify", VALUES, kind="encoder", vocab_size=VALUES + 1, n_types=KEYS, max_len=KEYS + 1,
        position="sinusoidal", attention=attention, attention_options=options, init_std=0.2,
    )  # fmt: skip
    watched = {n: p for n, p in model.named_parameters() if "q_proj" in n or "k_proj" in n}
    start = {name: parameter.detach().clone() for name, parameter in watched.items()}

    def loss(random: torch.Generator) -> Tensor:
        ids, types, answers = texts(BATCH, random)
        return F.cross_entropy(model(ids, None, types), answers)

    losses = fit(model, loss, steps, seed, f"training with {attention}")
    ids, types, answers = texts(HELD_OUT, torch.Generator().manual_seed(seed + 1))
    with torch.inference_mode():
        logits = model(ids, None, types)
        pairs = [(p.view(torch.int32), start[name].view(torch.int32)) for name, p in watched.items()]
        changed = sum(int((bits != before).sum()) for bits, before in pairs)
    accuracy = float((logits.argmax(1) == answers).double().mean())
    entries = sum(p.numel() for p in watched.values())
    return Lookup(losses, float(F.cross_entropy(logits, answers)), accuracy, changed, entries)
