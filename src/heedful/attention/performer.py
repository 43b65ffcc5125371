"""Attention through random features, in linear time."""

from __future__ import annotations

from typing import Unpack

import torch
from torch import Tensor

from heedful.attention.dropout import dropout as drop
from heedful.attention.favor import Favor
from heedful.attention.features import FeatureMap, Kind, draw_directions
from heedful.attention.mask import Mask
from heedful.attention.mechanism import CommonOptions, Mechanism
from heedful.errors import UserError
from heedful.options.types import Positive


class Performer(Mechanism):
    """FAVOR+ (Choromanski et al. 2021): exp(scale q.k) estimated without bias by phi(q).phi(k).

    `features` counts the numbers of phi; `kind` is positive, hyperbolic (less variance) or trigonometric (of
    either sign, so weights and normalizers can be negative); `orthogonal` directions have less variance than
    independent ones. All heads share the directions, as in the paper's code. They are saved with the model;
    `seed` fixes them, otherwise torch's generator does, and `redraw` draws others.
    There are no weights to drop: dropout drops whole positions of v, a head at a time, under the same
    normalizer.
    """

    name = "performer"
    paper = "Choromanski et al. 2021, Rethinking Attention with Performers, arXiv:2009.14794"
    cost = "(t + s) m d"
    causal = cross = explicit_weights = prefix = segments = cache = True

    directions: Tensor

    def __init__(
        self,
        *,
        features: Positive = 256,
        kind: Kind = "positive",
        orthogonal: bool = True,
        seed: int | None = None,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(**common)
        if self.scale <= 0:
            raise UserError(f"performer attention: scale is above 0, not {self.scale:g}")
        if kind != "positive" and features % 2:
            raise UserError(f"performer attention: {kind} features come in pairs, so not {features} of them")
        self.features, self.kind, self.orthogonal = features, kind, orthogonal
        draws = features if kind == "positive" else features // 2
        self.register_buffer("directions", torch.empty(draws, self.d_head))
        self.redraw(seed)

    def redraw(self, seed: int | None = None) -> None:
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        n, d = self.directions.shape
        self.directions.copy_(draw_directions(n, d, self.orthogonal, generator))

    def feature_map(self) -> FeatureMap:
        """Return the map phi for vectors that are multiplied by sqrt(scale) already."""
        return FeatureMap(self.directions, self.kind)

    def splits_documents(self, mask: Mask) -> bool:
        """Sums run over whole rows, so each document gets its own."""
        return mask.segments is not None

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        (b, h, t, _), s = q.shape, mask.reach(q.shape[-2], k.shape[-2])
        if self.training and self.dropout:
            v = v * drop(v.new_ones(*v.shape[:-1], 1), self.dropout)
        root = self.scale**0.5
        out: Tensor = Favor.apply(  # type: ignore[no-untyped-call]
            (q * root).reshape(b * h, t, -1),
            (k[:, :, :s] * root).reshape(b * h, s, -1),
            v[:, :, :s].reshape(b * h, s, -1),
            self.real(mask, s, h),
            self.feature_map(),
            mask.prefix + mask.offset if mask.causal else s,
            self.least(q.dtype),
        )
        return out.view(b, h, t, -1)

    def real(self, mask: Mask, s: int, h: int) -> Tensor | None:
        """Return False at padding, for every head [b h, s]."""
        if mask.keys is None:
            return None
        keys = mask.keys.bool()[:, : s - mask.prefix]
        keys = torch.cat([keys.new_ones(keys.shape[0], mask.prefix), keys], 1)
        return keys.repeat_interleave(h, 0)

    def least(self, dtype: torch.dtype) -> float:
        """Return the normalizer that counts as nothing; if features have either sign, only zero itself."""
        return 0.0 if self.kind == "trigonometric" else torch.finfo(dtype).tiny

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """Return the weights that the features approximate [b, h, t, s]: phi(q_i).phi(k_j) over its sum."""
        features, root = self.feature_map(), self.scale**0.5
        q, k = q * root, k * root
        allowed = mask.allowed(q.shape[-2], k.shape[-2], q.device)
        with torch.no_grad():
            q_top, k_top = (features.top(features.project(x), x) for x in (q, k))
            level = k_top[:, :, None, :]  # [b, h, 1, s]
            if allowed is not None:
                level = level.masked_fill(~allowed, float("-inf"))
            level = level - level.amax(-1, keepdim=True).clamp_min(torch.finfo(q.dtype).min)
        phi_q, phi_k = (features.lift(features.project(x), x, top) for x, top in ((q, q_top), (k, k_top)))
        kernel = (phi_q @ phi_k.mT) * level.exp()  # [b, h, t, s]
        norm = kernel.sum(-1, keepdim=True)
        return kernel / norm.masked_fill(norm.abs() <= self.least(q.dtype), float("inf"))

    def extra_repr(self) -> str:
        sort = "orthogonal" if self.orthogonal else "independent"
        return f"{super().extra_repr()}, {self.features} {sort} {self.kind} features"
