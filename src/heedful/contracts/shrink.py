"""Finds a smaller input that still breaks a claim: smaller sizes first, then plainer numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
Failure = TypeVar("Failure")
CALLS = 150
"""The number of calls that simplifying the values may take."""
FEW = 24
"""Tensors with at most this many numbers are simplified number by number."""


def find_smallest(candidates: Iterable[T], fails: Callable[[T], Failure | None]) -> tuple[T, Failure] | None:
    """Return the first candidate that fails, and how; candidates come in the order of their size."""
    for candidate in candidates:
        failure = fails(candidate)
        if failure is not None:
            return candidate, failure
    return None


def simplify_values(
    inputs: Mapping[str, Any], fails: Callable[[Mapping[str, Any]], Failure | None], failure: Failure
) -> tuple[Mapping[str, Any], Failure]:
    """Return inputs with plainer numbers that still fail: zeros, ones, whole numbers."""
    calls = 0
    best = dict(inputs)

    def attempt(name: str, value: Tensor) -> bool:
        nonlocal calls, failure, best
        if calls >= CALLS or torch.equal(value, best[name]):
            return False
        calls += 1
        candidate = {**best, name: value}
        outcome = fails(candidate)
        if outcome is None:
            return False
        best, failure = candidate, outcome
        return True

    names = [n for n, v in inputs.items() if isinstance(v, Tensor) and v.is_floating_point()]
    for name in names:
        value = best[name]
        for plainer in (
            torch.zeros_like(value),
            torch.ones_like(value),
            value.round(),
            (2 * value).round() / 2,
        ):
            if attempt(name, plainer):
                break
    for name in names:
        if best[name].numel() > FEW:
            continue
        for i in range(best[name].numel()):
            zeroed = best[name].clone()
            zeroed.view(-1)[i] = 0.0
            attempt(name, zeroed)
    return best, failure
