"""What the first layer reads: tokens, positions and types as vectors, and a prompt before them."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from heedful.attention.dropout import Dropout
from heedful.errors import UserError
from heedful.models.config import TransformerConfig
from heedful.models.positions import positions_per_document, sinusoids

Pool = Literal["text", "first"]


class Embeddings(nn.Module):
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

    def forward(
        self,
        input_ids: Tensor,
        positions: Tensor,
        token_type_ids: Tensor | None = None,
        prompt: Tensor | None = None,
    ) -> Tensor:
        """Embed ids [b, t] at `positions` [b or 1, t], after a prompt's vectors [p, d_model]."""
        x = self.add_positions(self.tokens(input_ids), positions, token_type_ids)  # [b, t, d]
        if prompt is not None:
            # The same for every text up to the dropout, so it is normed once.
            front = self.add_positions(prompt[None], self.first_positions(len(prompt), x.device), None)
            x = torch.cat([front.expand(x.shape[0], -1, -1), x], dim=1)  # [b, p + t, d]
        dropped: Tensor = self.dropout(x)
        return dropped

    def add_positions(self, x: Tensor, positions: Tensor, token_type_ids: Tensor | None) -> Tensor:
        if self.config.n_types:
            x = x + (self.types.weight[0] if token_type_ids is None else self.types(token_type_ids))
        if self.config.position == "learned":
            x = x + self.positions(positions)
        elif self.config.position == "sinusoidal":
            x = x + self.table[positions]
        return x if self.norm is None else self.norm(x)

    def first_positions(self, n: int, device: torch.device) -> Tensor:
        return torch.arange(n, device=device)[None] + self.config.position_offset

    def find_positions(
        self, input_ids: Tensor, segments: Tensor | None, offset: int, before: int = 0
    ) -> Tensor:
        """Return the position of each token: [b or 1, t]. Packed documents begin anew; RoBERTa skips padding.

        `offset` counts the tokens of earlier decoding steps, `before` the positions taken by no token.
        """
        config, t = self.config, input_ids.shape[1]
        if config.position != "relative" and offset + before + t > config.max_len:
            raise UserError(
                f"a text of {offset + t} tokens{f' after {before} virtual ones' if before else ''}; "
                f"this model has {config.max_len} positions"
            )
        if config.position_offset and config.pad_id is not None and segments is None and not offset:
            real = input_ids.ne(config.pad_id)
            return torch.where(
                real, real.long().cumsum(1) - 1 + config.position_offset + before, config.pad_id
            )
        if segments is None:
            positions = torch.arange(t, device=input_ids.device)[None]
        else:
            positions = positions_per_document(segments)
        return positions + offset + before + config.position_offset


class PromptVectors(nn.Module):
    """Trainable vectors [p, d_model] that come before the text (Lester et al. 2021).

    `pool` says whose state an encoder gives its head: the text's first token's, or the first vector's.
    """

    holds_vectors = True  # no weight decay, as for embeddings

    def __init__(self, vectors: Tensor, pool: Pool = "text") -> None:
        super().__init__()
        self.vectors = nn.Parameter(vectors)
        self.pool = pool

    def __len__(self) -> int:
        return len(self.vectors)
