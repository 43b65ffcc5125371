"""A model that reads a text while its attention is watched: maps, roll-out, and what it answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from heedful.errors import UserError
from heedful.models import Classifier, Decoder, Encoder, EncoderDecoder, LanguageModel
from heedful.statistics.links import activate
from heedful.studio.work.attention_view import (
    AttentionView,
    Body,
    Recording,
    Site,
    find_body,
    find_sites,
    watch,
)
from heedful.studio.work.pieces import show_pieces

if TYPE_CHECKING:
    from heedful.studio.model_store import Network
    from heedful.studio.worker import Report

Floats = npt.NDArray[np.float64]
MOST_TOKENS = 1024
"""The longest text that is looked at."""
MOST_WEIGHTS = 160_000_000
"""The largest number of weights of all heads: a longer text is cut."""
SHOWN_TOKENS = 8
"""Tokens of a vocabulary whose probability is shown."""
LONGEST_ANSWER = 24
"""Tokens of an encoder-decoder's own answer, which its decoder reads."""
BATCH_TOKENS = 4096
"""Tokens of the copies of a text that are read together, each without another head."""
KINDS = {"multi_label_classification": "labels", "regression": "number"}


@dataclass(frozen=True)
class EncodedText:
    """What a model reads: one text, or one pair."""

    ids: Tensor
    """[1, t]"""
    types: Tensor | None
    pieces: list[str]
    truncated: int
    """The number of tokens that were cut off."""
    text: str
    pair: str | None
    answer: list[int] = field(default_factory=list)
    """Of a text-to-text model: what its decoder reads after its first token."""


@dataclass(frozen=True)
class Maps:
    """The weights of one part of a model for one text; rows attend, columns are attended to."""

    part: str
    rows: list[str]
    columns: list[str]
    layers: list[Tensor | None]
    """[h, t, s]; None where the mechanism makes no weights."""


@dataclass(frozen=True)
class Look:
    """One reading of a text under one view."""

    parts: dict[str, Maps]
    raw: Tensor
    """The logits, or the vector of a model without a head [n]."""


class Reading:
    """A text before a model, which reads it as often as it is looked at differently."""

    def __init__(self, network: Network, text: str, pair: str | None) -> None:
        self.network = network
        self.model = network.model
        self.body: Body = find_body(self.model)
        self.sites = find_sites(self.body)
        self.apart = self.body.config.pool == "apart"
        self.encoded = encode_text(network, self.body, text, pair)
        self.looks: dict[AttentionView, Look] = {}
        self.unchanged: Tensor | None = None
        if isinstance(self.model, LanguageModel) and isinstance(self.body, EncoderDecoder):
            self.encoded.answer.extend(self.write_answer())

    def write_answer(self) -> list[int]:
        """Return the model's own answer, which the decoder reads whatever is changed."""
        from heedful.inference.generation import generate

        stops = [i for i in (self.network.tokenizer.eos_id, self.network.tokenizer.pad_id) if i is not None]
        prompt = self.encoded.ids[0].tolist()
        return generate(self.model, [prompt], max_tokens=LONGEST_ANSWER, stop_ids=stops)[0].ids  # type: ignore[arg-type]

    def whole(self, report: Report) -> Tensor:
        """Return the output of the model as it was made."""
        if self.unchanged is None:
            self.unchanged = self.look(AttentionView(), report).raw
        return self.unchanged

    def look(self, view: AttentionView, report: Report) -> Look:
        """Return the maps and the output under a view; the last look is kept."""
        if view in self.looks:
            return self.looks[view]
        recording = Recording(step=self.count_steps(report))
        raw = self.read(view, recording)[0]
        look = Look(self.name_parts(recording), raw)
        self.looks = {view: look}
        return look

    def count_steps(
        self, report: Report, total: int = 0, message: str = "reading the text"
    ) -> Callable[[], None]:
        done = 0

        def step() -> None:
            nonlocal done
            done += 1
            report(min(1.0, done / (total or len(self.sites))), message)

        return step

    def read(self, view: AttentionView, recording: Recording, copies: int = 1) -> Tensor:
        """Return the output [copies, n] for the text, or copies of it."""
        ids = self.encoded.ids.expand(copies, -1)
        types = None if self.encoded.types is None else self.encoded.types.expand(copies, -1)
        with torch.inference_mode(), watch(self.sites, view, recording, ids.shape[1]):
            if isinstance(self.body, EncoderDecoder):
                return self.read_both(self.body, ids)
            if self.apart:
                assert isinstance(self.body, Encoder)
                return self.add_head(self.body.pooled(ids, None, types))
            batch = self.body.embed_batch(ids, None, types)
            return self.finish(
                self.body.stack(batch.x, keys=batch.keys, positions=batch.positions), batch.front
            )

    def read_both(self, body: EncoderDecoder, ids: Tensor) -> Tensor:
        context = body.encode(ids)
        if isinstance(self.model, Classifier):
            states = body.decode(body.shift(ids), context)
            return self.add_head(body.pool(states, ids, None))
        start = body.shift(ids)[:, :1]
        answer = torch.tensor([self.encoded.answer], dtype=torch.long).expand(len(ids), -1)
        states = body.decode(torch.cat([start, answer], 1), context)
        return self.add_head(states[:, 0])

    def finish(self, states: Tensor, front: int) -> Tensor:
        """Return the output from the last states of all positions [b, p + t, d]."""
        ids = self.encoded.ids.expand(len(states), -1)
        if isinstance(self.body, Decoder):
            return self.add_head(states[:, -1])
        assert isinstance(self.body, Encoder)
        if isinstance(self.model, LanguageModel):
            return self.add_head(states[:, front + self.masked_at]) if self.masked_at is not None else (
                states[:, front:].mean(1)
            )  # fmt: skip
        if self.body.config.pool == "mean":
            return self.add_head(self.body.pool(states[:, front:], ids, None))
        prompt = self.body.prompt
        first = 0 if prompt is not None and prompt.pool == "first" else front
        return self.add_head(self.body.pool(states[:, first : first + 1], ids, None))

    def add_head(self, pooled: Tensor) -> Tensor:
        head = getattr(self.model, "head", None)
        return pooled if head is None else head(pooled)

    @property
    def masked_at(self) -> int | None:
        """The position of the first masked token."""
        mask = self.network.tokenizer.mask_id
        ids = self.encoded.ids[0].tolist()
        return ids.index(mask) if mask in ids else None

    def without_each(self, view: AttentionView, site: Site, states: Tensor | None, step: Any) -> Tensor:
        """Return the output without each head of a layer [h, n]; `states` are those before the layer."""
        heads, t = list(range(site.attention.n_heads)), self.encoded.ids.shape[1]
        size = max(1, BATCH_TOKENS // t)
        outputs = []
        for start in range(0, len(heads), size):
            some = heads[start : start + size]
            recording = Recording(keep=False, without=(site.part, site.layer, some), step=step)
            if states is None:
                outputs.append(self.read(view, recording, len(some)))
                continue
            assert not isinstance(self.body, EncoderDecoder)
            with torch.inference_mode(), watch(self.sites, view, recording, t):
                batch = self.body.embed_batch(self.encoded.ids, None, None)  # for the positions
                x = states.expand(len(some), -1, -1)
                last = self.body.stack(x, positions=batch.positions, first=site.layer)
                outputs.append(self.finish(last, batch.front))
        return torch.cat(outputs)

    def without_heads(self, view: AttentionView, report: Report) -> dict[tuple[str, int], Tensor]:
        """Return the output without each head that is on, by part and layer [h, n].

        Layers below the head are read once, where the model is one stack.
        """
        t = self.encoded.ids.shape[1]
        layered = not self.apart and not isinstance(self.body, EncoderDecoder)
        n = len(self.sites)
        rounds = [-(-site.attention.n_heads // max(1, BATCH_TOKENS // t)) for site in self.sites]
        total = sum(r * (n - i if layered else n) for i, r in enumerate(rounds))
        step = self.count_steps(report, total, "switching heads off one by one")
        outputs = {}
        states: Tensor | None = None
        for site in self.sites:
            if layered:
                states = self.read_until(view, site.layer, states)
            outputs[site.part, site.layer] = self.without_each(view, site, states, step)
        return outputs

    def read_until(self, view: AttentionView, layer: int, states: Tensor | None) -> Tensor:
        """Return the states before a layer, from those before the layer below it."""
        assert not isinstance(self.body, EncoderDecoder)
        with (
            torch.inference_mode(),
            watch(self.sites, view, Recording(keep=False), self.encoded.ids.shape[1]),
        ):
            batch = self.body.embed_batch(self.encoded.ids, None, self.encoded.types)
            if states is None:
                return batch.x
            lower: Tensor = self.body.stack(states, positions=batch.positions, first=layer - 1, stop=layer)
            return lower

    def name_parts(self, recording: Recording) -> dict[str, Maps]:
        """Return the recorded weights with the names of their rows and columns."""
        pieces, body = self.encoded.pieces, self.body
        ahead = [f"(prompt {i + 1})" for i in range(0 if body.prompt is None else len(body.prompt))]
        keys = [f"(prefix {i + 1})" for i in range(recording.prefix)]
        if self.apart:
            return self.name_texts(recording)
        rows = {"self": [*ahead, *pieces], "encoder": [*ahead, *pieces]}
        columns = {part: [*keys, *names] for part, names in rows.items()}
        if isinstance(body, EncoderDecoder):
            start = show_pieces(self.network.tokenizer, [int(body.shift(self.encoded.ids)[0, 0])])
            rest = show_pieces(self.network.tokenizer, self.encoded.answer)
            inputs = pieces[:-1] if isinstance(self.model, Classifier) else rest
            rows["decoder"] = rows["cross"] = [*start, *inputs]
            columns |= {"decoder": [*keys, *start, *inputs], "cross": columns["encoder"]}
        parts = dict.fromkeys(site.part for site in self.sites)
        return {
            part: Maps(part, rows[part], fit_names(columns[part], layers), layers)
            for part in parts
            for layers in [[None if w is None else w[0] for w in self.part_maps(recording, part)]]
        }

    def name_texts(self, recording: Recording) -> dict[str, Maps]:
        """Return the maps of the two texts of a pair that are read apart."""
        types, pieces = self.encoded.types, self.encoded.pieces
        assert types is not None
        second = int((types == 1).sum())
        begins = len(pieces) - second
        names = {"first": pieces[:begins], "second": [pieces[0], *pieces[begins:]]}
        found = self.part_maps(recording, "self")
        return {
            part: Maps(
                part, one, one, [None if w is None else w[row][:, : len(one), : len(one)] for w in found]
            )
            for row, (part, one) in enumerate(names.items())
        }

    def part_maps(self, recording: Recording, part: str) -> list[Tensor | None]:
        return [recording.maps[site.part, site.layer] for site in self.sites if site.part == part]

    def off_heads(self, view: AttentionView, part: str, layer: int) -> list[int]:
        """Return the heads of a layer that are off; the two texts of a pair share their layers."""
        return [head for name, at, head in view.off if at == layer and (name == part or self.apart)]


def fit_names(names: list[str], layers: Sequence[Tensor | None]) -> list[str]:
    width = next((w.shape[-1] for w in layers if w is not None), len(names))
    return names if len(names) == width else names[-width:]


def encode_text(network: Network, body: Body, text: str, pair: str | None) -> EncodedText:
    tokenizer = network.tokenizer
    heads = sum(site.attention.n_heads for site in find_sites(body) if site.part != "cross")
    limit = min(network.max_len, MOST_TOKENS, math.isqrt(MOST_WEIGHTS // heads))
    if body.config.pool == "apart" and pair is None:
        raise UserError("this model compares two texts: write the second one too")
    encoded = tokenizer.encode(text, pair, max_len=limit)
    ids = encoded.ids
    if (
        isinstance(body, Decoder)
        and len(ids) > 1
        and ids[-1] in (tokenizer.eos_id, tokenizer.sep_id)
        and (not network.labels)
    ):
        ids = ids[:-1]  # what is predicted comes after the text
    if not ids:
        raise UserError("the text has no tokens: there is nothing to look at")
    if max(ids) >= body.config.vocab_size:
        raise UserError("the tokenizer gives ids that the model does not have")
    types = torch.tensor([encoded.types[: len(ids)]]) if body.config.n_types > 1 else None
    return EncodedText(torch.tensor([ids]), types, show_pieces(tokenizer, ids), encoded.truncated, text, pair)


def roll_out(layers: Sequence[Tensor], off: Sequence[Sequence[int]] = ()) -> list[Tensor]:
    """Return the attention roll-out (Abnar and Zuidema 2020) up to each layer [t, t].

    A layer's matrix is the mean of the mean over the heads that are on and the residual's identity, with rows
    that sum to 1; those of the layers are multiplied. Keys of a prefix belong to no token and are left out.
    """
    product: Tensor | None = None
    rolled = []
    for i, weights in enumerate(layers):
        t = weights.shape[-2]
        mean = average_heads(weights, off[i] if i < len(off) else ())[:, -t:]
        mixed = 0.5 * mean + 0.5 * torch.eye(t)
        mixed = mixed / mixed.sum(-1, keepdim=True)
        product = mixed if product is None else mixed @ product
        rolled.append(product)
    return rolled


def average_heads(weights: Tensor, off: Sequence[int] = ()) -> Tensor:
    """Return the mean over the heads that are on [t, s]; zeros if none is."""
    if not off:
        return weights.mean(0)
    on = [head for head in range(len(weights)) if head not in off]
    return weights[on].mean(0) if on else torch.zeros_like(weights[0])


@dataclass(frozen=True)
class Answers:
    """How a raw output is read: which values are shown, and what they are called."""

    kind: str
    """classify, labels, number, ordered, token or vector."""
    names: list[str]
    pick: Callable[[Tensor], Floats]
    """Returns the values [k, m] of raw outputs [k, n]."""


def find_answers(reading: Reading, raw: Tensor, whole: Tensor) -> Answers:
    """Say how outputs are read: classes, a number, the most probable tokens of `raw`, or a vector.

    A vector is told by its cosine with `whole`, the vector of the unchanged model.
    """
    model, network = reading.model, reading.network
    if isinstance(model, Classifier):
        kind = KINDS.get(model.problem_type or "", "classify")
        words, text, pair = model.words, reading.encoded.text, reading.encoded.pair

        def classes(outputs: Tensor) -> Floats:
            values = activate(outputs.double().numpy(), kind)
            if words is not None:
                k = len(values)
                values = words.add_logits(values, [text] * k, None if pair is None else [pair] * k)
            return np.asarray(values if kind != "number" else values[:, None], np.float64)

        return Answers(
            kind, ["number"] if kind == "number" else list(network.labels or model.labels), classes
        )
    if isinstance(model, LanguageModel) and (model.kind != "masked" or reading.masked_at is not None):
        top = torch.topk(raw, min(SHOWN_TOKENS, len(raw))).indices

        def tokens(outputs: Tensor) -> Floats:
            return np.asarray(outputs.double().softmax(-1)[:, top].numpy(), np.float64)

        return Answers("token", show_pieces(network.tokenizer, top.tolist()), tokens)

    def cosine(outputs: Tensor) -> Floats:
        return np.asarray(
            torch.cosine_similarity(outputs.double(), whole.double()[None])[:, None].numpy(), np.float64
        )

    return Answers("vector", ["cosine"], cosine)


def describe_answers(answers: Answers, now: Tensor, whole: Tensor) -> dict[str, Any]:
    """Return the values now, and those of the unchanged model."""
    values, before = answers.pick(torch.stack([now, whole]))
    facts: Mapping[str, Any] = {"kind": answers.kind, "names": answers.names}
    return {**facts, "values": values.tolist(), "before": before.tolist()}
