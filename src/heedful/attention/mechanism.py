"""What every mechanism is: a function of q, k and v, and what it declares about itself."""

from __future__ import annotations

from typing import ClassVar, NotRequired, TypedDict

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from heedful.attention.documents import attend_each_document
from heedful.attention.dropout import dropout
from heedful.attention.mask import Mask
from heedful.options.types import Share

CAPABILITIES = ("causal", "cross", "bias", "explicit_weights", "prefix", "segments", "cache")
WEIGHTS = 1 << 24
"""Weights made at once by the default `attend`: 64 MiB of float32."""


class CommonOptions(TypedDict):
    """What every mechanism is built with, besides options of its own."""

    n_heads: int
    d_head: int
    max_len: int
    scale: NotRequired[float | None]
    dropout: NotRequired[float]


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
    positional: ClassVar[bool] = False
    """What a query sees depends on its position, so a row taken out of its sequence needs its offset."""
    sixteen_bits: ClassVar[bool] = False
    """Under autocast takes q, k and v of 16 bits as they are; the others compute in 32."""
    unsafe: ClassVar[bool] = False
    """Leaks the future into the past when causal; buildable only with `unsafe=True`."""
    exact_zero_gradient: ClassVar[bool] = False
    """No gradient ever reaches q and k (unless an option says otherwise)."""
    selects_one: ClassVar[bool] = False
    """Each row attends to a single key, so only that key's value is reached."""

    def __init__(
        self, *, n_heads: int, d_head: int, max_len: int, scale: float | None = None, dropout: Share = 0.0
    ) -> None:
        super().__init__()
        self.n_heads, self.d_head, self.max_len = n_heads, d_head, max_len
        self.scale = d_head**-0.5 if scale is None else scale
        self.dropout = dropout

    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        self.check(q, k, mask, bias)
        if v.shape[:-1] != k.shape[:-1]:
            raise ValueError(f"k is {tuple(k.shape)} but v is {tuple(v.shape)}; they go together")
        if self.sixteen_bits or not torch.is_autocast_enabled(q.device.type):
            return self.attend_all(q, k, v, mask, bias)
        with torch.autocast(q.device.type, enabled=False):
            bias = None if bias is None else bias.float()
            return self.attend_all(q.float(), k.float(), v.float(), mask, bias).to(v.dtype)

    def attend_all(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None) -> Tensor:
        if self.splits_documents(mask):
            return attend_each_document(self.attend, q, k, v, mask)
        return self.attend(q, k, v, mask, bias)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """Turn q, k and v into the output [b, h, t, d].

        The default makes the weights and applies them, a part of the rows at a time when they are many; such
        parts are computed again in the backward pass.
        """
        b, h, t, _ = q.shape
        rows = max(1, WEIGHTS // (b * h * k.shape[-2]))
        if t <= rows:
            return self.attend_rows(q, k, v, mask, bias)
        parts: list[Tensor] = []
        for i in range(0, t, rows):
            part, its_bias = q[:, :, i : i + rows], None if bias is None else bias[..., i : i + rows, :]
            args = (part, k, v, mask.after(i), its_bias)
            parts.append(checkpoint(self.attend_rows, *args, use_reentrant=False))
        return torch.cat(parts, dim=2)

    def attend_rows(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None) -> Tensor:
        weights = dropout(self.weights(q, k, mask, bias), self.dropout, self.training)  # [b, h, t, s]
        return weights @ v

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """Return the attention weights [b, h, t, s]."""
        raise ValueError(f"{self.name} never makes its attention weights")

    def splits_documents(self, mask: Mask) -> bool:
        """Whether `attend` must be given each document on its own, from its first real position on."""
        return False

    def reaches(self, t: int, s: int) -> Tensor:
        """Return the key positions that query t must reach (through v) in a causal sequence of length s."""
        return torch.arange(t + 1)

    def check(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None) -> None:
        """Refuse what this mechanism cannot honor: a mask that is silently ignored is the worst bug."""
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
        for name, x in (("q", q), ("k", k)):
            if x.dim() != 4 or (x.shape[1], x.shape[3]) != (self.n_heads, self.d_head) or len(x) != len(q):
                takes = f"[b, {self.n_heads}, t, {self.d_head}]"
                raise ValueError(f"{name} is {tuple(x.shape)}; this {self.name} takes {takes}")
        t, n = q.shape[-2], k.shape[-2] - mask.prefix
        if mask.keys is not None and (m := mask.keys.shape[-1]) != n:
            raise ValueError(f"mask.keys is for {m} keys, but there are {n} and {mask.prefix} of prefix")
        if mask.segments is not None and (m := mask.segments.shape[-1]) != n:
            raise ValueError(f"mask.segments is for {m} positions, but there are {n} keys")
        if mask.offset + t > n and (mask.causal or mask.segments is not None or not self.cross):
            raise ValueError(f"{t} queries from position {mask.offset} on, but only {n} keys")

    def extra_repr(self) -> str:
        return f"scale={self.scale:.4g}, dropout={self.dropout}"
