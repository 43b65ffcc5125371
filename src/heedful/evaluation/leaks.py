"""How much a decoder sees of what it has to predict, and what its own texts look like."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.inference.generation import Sampling, generate
from heedful.models import LanguageModel
from heedful.text import Tokenizer


@dataclass(frozen=True)
class Leak:
    """The loss of the same tokens in two ways; what the second has more, the first saw of the future."""

    one_pass: float
    """Per token, when the whole text is read at once, as in training."""
    prefix_alone: float
    """Per token, when nothing but the tokens before it is given."""
    tokens: int
    largest: float
    """The largest difference at one token: a leak can help here and mislead there."""

    @property
    def size(self) -> float:
        """Zero for attention that hides the future."""
        return self.prefix_alone - self.one_pass


def measure_leak(model: LanguageModel, texts: Sequence[Sequence[int]]) -> Leak:
    """Score texts of ids both ways, in double precision and without padding."""
    exact = deepcopy(model).double().eval()
    rows = [torch.tensor(text)[None] for text in texts if len(text) > 1]
    if not rows:
        raise ValueError("no text has a token to predict")
    with torch.inference_mode():
        whole = [token_losses(exact, row)[0] for row in rows]
        alone = [torch.empty_like(losses) for losses in whole]
        for t in range(1, max(row.shape[1] for row in rows)):
            longer = [i for i, row in enumerate(rows) if row.shape[1] > t]
            together = torch.cat([rows[i][:, : t + 1] for i in longer])
            logits = exact.head(exact.body(together[:, :-1])[:, -1])  # [b, v]
            losses = F.cross_entropy(logits, together[:, -1], reduction="none")
            for i, loss in zip(longer, losses, strict=True):
                alone[i][t - 1] = loss
    in_one, from_prefix = torch.cat(whole), torch.cat(alone)
    largest = float((from_prefix - in_one).abs().max())
    return Leak(float(in_one.mean()), float(from_prefix.mean()), len(in_one), largest)


def token_losses(model: LanguageModel, rows: Tensor) -> Tensor:
    """Return the loss of each token but the first [b, t - 1], all read at once."""
    logits = model.head(model.body(rows[:, :-1]))
    return F.cross_entropy(logits.mT, rows[:, 1:], reduction="none")


@dataclass(frozen=True)
class FreeRunningSamples:
    """Texts that a model wrote by itself, and what they are made of."""

    texts: tuple[str, ...]
    mean_length: float
    """Tokens per text."""
    unknown: float
    """Share of the tokens that stand for words the vocabulary lacks."""
    punctuation: float
    """Share of the tokens without a letter or a digit."""
    distinct: float
    """Different tokens as a share of all."""


def draw_samples(
    model: LanguageModel,
    tokenizer: Tokenizer,
    prompts: Sequence[Sequence[int]],
    *,
    max_tokens: int,
    seed: int = 0,
) -> FreeRunningSamples:
    """Let a model continue each prompt at temperature 1, and describe what it wrote."""
    stops = [i for i in (tokenizer.eos_id, tokenizer.pad_id) if i is not None]
    texts = generate(model, prompts, max_tokens=max_tokens, stop_ids=stops, sampling=Sampling(seed=seed))
    every = [i for text in texts for i in text.ids]
    special = set(tokenizer.special_ids)
    bare = [p for i, p in zip(every, tokenizer.pieces(every), strict=True) if i not in special]
    marks = sum(not any(c.isalnum() for c in piece) for piece in bare)
    n = max(1, len(every))
    return FreeRunningSamples(
        tuple(tokenizer.decode(text.ids, skip_special=False) for text in texts),
        len(every) / max(1, len(texts)),
        sum(i == tokenizer.unk_id for i in every) / n,
        marks / n,
        len(set(every)) / n,
    )
