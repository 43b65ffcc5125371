"""Text from a language model: greedy or sampled, many prompts at once, each token computed once.

Rows of a batch begin together at their first token, with no padding: as long as a row has prompt left, its
next token is the prompt's instead of a new one. So every token has the position it would have alone, whatever
the mechanism, and what a row becomes does not depend on its neighbors.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from heedful.attention import MECHANISMS
from heedful.data.batches import pad
from heedful.data.random import stream
from heedful.errors import UserError
from heedful.models import Cache, Decoder, EncoderDecoder, LanguageModel

BATCH_TOKENS = 4096
"""Rows times their length that are under way together."""
DROP_SHARE = 0.75
"""Rows that have ended are dropped from the batch once this many or fewer are left."""

Stopped = Literal["stop", "max_tokens", "room"]
Seen = Callable[[int, int], None]
"""Told the row and the token, as soon as it is chosen."""


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """How the next token is chosen. Random numbers depend on the seed and the row's number alone."""

    temperature: float = 1.0
    """Divides the logits; 0 takes the most probable token (greedy)."""
    top_k: int | None = None
    """Only the k most probable tokens (Fan et al. 2018)."""
    top_p: float | None = None
    """Only the fewest tokens that together have this probability (Holtzman et al. 2020)."""
    seed: int = 0

    def __post_init__(self) -> None:
        if not (self.temperature >= 0 and math.isfinite(self.temperature)):
            raise UserError(f"--temperature {self.temperature:g}: is 0 (greedy) or above")
        if self.top_k is not None and self.top_k < 1:
            raise UserError(f"--top-k {self.top_k}: must be at least 1")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UserError(f"--top-p {self.top_p:g}: is above 0 and at most 1")

    @property
    def greedy(self) -> bool:
        return self.temperature == 0


GREEDY = Sampling(temperature=0.0)


@dataclass(frozen=True)
class Generated:
    ids: list[int]
    """The new tokens, without the one that ended them."""
    log_probability: float
    """Of these tokens, and of the one that ended them, as the model itself sees it (temperature 1)."""
    stopped: Stopped
    """stop (a token that ends), max_tokens, or room (the model reads no longer text)."""


def generate(
    model: LanguageModel,
    prompts: Sequence[Sequence[int]],
    *,
    max_tokens: int,
    stop_ids: Collection[int] = (),
    sampling: Sampling = GREEDY,
    cached: bool | None = None,
    slide: bool = False,
    seen: Seen | None = None,
) -> list[Generated]:
    """Continue each prompt (of an encoder-decoder: answer it) until a stop token, `max_tokens` or no room.

    The room is what the model has positions for, or the length it was trained on where that is known and
    shorter: later positions exist, but nothing was learned about them.
    `cached` False computes the whole text anew for each token, which is what mechanisms without a cache do.
    With `slide`, a decoder whose room is full goes on from the second half of what it reads, and reads only
    the end of a longer prompt.
    """
    if max_tokens < 1:
        raise UserError(f"--max-tokens {max_tokens}: must be at least 1")
    room, slide = context_length(model), slide and isinstance(model.body, Decoder)
    if slide:
        prompts = [prompt if len(prompt) <= room else prompt[-max(1, room // 2) :] for prompt in prompts]
    check_prompts(model, prompts)
    # A mechanism with a cache computes the last row alone, exactly as the whole would.
    use_cache = MECHANISMS[model.config.attention].cache if cached is None else cached
    was_training = model.training
    model.eval()
    try:
        with torch.inference_mode():
            begin = {row: (list(prompt), max_tokens) for row, prompt in enumerate(prompts)}
            results = continue_rows(model, begin, stop_ids, sampling, use_cache, seen, 0)
            slides, full = 0, sorted(results) if slide else []
            while full := [row for row in full if results[row].stopped == "room"]:
                slides += 1
                tails = {
                    row: (
                        [*prompts[row], *results[row].ids][-max(1, room // 2) :],
                        max_tokens - len(results[row].ids),
                    )
                    for row in full
                }
                for row, more in continue_rows(
                    model, tails, stop_ids, sampling, use_cache, seen, slides
                ).items():
                    before = results[row]
                    log = before.log_probability + more.log_probability
                    results[row] = Generated(before.ids + more.ids, log, more.stopped)
    finally:
        model.train(was_training)
    return [results[row] for row in range(len(prompts))]


def continue_rows(
    model: LanguageModel,
    begin: Mapping[int, tuple[list[int], int]],
    stop_ids: Collection[int],
    sampling: Sampling,
    cached: bool,
    seen: Seen | None,
    slides: int,
) -> dict[int, Generated]:
    """Continue rows, each with a prompt and the most new tokens, as far as the model's room goes."""
    whole, room = isinstance(model.body, EncoderDecoder), context_length(model)
    results: dict[int, Generated] = {}
    numbers = list(begin)
    lengths = [len(prompt) for prompt, _ in begin.values()]
    sizes = [len(prompt) + min(most, room) for prompt, most in begin.values()]
    for positions in group_by_length(lengths, sizes):
        rows = [numbers[position] for position in positions]
        prompts = [begin[row][0] for row in rows]
        steps = Steps(model, prompts if whole else None, cached)
        first = [[start_token(model)] for _ in rows] if whole else prompts
        generators = [stream(sampling.seed, "generation", row, *([slides] if slides else [])) for row in rows]
        under_way = Rows(
            rows, first, [begin[row][1] for row in rows], room, stop_ids, sampling, generators, seen
        )
        results |= under_way.finish(steps)
    return results


def context_length(model: LanguageModel) -> int:
    """Return the number of tokens that the model has room for and was trained on."""
    room: int = model.body.room
    return room if model.trained_length is None else min(room, model.trained_length)


def check_prompts(model: LanguageModel, prompts: Sequence[Sequence[int]]) -> None:
    if not isinstance(model.body, Decoder | EncoderDecoder):
        raise UserError("an encoder reads text and writes none; generation needs a decoder")
    room = context_length(model)
    for prompt in prompts:
        if not len(prompt):
            raise UserError("the prompt is empty; give at least one token to continue")
        if len(prompt) > room:
            limit = "has room for" if room == model.body.room else "was trained on texts of at most"
            raise UserError(f"the prompt has {len(prompt):,} tokens; this model {limit} {room:,}")


def start_token(model: LanguageModel) -> int:
    assert isinstance(model.body, EncoderDecoder)
    return int(model.body.shift(torch.zeros(1, 1, dtype=torch.long))[0, 0])


def group_by_length(lengths: Sequence[int], sizes: Sequence[int]) -> Iterator[list[int]]:
    """Rows of similar length together, as many as the budget allows."""
    held: list[int] = []
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        if held and (len(held) + 1) * sizes[row] > BATCH_TOKENS:
            yield held
            held = []
        held.append(row)
    if held:
        yield held


class Steps:
    """A model under way in some rows: fed with their next tokens, it gives the logits after them."""

    def __init__(self, model: LanguageModel, questions: list[list[int]] | None, cached: bool) -> None:
        self.model, self.cached = model, cached
        self.device = next(model.parameters()).device
        self.cache = Cache()
        self.past: Tensor | None = None
        self.context: Tensor | None = None
        self.mask: Tensor | None = None
        if questions is not None:
            assert isinstance(model.body, EncoderDecoder)
            lengths = torch.tensor([len(question) for question in questions])
            ids = torch.from_numpy(pad([np.array(question) for question in questions], 0))
            self.mask = (torch.arange(ids.shape[1])[None] < lengths[:, None]).to(self.device)
            self.context = model.body.encode(ids.to(self.device), self.mask)  # [b, s, d]

    def feed(self, ids: Tensor) -> Tensor:
        """Return the logits [b, vocab_size] after further tokens [b, t]."""
        ids = ids.to(self.device)
        cache = self.cache if self.cached else None
        if not self.cached:
            ids = self.past = ids if self.past is None else torch.cat([self.past, ids], dim=1)
        body = self.model.body
        if isinstance(body, EncoderDecoder):
            assert self.context is not None
            states = body.decode(ids, self.context, self.mask, cache)
        else:
            assert isinstance(body, Decoder)
            states = body(ids, cache=cache)
        logits: Tensor = self.model.head(states[:, -1]).float()
        if not bool(logits.isfinite().all()):
            raise UserError(
                "the model's outputs are not finite numbers; it has diverged while it was trained"
            )
        return logits.cpu()

    def keep(self, rows: Tensor) -> None:
        rows = rows.to(self.device)
        for layer in self.cache.layers:
            for name in ("self_attention", "cross"):
                if (keys_values := getattr(layer, name)) is not None:
                    setattr(layer, name, tuple(tensor[rows] for tensor in keys_values))
        self.past = None if self.past is None else self.past[rows]
        self.context = None if self.context is None else self.context[rows]
        self.mask = None if self.mask is None else self.mask[rows]


class Rows:
    """Some rows on their way from their prompts to their ends."""

    def __init__(
        self,
        numbers: list[int],
        prompts: list[list[int]],
        max_tokens: list[int],
        room: int,
        stop_ids: Collection[int],
        sampling: Sampling,
        generators: list[np.random.Generator],
        seen: Seen | None,
    ) -> None:
        self.numbers, self.prompts, self.sampling, self.seen = numbers, prompts, sampling, seen
        self.stop_ids = frozenset(stop_ids)
        # The last new token need not be read.
        self.limits = [min(m, room + 1 - len(prompt)) for m, prompt in zip(max_tokens, prompts, strict=True)]
        self.max_tokens, self.generators = max_tokens, generators
        self.new: list[list[int]] = [[] for _ in prompts]
        self.logs = [0.0] * len(prompts)
        self.ended: dict[int, Stopped] = {}

    def finish(self, steps: Steps) -> dict[int, Generated]:
        """Go on until every row has ended."""
        active = list(range(len(self.prompts)))
        read = min(map(len, self.prompts))
        logits = steps.feed(torch.tensor([prompt[:read] for prompt in self.prompts]))  # [b, v]
        while True:
            chosen = self.choose(active, logits, read)
            alive = [i for i, row in enumerate(active) if row not in self.ended]
            if not alive:
                break
            if len(alive) <= DROP_SHARE * len(active):
                steps.keep(torch.tensor(alive))
                active, chosen = [active[i] for i in alive], chosen[alive]
            logits = steps.feed(chosen[:, None])
            read += 1
        return {
            self.numbers[row]: Generated(self.new[row], self.logs[row], self.ended[row])
            for row in range(len(self.prompts))
        }

    def choose(self, active: Sequence[int], logits: Tensor, read: int) -> Tensor:
        """The next token of each row [b]: the prompt's as long as it lasts, then a new one."""
        chosen = torch.zeros(len(active), dtype=torch.long)
        free = []
        for i, row in enumerate(active):
            if read < len(self.prompts[row]):
                chosen[i] = self.prompts[row][read]
            elif row not in self.ended:
                free.append(i)
        if not free:
            return chosen
        random_numbers = [0.0 if self.sampling.greedy else self.generators[active[i]].random() for i in free]
        chosen[free] = pick_tokens(
            logits[free], torch.tensor(random_numbers, dtype=torch.float64), self.sampling
        )
        logs = logits[free].log_softmax(1).gather(1, chosen[free, None])[:, 0].tolist()
        for i, log in zip(free, logs, strict=True):
            self.take(active[i], int(chosen[i]), log)
        return chosen

    def take(self, row: int, token: int, log: float) -> None:
        """Add a token to a row, which may end it."""
        self.logs[row] += log
        if token in self.stop_ids:
            self.ended[row] = "stop"
            return
        self.new[row].append(token)
        if self.seen is not None:
            self.seen(self.numbers[row], token)
        if len(self.new[row]) == self.limits[row]:
            self.ended[row] = "max_tokens" if self.limits[row] == self.max_tokens[row] else "room"


def pick_tokens(logits: Tensor, random_numbers: Tensor, sampling: Sampling) -> Tensor:
    """Choose a token of each row [b] of logits [b, v], by a number from 0 to 1 each [b]."""
    if sampling.greedy:
        return logits.argmax(1)
    ordered, order = (logits.double() / sampling.temperature).sort(dim=1, descending=True, stable=True)
    if sampling.top_k is not None:
        ordered, order = ordered[:, : sampling.top_k], order[:, : sampling.top_k]
    shares = ordered.softmax(1)
    if sampling.top_p is not None:
        before = shares.cumsum(1) - shares
        shares = shares.masked_fill((before >= sampling.top_p) & (before > 0), 0.0)
    sums = shares.cumsum(1)
    at = (sums <= random_numbers[:, None] * sums[:, -1:]).sum(1, keepdim=True)
    last = (shares > 0).sum(1, keepdim=True) - 1
    return order.gather(1, torch.minimum(at, last))[:, 0]
