"""A language model that reads token by token: what it has read is kept, and other tokens can be tried."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.attention import MECHANISMS
from heedful.errors import UserError
from heedful.inference.generation import Sampling, context_length, start_token
from heedful.models import Cache, Decoder, EncoderDecoder, LanguageModel

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Place:
    """What a model expects at one place of a text."""

    logits: Tensor
    """[v]"""
    log_probabilities: list[float]
    """Of the new tokens before this place, each as the model itself sees it."""


class TokenReader:
    """Reads a prompt and new tokens after it; of what it has read before, only what differs is read again."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model
        self.body = model.body
        if not isinstance(self.body, Decoder | EncoderDecoder):
            raise UserError("an encoder reads text and writes none; choose a decoder or an encoder-decoder")
        self.whole = isinstance(self.body, EncoderDecoder)
        mechanism = MECHANISMS[model.config.attention]
        self.keeps = mechanism.cache and self.body.prompt is None
        self.leaks = mechanism.unsafe
        """Whether later tokens change what is expected at earlier places, so that each is read by itself."""
        self.forget([])

    def forget(self, prompt: Sequence[int]) -> None:
        self.prompt = list(prompt)
        self.ids: list[int] = []
        self.logs: list[float] = []
        self.cache = Cache()
        self.context: Tensor | None = None
        self.after: Tensor | None = None

    @property
    def room(self) -> int:
        """The number of tokens that the model reads, the prompt's included if it is a decoder's."""
        return context_length(self.model)

    def left(self, prompt: Sequence[int], new: Sequence[int]) -> int:
        """Return how many tokens can still be written; the last one need not be read."""
        return self.room + 1 - (1 if self.whole else len(prompt)) - len(new)

    def read(self, prompt: Sequence[int], new: Sequence[int]) -> Place:
        """Return what is expected after a prompt and new tokens."""
        if self.left(prompt, new) < 1:
            raise UserError(f"there is no room: this model reads {self.room:,} tokens")
        prompt, new = list(prompt), list(new)
        if prompt != self.prompt:
            self.forget(prompt)
        first = 1 if self.whole else len(prompt)
        ids = [start_token(self.model), *new] if self.whole else [*prompt, *new]
        if ids == self.ids and self.after is not None:
            return Place(self.after, list(self.logs))
        pairs = zip(ids, self.ids, strict=False)
        shared = next(
            (i for i, (one, other) in enumerate(pairs) if one != other), min(len(ids), len(self.ids))
        )
        goes_on = 0 < shared == len(self.ids)
        if self.leaks and new and not (goes_on and shared == len(ids) - 1):
            self.forget(prompt)
            for end in range(len(new)):
                self.read(prompt, new[:end])
            shared, goes_on = len(ids) - 1, True
        if not goes_on:  # what was expected after the last token that stays was not kept: it is read again
            shared = max(0, shared - 1)
        before = self.after if goes_on and shared >= first else None
        self.shorten(shared)
        self.logs = self.logs[: max(0, shared + (0 if goes_on else 1) - first)]
        with torch.inference_mode():
            states = self.run(torch.tensor([ids[shared:]]), torch.tensor([ids]), prompt)
            begin = max(0, first - 1 - shared)  # only new tokens have a probability
            logits = self.model.head(states[0, -(len(ids) - shared) :][begin:]).float()
        if not bool(logits.isfinite().all()):
            raise UserError(
                "the model's outputs are not finite numbers; it has diverged while it was trained"
            )
        rows, following = logits[:-1], torch.tensor(ids[shared + begin + 1 :], dtype=torch.long)
        if before is not None:
            rows, following = torch.cat([before[None], rows]), torch.tensor(ids[shared:], dtype=torch.long)
        logs = rows.double().log_softmax(-1).gather(1, following[:, None])[:, 0]
        self.logs += logs.tolist()
        self.ids, self.after = ids, logits[-1]
        return Place(logits[-1], list(self.logs))

    def run(self, more: Tensor, whole: Tensor, prompt: list[int]) -> Tensor:
        """Return the states at the tokens that are read now [1, t, d]."""
        ids, cache = (more, self.cache) if self.keeps else (whole, None)
        if isinstance(self.body, EncoderDecoder):
            if self.context is None:
                self.context = self.body.encode(torch.tensor([prompt]))
            return self.body.decode(ids, self.context, None, cache)
        assert isinstance(self.body, Decoder)
        states: Tensor = self.body(ids, cache=cache)
        return states

    def shorten(self, length: int) -> None:
        """Forget all tokens but the first `length`."""
        self.ids = self.ids[:length]
        self.cache.length = length
        for layer in self.cache.layers:
            if layer.self_attention is not None:
                keys, values = layer.self_attention
                layer.self_attention = (keys[:, :, :length], values[:, :, :length])


def find_shares(logits: Tensor, sampling: Sampling) -> Floats:
    """Return the probability with which each token is drawn under a temperature, top-k and top-p."""
    if sampling.greedy:
        shares = np.zeros(len(logits))
        shares[int(logits.argmax())] = 1.0
        return shares
    ordered, order = (logits.double() / sampling.temperature).sort(descending=True, stable=True)
    ordered, order = ordered[: sampling.top_k], order[: sampling.top_k]
    drawn = ordered.softmax(0)
    if sampling.top_p is not None:
        before = drawn.cumsum(0) - drawn
        drawn = drawn.masked_fill((before >= sampling.top_p) & (before > 0), 0.0)
    shares = np.zeros(len(logits))
    shares[order.numpy()] = (drawn / drawn.sum()).numpy()
    return shares
