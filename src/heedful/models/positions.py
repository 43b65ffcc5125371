"""Positions of tokens: learned and sinusoidal tables, rotary angles, relative biases."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


def sinusoids(length: int, width: int) -> Tensor:
    """Return the fixed table of Vaswani et al. 2017, section 3.5: [length, width]."""
    position = torch.arange(length)[:, None]
    frequency = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    table = torch.zeros(length, width)
    table[:, 0::2] = torch.sin(position * frequency)
    table[:, 1::2] = torch.cos(position * frequency)[:, : width // 2]
    return table


def positions_per_document(segments: Tensor) -> Tensor:
    t = segments.shape[1]
    index = torch.arange(t, device=segments.device).expand_as(segments)
    begins = torch.ones_like(segments, dtype=torch.bool)
    begins[:, 1:] = segments[:, 1:] != segments[:, :-1]
    return index - torch.where(begins, index, 0).cummax(dim=1).values


class Rotary(nn.Module):
    """Rotary positions (Su et al. 2021, section 3.2.2): each pair of a head's features turns with position.

    Pairs are (i, i + d/2), as in GPT-NeoX; the paper's neighbors are the same up to a permutation.
    """

    def __init__(self, d_head: int, base: float = 10000.0) -> None:
        super().__init__()
        frequency = base ** (-torch.arange(0, d_head, 2) / d_head)
        self.register_buffer("frequency", frequency, persistent=False)
        self.frequency: Tensor

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return cosines and sines for positions [b or 1, t], ready for [b, h, t, d]."""
        angle = positions[:, None, :, None] * self.frequency  # [b, 1, t, d/2]
        return angle.cos(), angle.sin()


def rotate(x: Tensor, turn: tuple[Tensor, Tensor]) -> Tensor:
    """Turn each pair of features of x [b, h, t, d] by its position's angle."""
    cos, sin = turn
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


class RelativeBias(nn.Module):
    """T5's relative position bias (Raffel et al. 2020, 2.1): one number per head and bucket of distance.

    Half of the buckets are single distances, the other half grow logarithmically up to `max_distance`.
    One table per stack, shared by its layers.
    """

    def __init__(self, n_heads: int, n_buckets: int, max_distance: int, causal: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(n_buckets, n_heads)
        self.n_buckets, self.max_distance, self.causal = n_buckets, max_distance, causal

    def forward(self, t: int, s: int, offset: int) -> Tensor:
        """Return the bias [1, h, t, s] of queries at offset, offset + 1, ... on keys at 0, 1, ..."""
        device = self.table.weight.device
        query = torch.arange(offset, offset + t, device=device)[:, None]
        buckets = self.bucket(torch.arange(s, device=device) - query)  # [t, s]
        bias: Tensor = self.table(buckets).permute(2, 0, 1)[None]
        return bias

    def bucket(self, distance: Tensor) -> Tensor:
        """Return the bucket of each signed distance (key minus query)."""
        n = self.n_buckets
        base = torch.zeros_like(distance)
        if self.causal:
            distance = (-distance).clamp(min=0)
        else:
            n //= 2
            base = torch.where(distance > 0, n, 0)
            distance = distance.abs()
        exact = n // 2
        ratio = torch.log(distance.clamp(min=1).float() / exact) / math.log(self.max_distance / exact)
        far = (exact + (ratio * (n - exact)).long()).clamp(max=n - 1)
        return base + torch.where(distance < exact, distance, far)
