"""Whole models without a head: `Encoder`, `Decoder`, `EncoderDecoder`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from heedful.attention.dropout import Dropout
from heedful.errors import UserError
from heedful.models.blocks import Cache, Stack
from heedful.models.config import TransformerConfig
from heedful.models.positions import restarting, sinusoids


class Embeddings(nn.Module):
    """Token, position and type embeddings, their norm and dropout."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        rows = config.max_len + config.position_offset
        self.tokens = nn.Embedding(config.vocab_size, config.d_model)
        if config.position == "learned":
            self.positions = nn.Embedding(rows, config.d_model)
        elif config.position == "sinusoidal":
            self.register_buffer("table", sinusoids(rows, config.d_model), persistent=False)
            self.table: Tensor
        if config.n_types:
            self.types = nn.Embedding(config.n_types, config.d_model)
        self.norm = nn.LayerNorm(config.d_model, eps=config.norm_eps) if config.embed_norm else None
        self.dropout = Dropout(config.embed_dropout)

    def forward(self, input_ids: Tensor, positions: Tensor, token_type_ids: Tensor | None = None) -> Tensor:
        """Embed ids [b, t] that stand at `positions` [b or 1, t]."""
        x: Tensor = self.tokens(input_ids)  # [b, t, d]
        if self.config.n_types:
            types = self.types.weight[0] if token_type_ids is None else self.types(token_type_ids)
            x = x + types
        if self.config.position == "learned":
            x = x + self.positions(positions)
        elif self.config.position == "sinusoidal":
            x = x + self.table[positions]
        return self.dropout(x if self.norm is None else self.norm(x))  # type: ignore[no-any-return]

    def places(self, input_ids: Tensor, segments: Tensor | None, offset: int) -> Tensor:
        """The position of each token: [b or 1, t]. Packed documents begin anew; RoBERTa skips padding."""
        config, t = self.config, input_ids.shape[1]
        if config.position != "relative" and offset + t > config.max_len:
            raise UserError(f"a text of {offset + t} tokens; this model has {config.max_len} positions")
        if config.position_offset and config.pad_id is not None and segments is None and not offset:
            real = input_ids.ne(config.pad_id)
            return torch.where(real, real.cumsum(1) - 1 + config.position_offset, config.pad_id)
        own = torch.arange(t, device=input_ids.device)[None] if segments is None else restarting(segments)
        return own + offset + config.position_offset


class Body(nn.Module):
    """What all bodies share: a configuration, embeddings, initial weights."""

    report: Any = None
    """What reading a checkpoint did (`heedful.checkpoints.LoadReport`)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = Embeddings(config)

    def initialise(self) -> None:
        """Draw new weights from torch's generator: normal(0, init_std), biases zero.

        What adds to the residual stream of a pre-norm model starts smaller, by sqrt(2 n_layers) (GPT-2);
        where scores are not scaled, the query projection carries the scale (T5).
        """
        initialise(self, self.config)


def initialise(module: nn.Module, config: TransformerConfig) -> None:
    """Draw new weights for everything in `module` but mechanisms, which draw their own."""
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


def real_keys(attention_mask: Tensor | None) -> Tensor | None:
    """The mask as booleans, or None when nothing is padded, so that the quickest kernel can be used."""
    if attention_mask is None:
        return None
    keys = attention_mask.bool()
    return None if keys.device.type == "cpu" and bool(keys.all()) else keys


class Encoder(Body):
    """Every token sees every token (BERT, DistilBERT, RoBERTa)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.stack = Stack(config, config.n_layers, causal=False)
        self.pooler = nn.Linear(config.d_model, config.d_model) if config.pooler else None
        self.initialise()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        segments: Tensor | None = None,
    ) -> Tensor:
        """Last hidden states [b, t, d_model]. `attention_mask` is 1 at real tokens."""
        places = self.embed.places(input_ids, segments, 0)
        x = self.embed(input_ids, places, token_type_ids)
        states: Tensor = self.stack(x, keys=real_keys(attention_mask), segments=segments, positions=places)
        return states

    def pool(self, states: Tensor, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """One state a text [b, d_model]: the first token's, through the pooler where there is one."""
        first = states[:, 0]
        return first if self.pooler is None else torch.tanh(self.pooler(first))


class Decoder(Body):
    """Every token sees itself and those before it (GPT-2)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.stack = Stack(config, config.n_layers, causal=True)
        self.initialise()

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
        offset = cache.length if cache is not None else 0
        places = self.embed.places(input_ids, segments, offset)
        x = self.embed(input_ids, places, token_type_ids)
        states: Tensor = self.stack(
            x, keys=real_keys(attention_mask), segments=segments, positions=places, cache=cache
        )
        return states

    def pool(self, states: Tensor, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """The state of the last real token [b, d_model]."""
        if attention_mask is None:
            return states[:, -1]
        index = torch.arange(states.shape[1], device=states.device)
        last = (index * attention_mask).argmax(1)
        return states[torch.arange(len(states), device=states.device), last]


class EncoderDecoder(Body):
    """An encoder, and a decoder that also attends to the encoder's states (T5)."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__(config)
        self.encoder = Stack(config, config.n_layers, causal=False)
        self.decoder = Stack(config, config.n_decoder_layers, causal=True, cross=True)
        self.initialise()

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        *,
        decoder_input_ids: Tensor | None = None,
    ) -> Tensor:
        """The decoder's last hidden states; without `decoder_input_ids`, of the input shifted by one."""
        if decoder_input_ids is None:
            decoder_input_ids = self.shift(input_ids)
        return self.decode(decoder_input_ids, self.encode(input_ids, attention_mask), attention_mask)

    def encode(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """The encoder's last hidden states [b, s, d_model]."""
        places = self.embed.places(input_ids, None, 0)
        states: Tensor = self.encoder(
            self.embed(input_ids, places), keys=real_keys(attention_mask), positions=places
        )
        return states

    def decode(
        self,
        decoder_input_ids: Tensor,
        context: Tensor,
        attention_mask: Tensor | None = None,
        cache: Cache | None = None,
    ) -> Tensor:
        """The decoder's last hidden states [b, t, d_model], given the encoder's."""
        places = self.embed.places(decoder_input_ids, None, cache.length if cache is not None else 0)
        states: Tensor = self.decoder(
            self.embed(decoder_input_ids, places),
            positions=places,
            context=context,
            context_keys=real_keys(attention_mask),
            cache=cache,
        )
        return states

    def shift(self, ids: Tensor) -> Tensor:
        """What a decoder reads to predict `ids`: the start token first, the last dropped, -100 as padding."""
        start = self.config.start_id if self.config.start_id is not None else self.config.pad_id
        if start is None:
            raise UserError("this encoder-decoder has no start token; its configuration needs start_id")
        shifted = torch.cat([torch.full_like(ids[:, :1], start), ids[:, :-1]], dim=1)
        return shifted.masked_fill(shifted == -100, self.config.pad_id or 0)

    def pool(self, states: Tensor, input_ids: Tensor, attention_mask: Tensor | None) -> Tensor:
        """The decoder's state at the last end-of-text token of the input (T5ForSequenceClassification)."""
        ends = input_ids.eq(-1 if self.config.eos_id is None else self.config.eos_id)
        if not bool(ends.any(1).all()):
            raise UserError("every text needs an end-of-text token for T5's classification head")
        index = torch.arange(states.shape[1], device=states.device)
        return states[torch.arange(len(states), device=states.device), (index * ends).argmax(1)]


BODIES: dict[str, type[Encoder] | type[Decoder] | type[EncoderDecoder]] = {
    "encoder": Encoder,
    "decoder": Decoder,
    "encoder_decoder": EncoderDecoder,
}
