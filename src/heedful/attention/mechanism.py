"""What every mechanism is: a function of q, k and v, and what it declares about itself."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from heedful.attention.dropout import dropout
from heedful.attention.mask import Mask

CAPABILITIES = ("causal", "cross", "bias", "explicit_weights", "prefix", "segments", "cache")


class Mechanism(nn.Module):
    """`mechanism(q, k, v, mask, bias=None) -> out`; q is [b, h, t, d], k and v are [b, h, s, d].

    A subclass sets the class constants that are true of it and defines `weights` or `attend`.
    What a mask or a caller asks beyond them is refused, never ignored.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    cost: ClassVar[str]
    """Time as a function of query length t and key length s."""

    causal: ClassVar[bool] = False
    cross: ClassVar[bool] = False
    """Keys may come from another sequence than the queries."""
    bias: ClassVar[bool] = False
    """Takes an additive score bias [1 or b, h, t, s] (T5's relative positions)."""
    explicit_weights: ClassVar[bool] = False
    prefix: ClassVar[bool] = False
    segments: ClassVar[bool] = False
    cache: ClassVar[bool] = False
    """Computes the last rows alone, from cached keys, exactly as the whole would."""
    unsafe: ClassVar[bool] = False
    """Leaks the future into the past when causal; buildable only with `unsafe=True`."""
    exact_zero_gradient: ClassVar[bool] = False
    """No gradient ever reaches q and k."""
    selects_one: ClassVar[bool] = False
    """Each row attends to a single key, so only that key's value is reached."""

    def __init__(
        self, *, n_heads: int, d_head: int, max_len: int, scale: float | None = None, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.n_heads, self.d_head, self.max_len = n_heads, d_head, max_len
        self.scale = d_head**-0.5 if scale is None else scale
        self.dropout = dropout

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """Check that the mask asks for nothing this mechanism lacks, then attend."""
        self.check(q, k, mask, bias)
        return self.attend(q, k, v, mask, bias)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """Turn q, k and v into the output [b, h, t, d]. The default makes the weights and applies them."""
        weights = dropout(self.weights(q, k, mask, bias), self.dropout, self.training)  # [b, h, t, s]
        return weights @ v

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """The attention weights [b, h, t, s], where they exist."""
        raise ValueError(f"{self.name} never makes its attention weights")

    def reaches(self, t: int, s: int) -> Tensor:
        """The key positions that query t must reach (through v) in a causal sequence of length s."""
        return torch.arange(t + 1)

    def check(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None) -> None:
        """Refuse what this mechanism cannot honour: a mask that is silently ignored is the worst bug."""
        asked = {
            "causal": mask.causal,
            "segments": mask.segments is not None,
            "prefix": mask.prefix > 0,
            "cache": mask.offset > 0,
            "bias": bias is not None,
        }
        missing = [name for name, wanted in asked.items() if wanted and not getattr(self, name)]
        if missing:
            raise ValueError(f"{self.name} attention has no {' and no '.join(missing)}")
        t, n = q.shape[-2], k.shape[-2] - mask.prefix
        if mask.keys is not None and mask.keys.shape[-1] != n:
            raise ValueError(
                f"mask.keys is for {mask.keys.shape[-1]} keys, but there are {n} (and {mask.prefix} of prefix)"
            )
        if mask.segments is not None and (mask.segments.shape[-1] != n or mask.offset + t > n):
            raise ValueError(
                f"mask.segments is for {mask.segments.shape[-1]} positions, but there are {n} keys"
            )

    def extra_repr(self) -> str:
        """Show the scale and the dropout."""
        return f"scale={self.scale:.4g}, dropout={self.dropout}"
