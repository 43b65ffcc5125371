"""How a contract says that it is broken, and where it is checked."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

TOLERANCES = {torch.float64: (1e-9, 1e-11), torch.float32: (1e-3, 1e-4)}
"""Relative and absolute ones. Trigonometric features divide by numbers that can be small."""


class BrokenContractError(AssertionError):
    """Something that must be true is not."""


def require(condition: bool | Tensor, message: str) -> None:
    """Raise `BrokenContractError` unless the condition holds; unlike `assert`, also under `python -O`."""
    if not condition:
        raise BrokenContractError(message)


@dataclass(frozen=True)
class Place:
    """A device, and the most exact number format that it has."""

    device: torch.device

    @property
    def dtype(self) -> torch.dtype:
        return torch.float32 if self.device.type == "mps" else torch.float64

    def put(self, *tensors: Tensor) -> list[Tensor]:
        """Return the tensors on this device, numbers in its format; each is a leaf that takes gradients."""
        return [x.detach().to(self.device, self.dtype if x.is_floating_point() else x.dtype) for x in tensors]

    def require_close(self, a: Tensor, b: Tensor, message: str) -> None:
        """Refuse a difference larger than rounding makes: the same sums in another order."""
        rtol, atol = TOLERANCES[self.dtype]
        torch.testing.assert_close(a, b, rtol=rtol, atol=atol, msg=lambda why: f"{message}: {why}")


CPU = Place(torch.device("cpu"))
