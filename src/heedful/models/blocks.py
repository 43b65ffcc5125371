"""The parts of a layer, and a stack of layers.

post-norm (BERT):   x = norm(x + attend(x));      x = norm(x + feed_forward(x))
pre-norm (GPT, T5): x = x + attend(norm(x));      x = x + feed_forward(norm(x));   norm after the stack
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.attention import MECHANISMS, Mask, find_capable, make
from heedful.attention.dropout import Dropout
from heedful.errors import UserError
from heedful.models.config import TransformerConfig
from heedful.models.pooled_position import PooledPosition, can_compute_one_row
from heedful.models.positions import RelativeBias, Rotary, rotate


def make_norm(config: TransformerConfig) -> nn.Module:
    """Build LayerNorm, or RMSNorm (Zhang and Sennrich 2019)."""
    if config.norm == "rms":
        return nn.RMSNorm(config.d_model, eps=config.norm_eps)
    return nn.LayerNorm(config.d_model, eps=config.norm_eps)


def activate(name: str, x: Tensor) -> Tensor:
    """Apply the non-linearity called `name`; squared ReLU is from So et al. 2021."""
    if name in ("gelu", "gelu_tanh", "gated_gelu"):
        return F.gelu(x, approximate="none" if name == "gelu" else "tanh")
    return F.relu(x) if name == "relu" else F.relu(x).square()


class FeedForward(nn.Module):
    """Two linear layers with a non-linearity; gated GELU (Shazeer 2020) has a third."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.activation = config.activation
        self.in_proj = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        if config.activation == "gated_gelu":
            self.gate_proj = nn.Linear(config.d_model, config.d_ff, bias=config.bias)
        self.out_proj = nn.Linear(config.d_ff, config.d_model, bias=config.bias)
        self.dropout = Dropout(config.ff_dropout)

    def forward(self, x: Tensor) -> Tensor:
        if self.activation == "gated_gelu":
            hidden = activate(self.activation, self.gate_proj(x)) * self.in_proj(x)  # [b, t, d_ff]
        else:
            hidden = activate(self.activation, self.in_proj(x))
        out: Tensor = self.out_proj(self.dropout(hidden))
        return out


@dataclass
class LayerCache:
    """Keys and values of one layer, kept between decoding steps; each [b, h, s, d]."""

    self_attention: tuple[Tensor, Tensor] | None = None
    cross: tuple[Tensor, Tensor] | None = None


@dataclass
class Cache:
    layers: list[LayerCache] = field(default_factory=list)
    length: int = 0
    """Tokens seen so far: the position of the next one."""


class Attention(nn.Module):
    """Projections around a mechanism: what varies is factored into projection, mechanism and position."""

    def __init__(self, config: TransformerConfig, *, causal: bool, cross: bool) -> None:
        super().__init__()
        refuse_unable(config, causal=causal, cross=cross)
        width = config.n_heads * config.d_head
        self.n_heads, self.d_head, self.qk_norm = config.n_heads, config.d_head, config.qk_norm
        self.causal, self.cross, self.projections = causal, cross, config.projections
        self.q_proj = nn.Linear(config.d_model, width, bias=config.bias)
        if config.projections == "separate":
            self.k_proj = nn.Linear(config.d_model, width, bias=config.bias)
        if config.projections != "shared_qkv":
            self.v_proj = nn.Linear(config.d_model, width, bias=config.bias)
        self.o_proj = nn.Linear(width, config.d_model, bias=config.bias)
        self.mechanism = make(
            config.attention,
            n_heads=config.n_heads,
            d_head=config.d_head,
            max_len=config.max_len,
            scale=config.scale,
            dropout=config.attention_dropout,
            **config.attention_options,
        )

    def forward(
        self,
        x: Tensor,
        mask: Mask,
        *,
        context: Tensor | None = None,
        bias: Tensor | None = None,
        turn: tuple[Tensor, Tensor] | None = None,
        cache: LayerCache | None = None,
        prefix: tuple[Tensor, Tensor] | None = None,
        pooled_at: PooledPosition | None = None,
    ) -> Tensor:
        """Attend from x [b, t, d_model] to itself, or to `context` [b, s, d_model].

        `prefix` is keys and values [h, p, d] that every query sees. With `pooled_at`, the output is that
        of one position [b, 1, d_model].
        """
        row = pooled_at if pooled_at is not None and can_compute_one_row(self.mechanism, mask) else None
        q = self.heads(self.q_proj(x if row is None or self.shared else row.take(x)))  # [b, h, t or 1, d]
        if self.cross:
            assert context is not None
            if cache is not None and cache.cross is not None:
                k, v = cache.cross
            else:
                k, v = self.keys_values(context, self.heads(self.q_proj(context)) if self.shared else None)
                if cache is not None:
                    cache.cross = (k, v)
        else:
            k, v = self.keys_values(x, q)
        if row is not None:
            q = row.take(q, dim=2) if self.shared else q
            mask = row.mask(mask, k.shape[2])
            bias = None if bias is None else row.take(bias, dim=2)
        if turn is not None:
            k = rotate(k, turn)
            q = rotate(q, turn if row is None else (row.take(turn[0], 2), row.take(turn[1], 2)))
        if self.qk_norm:
            q, k = F.rms_norm(q, (self.d_head,)), F.rms_norm(k, (self.d_head,))
        q, k = q.to(v.dtype), k.to(v.dtype)  # in half precision, positions and norms give float32
        if cache is not None and not self.cross:
            if cache.self_attention is not None:
                k = torch.cat([cache.self_attention[0], k], dim=2)
                v = torch.cat([cache.self_attention[1], v], dim=2)
            cache.self_attention = (k, v)
        if prefix is not None:
            k, v = (
                torch.cat([p.to(x.dtype).expand(x.shape[0], -1, -1, -1), x], dim=2)
                for p, x in ((prefix[0], k), (prefix[1], v))
            )
            mask = replace(mask, prefix=prefix[0].shape[1])
            bias = None if bias is None else F.pad(bias, (mask.prefix, 0))
        out = self.mechanism(q, k, v, mask, bias)  # [b, h, t, d]
        if pooled_at is not None and row is None:
            out = pooled_at.take(out, dim=2)
        merged: Tensor = self.o_proj(out.transpose(1, 2).flatten(2))  # [b, t, d_model]
        return merged

    @property
    def shared(self) -> bool:
        return self.projections != "separate"

    def keys_values(self, x: Tensor, q: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return keys and values of x; `q` is x through the query projection, for those that share it."""
        k = q if q is not None and self.shared else self.heads(self.k_proj(x))
        v = k if self.projections == "shared_qkv" else self.heads(self.v_proj(x))
        return k, v

    def heads(self, x: Tensor) -> Tensor:
        """Split the width into heads: [b, t, h d] to [b, h, t, d]."""
        b, t, _ = x.shape
        return x.view(b, t, self.n_heads, self.d_head).transpose(1, 2)


def refuse_unable(config: TransformerConfig, *, causal: bool, cross: bool) -> None:
    """Refuse a mechanism that lacks what this part of the model needs, naming those that have it."""
    needs = {"causal": causal, "cross": cross, "bias": config.position == "relative" and not cross}
    needed = [capability for capability, wanted in needs.items() if wanted]
    mechanism = MECHANISMS.find(config.attention)
    missing = [capability for capability in needed if not getattr(mechanism, capability)]
    if missing:
        uses = {"causal": "a causal model", "cross": "an encoder-decoder", "bias": "relative positions"}
        whole = {*needed, *(("cross", "causal") if config.kind == "encoder_decoder" else ())}
        raise UserError(
            f"{config.attention} attention does not work in {uses[missing[0]]}; "
            f"these do: {', '.join(find_capable(*whole))}"
        )


class Block(nn.Module):
    """One layer: self-attention, cross-attention in the decoder of an encoder-decoder, feed-forward."""

    def __init__(self, config: TransformerConfig, *, causal: bool, cross: bool) -> None:
        super().__init__()
        self.pre = config.norm_place == "pre"
        self.attn = Attention(config, causal=causal, cross=False)
        self.attn_norm = make_norm(config)
        if cross:
            self.cross = Attention(config, causal=False, cross=True)
            self.cross_norm = make_norm(config)
        self.has_cross = cross
        self.ff = FeedForward(config)
        self.ff_norm = make_norm(config)
        after_attention = config.attention_output_dropout
        self.attn_dropout = Dropout(config.dropout if after_attention is None else after_attention)
        self.ff_dropout = Dropout(config.dropout)

    def forward(
        self,
        x: Tensor,
        mask: Mask,
        *,
        context: Tensor | None = None,
        context_mask: Mask | None = None,
        bias: Tensor | None = None,
        turn: tuple[Tensor, Tensor] | None = None,
        cache: LayerCache | None = None,
        prefix: tuple[Tensor, Tensor] | None = None,
        pooled_at: PooledPosition | None = None,
    ) -> Tensor:
        """Return [b, t, d_model], or [b, 1, d_model] at the position that is pooled."""
        inner = self.attn_norm(x) if self.pre else x
        attended = self.attn(
            inner, mask, bias=bias, turn=turn, cache=cache, prefix=prefix, pooled_at=pooled_at
        )
        x = (x if pooled_at is None else pooled_at.take(x)) + self.attn_dropout(attended)
        x = x if self.pre else self.attn_norm(x)
        if self.has_cross:
            assert context_mask is not None
            inner = self.cross_norm(x) if self.pre else x
            x = x + self.attn_dropout(self.cross(inner, context_mask, context=context, cache=cache))
            x = x if self.pre else self.cross_norm(x)
        inner = self.ff_norm(x) if self.pre else x
        x = x + self.ff_dropout(self.ff(inner))
        return x if self.pre else self.ff_norm(x)


class Stack(nn.Module):
    """The layers, with what they share: rotary angles or relative bias, and the last norm of pre-norm."""

    def __init__(
        self, config: TransformerConfig, n_layers: int, *, causal: bool, cross: bool = False
    ) -> None:
        super().__init__()
        self.causal = causal
        self.layers = nn.ModuleList(Block(config, causal=causal, cross=cross) for _ in range(n_layers))
        self.rotary = Rotary(config.d_head) if config.position == "rotary" else None
        self.relative = (
            RelativeBias(config.n_heads, config.relative_buckets, config.relative_max_distance, causal)
            if config.position == "relative"
            else None
        )
        self.norm = make_norm(config) if config.norm_place == "pre" else None
        self.dropout = Dropout(config.final_dropout)
        self.register_module("prefix", None)
        self.prefix: nn.Module | None
        """Makes keys and values [n_layers, 2, h, p, d] that every query of a layer sees (prefix tuning)."""

    def forward(
        self,
        x: Tensor,
        *,
        keys: Tensor | None = None,
        segments: Tensor | None = None,
        positions: Tensor | None = None,
        context: Tensor | None = None,
        context_keys: Tensor | None = None,
        cache: Cache | None = None,
        pooled_at: PooledPosition | None = None,
        first: int = 0,
        stop: int | None = None,
    ) -> Tensor:
        """Run embedded tokens [b, t, d_model] through the layers; `keys` is True at real tokens.

        With `pooled_at`, the result is the state at that position alone [b, 1, d_model]. With `stop`, it is
        the state before layer `stop`, from which a call with `first` goes on.
        """
        t, offset = x.shape[1], cache.length if cache is not None else 0
        mask = Mask(causal=self.causal, keys=keys, segments=segments, offset=offset)
        bias = turn = None
        if self.relative is not None:
            bias = self.relative(t, offset + t, offset)
        if self.rotary is not None:
            if positions is None:
                positions = torch.arange(offset, offset + t, device=x.device)[None]
            turn = self.rotary(positions)
        if cache is not None and not cache.layers:
            cache.layers = [LayerCache() for _ in self.layers]
        prefix = None if self.prefix is None else self.prefix()
        last = len(self.layers) - 1
        for i in range(first, len(self.layers) if stop is None else stop):
            x = self.layers[i](
                x,
                mask,
                context=context,
                context_mask=Mask(keys=context_keys),
                bias=bias,
                turn=turn,
                cache=cache.layers[i] if cache is not None else None,
                prefix=None if prefix is None else (prefix[i, 0], prefix[i, 1]),
                pooled_at=pooled_at if i == last else None,
            )
        if cache is not None:
            cache.length += t
        if stop is not None:
            return x
        return self.dropout(x if self.norm is None else self.norm(x))  # type: ignore[no-any-return]
