"""Masked language modeling (Devlin et al. 2019, section 3.1), with new masks at every call."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful.data.batches import IGNORED

MASKED, MASKED_OR_RANDOM = 0.8, 0.9

Array = npt.NDArray[Any]


def mask_tokens(
    ids: Array,
    *,
    special_ids: Iterable[int],
    mask_id: int,
    vocab_size: int,
    rate: float = 0.15,
    generator: np.random.Generator,
    words: Array | None = None,
) -> tuple[Array, npt.NDArray[np.int64]]:
    """Mask tokens of `ids`, [b, t] or [t]; return inputs and labels (`IGNORED` where nothing is predicted).

    Each token is chosen independently with probability `rate`; a row in which none was chosen gets one, so
    that every row has a loss. Of the chosen tokens, 80 % become `mask_id`, 10 % a random token of the
    vocabulary that is not special, and 10 % stay. Special tokens, which must include padding, are never
    chosen.

    With `words` (the number of each token's word in its row, as tokenizers give it; -1 outside words) whole
    words are chosen. BERT's code fixes the number of chosen tokens per row instead; the expected number is
    the same.
    """
    ids = np.asarray(ids)
    if not 0 <= rate <= 1:
        raise ValueError(f"rate is {rate}; it is a probability, from 0 to 1")
    special = np.zeros(vocab_size, dtype=bool)
    special[np.fromiter(special_ids, dtype=np.int64)] = True
    special[mask_id] = True
    rows = np.atleast_2d(ids)
    maskable = ~special[rows]  # [b, t]
    if words is None:
        draws = generator.random(rows.shape, dtype=np.float32)  # [b, t]
    else:
        numbers = np.atleast_2d(np.asarray(words))
        if numbers.shape != rows.shape:
            raise ValueError(f"words have shape {numbers.shape}; ids have {rows.shape}")
        maskable &= numbers >= 0
        by_word = generator.random((len(rows), int(numbers.max(initial=0)) + 1), dtype=np.float32)
        draws = np.take_along_axis(by_word, np.maximum(numbers, 0), axis=1)
    chosen = choose(draws, maskable, rate)

    inputs, labels = rows.copy(), np.full(rows.shape, IGNORED, dtype=np.int64)
    at = np.flatnonzero(chosen)
    flat = inputs.reshape(-1)
    labels.reshape(-1)[at] = flat[at]
    fate = generator.random(len(at), dtype=np.float32)
    flat[at[fate < MASKED]] = mask_id
    replaced = at[(fate >= MASKED) & (fate < MASKED_OR_RANDOM)]
    ordinary = np.flatnonzero(~special)
    if len(replaced):
        flat[replaced] = ordinary[generator.integers(len(ordinary), size=len(replaced))]
    return inputs.reshape(ids.shape), labels.reshape(ids.shape)


def choose(draws: Array, maskable: Array, rate: float) -> npt.NDArray[np.bool_]:
    """Choose where `draws` is below `rate`; a row with none takes its smallest, unless `rate` is 0."""
    chosen: npt.NDArray[np.bool_] = maskable & (draws < rate)
    if rate > 0:
        empty = np.flatnonzero(~chosen.any(axis=1) & maskable.any(axis=1))
        if len(empty):
            candidates = np.where(maskable[empty], draws[empty], 2.0)
            chosen[empty] = candidates == candidates.min(axis=1, keepdims=True)
    return chosen
