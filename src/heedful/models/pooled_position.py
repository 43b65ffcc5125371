"""The one position of each text that a classifier needs.

Grade: same mathematics. What comes after the last layer's keys and values is computed at that position alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from heedful.attention import Mask
from heedful.attention.mechanism import Mechanism


@dataclass(frozen=True, eq=False)
class PooledPosition:
    """A position of the sequence: the same for every text, or one for each [b]."""

    at: int | Tensor

    def take(self, x: Tensor, dim: int = 1) -> Tensor:
        """Return x at the position, as a dimension of length 1; x may be the same for all texts."""
        if isinstance(self.at, int):
            # A strided input sends linear layers down a path that depends on what requires a gradient.
            return x.narrow(dim, self.at, 1).contiguous()
        if x.shape[0] == 1:
            return x[0].index_select(dim - 1, self.at).movedim(dim - 1, 0).unsqueeze(dim)
        index = self.at.view(-1, *[1] * (x.dim() - 1))
        return x.gather(dim, index.expand([1 if i == dim else n for i, n in enumerate(x.shape)]))

    def mask(self, mask: Mask, n: int) -> Mask:
        """Return the mask of that row alone, over n text keys: causality becomes a limit on the keys."""
        if not mask.causal:
            return mask
        if isinstance(self.at, int):
            assert self.at == n - 1, "the same position for all texts of a causal model is the last one"
            return replace(mask, causal=False)
        past = torch.arange(n, device=self.at.device) <= self.at[:, None]  # [b, n]
        return replace(mask, causal=False, keys=past if mask.keys is None else past & mask.keys.bool())


def can_compute_one_row(mechanism: Mechanism, mask: Mask) -> bool:
    """Whether one row of a mechanism can be computed alone, exactly as the whole would."""
    alone = mechanism.cross and not mechanism.positional and not mechanism.unsafe
    return alone and mask.segments is None and (mechanism.cache or not mask.causal)
