"""Texts of random tokens, where no model can guess the next one: a loss below ln(tokens) proves a leak."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.lab.small_models import fit, make_small_model

TOKENS, LENGTH = 4, 8
BATCH, HELD_OUT = 64, 2000
HONEST = math.log(TOKENS)
"""The best loss of a model that does not see the future."""


@dataclass(frozen=True)
class Guesses:
    """A model's loss on new texts."""

    whole: float
    """The loss as in training: the whole text is there, masked."""
    in_use: float
    """The loss as in generation: the future does not exist yet."""


def texts(n: int, random: torch.Generator) -> Tensor:
    """Return uniform, independent tokens [n, t]."""
    return torch.randint(TOKENS, (n, LENGTH), generator=random)


def learn(attention: str, steps: int, seed: int, **options: Any) -> Guesses:
    """Train a decoder with this mechanism to guess the next token."""
    model = make_small_model(
        seed, "causal", kind="decoder", vocab_size=TOKENS, max_len=LENGTH, attention=attention,
        attention_options=options, init_std=0.1,
    )  # fmt: skip

    def guess(ids: Tensor) -> Tensor:
        logits = model(ids)[:, :-1]
        return F.cross_entropy(logits.reshape(-1, TOKENS), ids[:, 1:].reshape(-1))

    fit(model, lambda random: guess(texts(BATCH, random)), steps, seed, f"training with {attention}")
    ids = texts(HELD_OUT, torch.Generator().manual_seed(seed + 1))
    with torch.inference_mode():
        alone = [F.cross_entropy(model(ids[:, :t])[:, -1], ids[:, t]) for t in range(1, LENGTH)]
        return Guesses(float(guess(ids)), float(torch.stack(alone).mean()))
