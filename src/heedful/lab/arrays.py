"""Heedful's attention on plain arrays: one head, float64, scores not scaled unless stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.attention import Mask, Mechanism, make

Array = npt.NDArray[np.float64]


def mechanism(name: str, width: int, size: int, scale: float = 1.0, **options: Any) -> Mechanism:
    """Return one head of a mechanism; all topics build theirs here."""
    return make(name, n_heads=1, d_head=width, max_len=max(size, 1), scale=scale, **options).double().eval()


def tensor(rows: npt.ArrayLike) -> Tensor:
    """Return vectors [n, d] as one head's [1, 1, n, d]; a batch of sets [b, n, d] as [b, 1, n, d]."""
    array = torch.as_tensor(np.require(rows, dtype=np.float64, requirements=["C", "W"]))
    return array[None, None] if array.dim() == 2 else array[:, None]


def array(states: Tensor) -> Array:
    """Return the inverse of `tensor`; a batch of one loses its batch dimension."""
    plain: Array = states.detach()[:, 0].numpy()
    return plain[0] if len(plain) == 1 else plain


def compute_weights(
    queries: npt.ArrayLike,
    keys: npt.ArrayLike,
    name: str = "softmax",
    *,
    scale: float = 1.0,
    mask: Mask | None = None,
    **options: Any,
) -> Array:
    """Return the attention weights [t, n] of queries [t, d] on keys [n, d]."""
    q, k = tensor(queries), tensor(keys)
    attention = mechanism(name, q.shape[-1], k.shape[-2], scale, **options)
    with torch.inference_mode():
        return array(attention.weights(q, k, mask or Mask()))


def compute_output(
    queries: npt.ArrayLike,
    keys: npt.ArrayLike,
    values: npt.ArrayLike,
    name: str = "softmax",
    *,
    scale: float = 1.0,
    mask: Mask | None = None,
    **options: Any,
) -> Array:
    """Return the output [t, v] of queries [t, d] over keys [n, d] and values [n, v]."""
    q, k, v = tensor(queries), tensor(keys), tensor(values)
    attention = mechanism(name, q.shape[-1], k.shape[-2], scale, **options)
    with torch.inference_mode():
        return array(attention(q, k, v, mask or Mask()))
