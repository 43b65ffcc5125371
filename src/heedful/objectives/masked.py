"""Masked language modeling (Devlin et al. 2019, section 3.1), on text without labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from heedful.data import Tokens
from heedful.data.batches import Batches
from heedful.data.corruption import mask_tokens
from heedful.data.random import stream
from heedful.errors import UserError
from heedful.objectives.base import Inputs, Ints, Losses, pad_rows
from heedful.objectives.packed import PackedText
from heedful.objectives.setup import TextSetup
from heedful.objectives.vocabulary import select_labeled, vocabulary_loss
from heedful.text import Tokenizer, missing_mask_error


class Masking:
    """Hides a share of the tokens of a batch, one by one or as whole words."""

    def __init__(self, tokenizer: Tokenizer, rate: float, whole_words: bool) -> None:
        if tokenizer.mask_id is None:
            raise missing_mask_error("masked language modeling")
        if not 0 < rate < 1:
            raise UserError(f"{rate:g} of the tokens cannot be hidden; the rate is above 0 and below 1")
        self.tokenizer, self.mask_id, self.rate = tokenizer, tokenizer.mask_id, rate
        self.word_starts = np.array(tokenizer.word_starts) if whole_words else None

    def __call__(self, ids: Ints, generator: np.random.Generator) -> tuple[Ints, Ints]:
        """Return ids [b, t] with some of them hidden, and labels that are `IGNORED` everywhere else."""
        inputs, labels = mask_tokens(
            ids,
            special_ids=self.tokenizer.special_ids,
            mask_id=self.mask_id,
            vocab_size=self.tokenizer.vocab_size,
            rate=self.rate,
            generator=generator,
            words=None if self.word_starts is None else np.cumsum(self.word_starts[ids], axis=1),
        )
        return np.asarray(inputs, np.int64), np.asarray(labels, np.int64)


class Masked(PackedText):
    """The loss of masked tokens, drawn again at each step; scoring always masks the same ones.

    Its perplexity is that of hidden tokens given all others and cannot be compared with a causal model's.
    """

    name = "masked"
    heads = {"encoder": "masked"}  # noqa: RUF012
    own_options = ("mask_rate", "whole_words")
    hides_tokens = True

    @classmethod
    def further_arguments(cls, setup: TextSetup) -> dict[str, Any]:
        return {"rate": setup.options.mask_rate, "whole_words": setup.options.whole_words}

    def __init__(
        self,
        texts: Mapping[str, Any],
        tokenizer: Tokenizer,
        *,
        rate: float = 0.15,
        whole_words: bool = False,
        **options: Any,
    ) -> None:
        self.masking = Masking(tokenizer, rate, whole_words)
        super().__init__(texts, tokenizer, **options)

    def make_labels(
        self, split: str, ids: Ints, positions: Ints, rows: Ints, step: int | None
    ) -> tuple[Ints, Ints]:
        if step is not None:
            return self.masking(ids, stream(self.seed, "masking", step))
        streams = [stream(self.seed, f"masking {split}", int(row)) for row in rows]
        hidden = [self.masking(row[None], generator) for row, generator in zip(ids, streams, strict=True)]
        inputs, labels = (np.concatenate(parts) for parts in zip(*hidden, strict=True))
        return inputs, labels


class MaskedText:
    """Batches of masked text and their loss; the same step always gives the same batch."""

    def __init__(
        self,
        tokens: Tokens,
        tokenizer: Tokenizer,
        *,
        batch_size: int,
        rate: float = 0.15,
        whole_words: bool = False,
        seed: int = 0,
    ) -> None:
        self.tokens, self.tokenizer, self.seed = tokens, tokenizer, seed
        self.masking = Masking(tokenizer, rate, whole_words)
        self.rows = np.flatnonzero(tokens.lengths > 2)
        if not len(self.rows):
            raise UserError("there is no text to mask")
        self.plan_batches(batch_size)

    def plan_batches(self, batch_size: int) -> None:
        self.batches = Batches(self.tokens.lengths[self.rows], batch_size=batch_size, seed=self.seed)
        self.per_epoch = len(self.batches.plan(0))

    def keep_longest(self, batch_size: int) -> None:
        """Keep only one batch of the longest texts, which needs the most memory of all."""
        longest = np.argsort(self.tokens.lengths[self.rows])[::-1]
        self.rows = self.rows[longest[:batch_size]]
        self.plan_batches(batch_size)

    def prepare(self, step: int, parts: int = 1) -> list[Inputs]:
        epoch, number = divmod(step, self.per_epoch)
        rows = self.rows[self.batches.plan(epoch)[number]]
        pad = 0 if self.tokenizer.pad_id is None else self.tokenizer.pad_id
        plain, mask, _ = pad_rows(self.tokens, rows, pad)
        ids, labels = self.masking(plain, stream(self.seed, "masking", step))
        return [
            Inputs(
                {
                    "masked_ids": torch.from_numpy(ids[part]),
                    "masked_mask": torch.from_numpy(mask[part]),
                    "masked_labels": torch.from_numpy(labels[part]),
                },
                {"masked": int((labels[part] >= 0).sum())},
                len(part),
                int(mask[part].sum()),
            )
            for part in np.array_split(np.arange(len(rows)), parts)
            if len(part)
        ]

    def losses(self, body: nn.Module, head: nn.Module, inputs: Inputs) -> Losses:
        t = inputs.tensors
        states = body(t["masked_ids"], t["masked_mask"])  # [b, t, d]
        return Losses({"masked": vocabulary_loss(head, *select_labeled(states, t["masked_labels"]))})
