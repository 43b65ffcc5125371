"""Whole models without a head: `Encoder`, `Decoder`, `EncoderDecoder`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.errors import UserError
from heedful.models.blocks import Cache, Stack
from heedful.models.config import TransformerConfig
from heedful.models.embeddings import Embeddings, Pool, PromptVectors
from heedful.models.pairs import compare_means, separate_pairs
from heedful.models.pooled_position import PooledPosition

ROLES = {
    "q": ("q_proj",),
    "k": ("k_proj",),
    "v": ("v_proj",),
    "o": ("o_proj",),
    "ff": ("in_proj", "gate_proj", "out_proj"),
}
"""What the linear layers of a body do, and what they are called; the same for every family."""


@dataclass(frozen=True, eq=False)
class EmbeddedBatch:
    x: Tensor
    keys: Tensor | None
    positions: Tensor
    front: int
    """How many of the positions belong to the prompt."""


class Body(nn.Module):
    """What all bodies share: a configuration, embeddings, initial weights, and what methods act on."""

    report: Any = None
    """What reading a checkpoint did (`heedful.checkpoints.LoadReport`)."""
    pools: tuple[Pool, ...] = ("text",)
    """What can be pooled after a prompt."""
    skip: int = 0
    """Positions left free before the text, for a prefix that counts them."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = Embeddings(config)
        self.register_module("prompt", None)
        self.prompt: PromptVectors | None

    @property
    def ahead(self) -> int:
        """The number of positions that are taken before the text begins."""
        return self.skip + (len(self.prompt) if self.prompt is not None else 0)

    @property
    def room(self) -> int:
        """The number of tokens a text may have. Relative positions have no table to share."""
        return self.config.max_len - (0 if self.config.position == "relative" else self.ahead)

    def roles(self) -> dict[str, list[str]]:
        layers_of: dict[str, list[str]] = {role: [] for role in ROLES}
        for name, part in self.named_modules():
            for role, layers in ROLES.items():
                if isinstance(part, nn.Linear) and name.endswith(layers) and ".mechanism." not in name:
                    layers_of[role].append(name)
        return layers_of

    def stacks(self) -> dict[str, Stack]:
        return {name: part for name, part in self.named_children() if isinstance(part, Stack)}

    def embed_batch(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        token_type_ids: Tensor | None = None,
        segments: Tensor | None = None,
        cache: Cache | None = None,
    ) -> EmbeddedBatch:
        """Embed tokens, after the prompt if there is one and this is the first step."""
        offset = cache.length if cache is not None else 0
        if attention_mask is not None:
            before = offset - (len(self.prompt) if self.prompt is not None and offset else 0)
            check_mask(attention_mask, len(input_ids), before + input_ids.shape[1])
        keys = self.real_keys(attention_mask)
        if self.prompt is None or offset:
            positions = self.embed.find_positions(input_ids, segments, offset, self.skip)
            return EmbeddedBatch(self.embed(input_ids, positions, token_type_ids), keys, positions, 0)
        if segments is not None:
            raise UserError("a prompt cannot precede packed documents; train without packing")
        p = len(self.prompt)
        positions = self.embed.find_positions(input_ids, None, 0, self.ahead)
        x = self.embed(input_ids, positions, token_type_ids, self.prompt.vectors)
        front = self.embed.first_positions(p, x.device).expand(positions.shape[0], -1)
        return EmbeddedBatch(x, keys, torch.cat([front, positions], dim=1), p)

    def real_keys(self, attention_mask: Tensor | None) -> Tensor | None:
        """Return which keys are real, the prompt's included; None when all are, for the quickest kernel."""
        if attention_mask is None:
            return None
        keys = attention_mask.bool()
        if keys.device.type == "cpu" and bool(keys.all()):
            return None
        return keys if self.prompt is None else F.pad(keys, (len(self.prompt), 0), value=True)


def initialize(module: nn.Module, config: TransformerConfig) -> None:
    """Draw new weights from torch's generator: normal(0, init_std), biases zero.

    What adds to the residual stream of a pre-norm model starts smaller, by sqrt(2 n_layers) (GPT-2); where
    scores are not scaled, the query projection carries the scale (T5). Mechanisms draw their own.
    """
    std, residual = config.init_std, (2 * config.n_layers) ** -0.5
    for name, part in module.named_modules():
        if ".mechanism." in name:
            continue
        if isinstance(part, nn.Linear | nn.Embedding):
            factor = 1.0
            if config.norm_place == "pre" and name.endswith(("o_proj", "out_proj")):
                factor = residual
            elif config.scale == 1.0 and name.endswith("q_proj"):
                factor = config.d_head**-0.5
            nn.init.normal_(part.weight, std=std * factor)
            if isinstance(part, nn.Linear) and part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, nn.LayerNorm | nn.RMSNorm):
            part.reset_parameters()


def check_mask(attention_mask: Tensor, b: int, t: int) -> None:
    """Refuse a mask of another form: one that is misread silently is worse than none."""
    if (shape := tuple(attention_mask.shape)) != (b, t):
        raise UserError(f"attention_mask is {shape}, but the ids call for {(b, t)}")
    if attention_mask.is_floating_point() and bool((attention_mask < 0).any()):
        raise UserError("attention_mask has negative numbers; it is 1 at real tokens and 0 at padding")


class LayeredBody(Body):
    """A body of one stack, whose lower layers can run apart from the upper ones."""

    stack: Stack

    def run_lower(
        self, input_ids: Tensor, attention_mask: Tensor | None, token_type_ids: Tensor | None, layers: int
    ) -> Tensor:
        """Return the states after this many layers [b, t, d_model]."""
        read = self.embed_batch(input_ids, attention_mask, token_type_ids)
        states: Tensor = self.stack(read.x, keys=read.keys, positions=read.positions, stop=layers)
        return states

    def run_upper(
        self,
        states: Tensor,
        input_ids: Tensor,
        attention_mask: Tensor | None,
        layers: int,
        pooled_at: PooledPosition | None,
    ) -> Tensor:
        """Return the last hidden states, or that at one position, from the states after `layers` layers."""
        positions = self.embed.find_positions(input_ids, None, 0, self.skip)
        keys = self.real_keys(attention_mask)
        last: Tensor = self.stack(states, keys=keys, positions=positions, first=layers, pooled_at=pooled_at)
        return last


class Encoder(LayeredBody):
    """Every token sees every token (BERT, DistilBERT, RoBERTa)."""

    pools = ("text", "first")

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.stack = Stack(config, config.n_layers, causal=False)
        self.pooler = nn.Linear(config.d_model, config.d_model) if config.pooler else None
        initialize(self, config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        segments: Tensor | None = None,
    ) -> Tensor:
        """Return the last hidden states [b, t, d_model]. `attention_mask` is 1 at real tokens."""
        read = self.embed_batch(input_ids, attention_mask, token_type_ids, segments)
        states: Tensor = self.stack(read.x, keys=read.keys, segments=segments, positions=read.positions)
        return states[:, read.front :]

    def pooled(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        """Return `pool` of `forward`, [b, d_model], without computing what it does not need.

        With `pool="apart"`, the two texts of each pair are read as if the other did not exist, and what is
        returned compares their means, [b, 2 d_model + 1].
        """
        if self.config.pool == "apart":
            ids, mask = separate_pairs(input_ids, attention_mask, token_type_ids)
            return compare_means(*self.pool(self(ids, mask), ids, mask).chunk(2))
        if self.config.pool == "mean":
            return self.pool(self(input_ids, attention_mask, token_type_ids), input_ids, attention_mask)
        read = self.embed_batch(input_ids, attention_mask, token_type_ids)
        first = 0 if self.prompt is not None and self.prompt.pool == "first" else read.front
        state = self.stack(read.x, keys=read.keys, positions=read.positions, pooled_at=PooledPosition(first))
        return self.pool(state, input_ids, attention_mask)

    def pooled_above(
        self, states: Tensor, input_ids: Tensor, attention_mask: Tensor | None, layers: int
    ) -> Tensor:
        """Return `pooled` from the states that `run_lower` gave for the same texts and number of layers."""
        if self.config.pool == "apart":
            raise UserError("pool apart reads the two texts of a pair by themselves, through all layers")
        at = None if self.config.pool == "mean" else PooledPosition(0)
        states = self.run_upper(states, input_ids, attention_mask, layers, at)
        return self.pool(states, input_ids, attention_mask)

    def pool(self, states: Tensor, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return one state per text [b, d_model]: the mean, or the first token's (through the pooler)."""
        if self.config.pool != "first":
            if attention_mask is None:
                return states.mean(1)
            real = attention_mask.to(states.dtype)
            return torch.einsum("btd,bt->bd", states, real / real.sum(1, keepdim=True).clamp(min=1))
        first = states[:, 0]
        return first if self.pooler is None else torch.tanh(self.pooler(first))


class Decoder(LayeredBody):
    """Every token sees itself and those before it (GPT-2)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.stack = Stack(config, config.n_layers, causal=True)
        initialize(self, config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        segments: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """Last hidden states [b, t, d_model].

        With a cache, `input_ids` are the new tokens and `attention_mask` covers all tokens so far.
        """
        read = self.embed_batch(input_ids, attention_mask, token_type_ids, segments, cache)
        states: Tensor = self.stack(
            read.x, keys=read.keys, segments=segments, positions=read.positions, cache=cache
        )
        return states[:, read.front :]

    def pooled(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        read = self.embed_batch(input_ids, attention_mask, token_type_ids)
        last = PooledPosition(read.front + self.last(input_ids, attention_mask))
        state: Tensor = self.stack(read.x, keys=read.keys, positions=read.positions, pooled_at=last)
        return state[:, 0]

    def pooled_above(
        self, states: Tensor, input_ids: Tensor, attention_mask: Tensor | None, layers: int
    ) -> Tensor:
        """Return `pooled` from the states that `run_lower` gave for the same texts and number of layers."""
        at = PooledPosition(self.last(input_ids, attention_mask))
        return self.run_upper(states, input_ids, attention_mask, layers, at)[:, 0]

    def pool(self, states: Tensor, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        return PooledPosition(self.last(input_ids, attention_mask)).take(states)[:, 0]

    def last(self, input_ids: Tensor, attention_mask: Tensor | None) -> int | Tensor:
        t = input_ids.shape[1]
        if attention_mask is None:
            if self.config.pad_id is None:
                return t - 1
            attention_mask = input_ids.ne(self.config.pad_id)
        return (torch.arange(t, device=input_ids.device) * attention_mask).argmax(1)


class EncoderDecoder(Body):
    """An encoder, and a decoder that also attends to the encoder's states (T5).

    A prompt precedes the encoder's input alone (Lester et al. 2021): the decoder, which for
    classification reads the text once more, sees it through the encoder's states.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.encoder = Stack(config, config.n_layers, causal=False)
        self.decoder = Stack(config, config.n_decoder_layers, causal=True, cross=True)
        initialize(self, config)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        decoder_input_ids: Tensor | None = None,
    ) -> Tensor:
        """Return the decoder's last hidden states; `decoder_input_ids` are by default the input shifted."""
        if decoder_input_ids is None:
            decoder_input_ids = self.shift(input_ids)
        return self.decode(decoder_input_ids, self.encode(input_ids, attention_mask), attention_mask)

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Return the encoder's last hidden states [b, s, d_model], those of the prompt first."""
        read = self.embed_batch(input_ids, attention_mask)
        states: Tensor = self.encoder(read.x, keys=read.keys, positions=read.positions)
        return states

    def decode(
        self,
        decoder_input_ids: Tensor,
        context: Tensor,
        attention_mask: Tensor | None = None,
        cache: Cache | None = None,
        pooled_at: PooledPosition | None = None,
    ) -> Tensor:
        offset = cache.length if cache is not None else 0
        positions = self.embed.find_positions(decoder_input_ids, None, offset, self.skip)
        states: Tensor = self.decoder(
            self.embed(decoder_input_ids, positions),
            positions=positions,
            context=context,
            context_keys=self.real_keys(attention_mask),
            cache=cache,
            pooled_at=pooled_at,
        )
        return states

    def shift(self, ids: Tensor) -> Tensor:
        """Return the decoder's input to predict `ids`: start token first, last dropped, -100 as padding."""
        start = self.config.start_id if self.config.start_id is not None else self.config.pad_id
        if start is None:
            raise UserError("this encoder-decoder has no start token; its configuration needs start_id")
        shifted = torch.cat([torch.full_like(ids[:, :1], start), ids[:, :-1]], dim=1)
        return shifted.masked_fill(shifted == -100, self.config.pad_id or 0)

    def pooled(
        self, input_ids: Tensor, attention_mask: Tensor | None = None, token_type_ids: Tensor | None = None
    ) -> Tensor:
        end = PooledPosition(self.end(input_ids))
        context = self.encode(input_ids, attention_mask)
        return self.decode(self.shift(input_ids), context, attention_mask, pooled_at=end)[:, 0]

    def pool(self, states: Tensor, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """Return the decoder's state at the input's last end-of-text token (T5ForSequenceClassification)."""
        return PooledPosition(self.end(input_ids)).take(states)[:, 0]

    def end(self, input_ids: Tensor) -> Tensor:
        ends = input_ids.eq(-1 if self.config.eos_id is None else self.config.eos_id)
        if not bool(ends.any(1).all()):
            raise UserError("every text needs an end-of-text token for T5's classification head")
        return (torch.arange(input_ids.shape[1], device=input_ids.device) * ends).argmax(1)


BODIES: dict[str, type[Encoder] | type[Decoder] | type[EncoderDecoder]] = {
    "encoder": Encoder,
    "decoder": Decoder,
    "encoder_decoder": EncoderDecoder,
}
