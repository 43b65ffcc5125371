"""Masked language modelling (Devlin et al. 2019, section 3.1), on text without labels."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from heedful.data import Tokens
from heedful.data.batches import Batches
from heedful.data.corruption import mask_tokens
from heedful.data.random import stream
from heedful.errors import UserError
from heedful.objectives.base import Inputs, Ints, Losses, exact, padded
from heedful.text import Tokenizer

CHUNK = 2048
"""Masked tokens whose logits are made at a time: the vocabulary is wide."""


class MaskedText:
    """Batches of corrupted text and their loss; the same step always gives the same batch."""

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
        if tokenizer.mask_id is None:
            raise UserError("this tokenizer has no mask token; masked language modelling needs one")
        self.tokens, self.tokenizer, self.rate, self.seed = tokens, tokenizer, rate, seed
        self.word_starts = np.array(tokenizer.word_starts) if whole_words else None
        self.rows = np.flatnonzero(tokens.lengths > 2)
        if not len(self.rows):
            raise UserError("there is no text to mask")
        self.batches = Batches(tokens.lengths[self.rows], batch_size=batch_size, seed=seed)
        self.per_epoch = len(self.batches.plan(0))

    def prepare(self, step: int, parts: int = 1) -> list[Inputs]:
        """The corrupted batch of a step, in parts."""
        epoch, at = divmod(step, self.per_epoch)
        rows = self.rows[self.batches.plan(epoch)[at]]
        pad = 0 if self.tokenizer.pad_id is None else self.tokenizer.pad_id
        plain, mask, _ = padded(self.tokens, rows, pad)
        ids, labels = self.corrupt(plain, step)
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

    def corrupt(self, ids: Ints, step: int) -> tuple[Ints, Ints]:
        """Hide tokens, anew at each step."""
        words = None
        if self.word_starts is not None:
            words = np.cumsum(self.word_starts[ids], axis=1)
        assert self.tokenizer.mask_id is not None
        inputs, labels = mask_tokens(
            ids,
            special_ids=self.tokenizer.special_ids,
            mask_id=self.tokenizer.mask_id,
            vocab_size=self.tokenizer.vocab_size,
            rate=self.rate,
            generator=stream(self.seed, "masking", step),
            words=words,
        )
        return np.asarray(inputs, np.int64), np.asarray(labels, np.int64)

    def losses(self, body: nn.Module, head: nn.Module, inputs: Inputs) -> Losses:
        """Cross-entropy at the masked positions; logits are made nowhere else."""
        t = inputs.tensors
        states = body(t["masked_ids"], t["masked_mask"])  # [b, t, d]
        wanted = t["masked_labels"] >= 0
        return Losses({"masked": chunked_loss(head, states[wanted], t["masked_labels"][wanted])})


def chunked_loss(head: nn.Module, states: Tensor, labels: Tensor) -> Tensor:
    """The summed cross-entropy of states [n, d], a chunk of the vocabulary-wide logits at a time."""
    parts = [
        F.cross_entropy(exact(head(s)), y, reduction="sum")
        for s, y in zip(torch.split(states, CHUNK), torch.split(labels, CHUNK), strict=True)
    ]
    return torch.stack(parts).sum() if parts else states.sum() * 0.0
