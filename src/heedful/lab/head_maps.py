"""The attention maps of a model that reads a text, and its outputs without one of its heads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heedful.attention import Mechanism, find_capable
from heedful.errors import UserError, shorten
from heedful.lab.arrays import Array
from heedful.models import Model


@dataclass(frozen=True)
class Reading:
    model: Model
    ids: Tensor
    """[1, t]"""
    types: Tensor
    pieces: list[str]
    output: str
    """What `outputs` returns, in words."""

    def outputs(self) -> Tensor:
        """Return the model's output at each token [t, n]."""
        with torch.inference_mode():
            out: Tensor = self.model(self.ids, None, self.types)
        return out[0]

    def pooled(self, outputs: Tensor) -> Tensor:
        """Return one vector for the text: the mean of the states, or the logits of the next token."""
        return outputs[-1] if self.model.config.kind == "decoder" else outputs.mean(0)


def read_text(name: str, text: str) -> Reading:
    """Load a model and its tokenizer, and encode the text; a model without maps is refused."""
    from heedful.checkpoints import load
    from heedful.checkpoints.reader import kind_of
    from heedful.text import load as load_tokenizer

    kind = kind_of(name)
    if kind not in ("encoder", "decoder"):
        raise UserError(f"{name} is an encoder-decoder; heads shows encoders and decoders")
    tokenizer = load_tokenizer(name)
    if not text.strip():
        raise UserError("the text is empty")
    encoded = tokenizer.encode(text)
    model = load(name, head="causal" if kind == "decoder" else None)
    find_mechanisms(model, name)
    if len(encoded.ids) > model.config.max_len:
        raise UserError(f"the text has {len(encoded.ids)} tokens; {name} reads {model.config.max_len}")
    if max(encoded.ids) >= model.config.vocab_size:
        raise UserError(f"the tokenizer of {name} gives ids that its model does not have")
    pieces = [shorten(piece, 20) for piece in tokenizer.pieces(encoded.ids)]
    ids, types = torch.tensor([encoded.ids]), torch.tensor([encoded.types])
    output = "next-token logits" if kind == "decoder" else "last states"
    return Reading(model, ids, types, pieces, output)


def find_mechanisms(model: Model, name: str) -> list[Mechanism]:
    """Return the mechanism of each layer, in order; one without weights is refused."""
    mechanisms = [part for part in model.modules() if isinstance(part, Mechanism)]
    if not mechanisms:
        why = "runs on its own attention code, which heads cannot watch"
        raise UserError(f"{name} {why}; a family of ours can")
    if not mechanisms[0].explicit_weights:
        others = ", ".join(find_capable("explicit_weights"))
        why = "attention never makes its weights, so there is no map"
        raise UserError(f"{mechanisms[0].name} {why}; these do: {others}")
    return mechanisms


@dataclass
class LayerMaps:
    weights: Tensor
    """[h, t, s]"""
    apart: float
    """The largest distance of weights times values from the output, over the largest output."""


def record_maps(reading: Reading) -> tuple[Tensor, list[LayerMaps]]:
    """Return the outputs, and each layer's weights from the q and k that it was given."""
    seen: list[LayerMaps] = []

    def look(mechanism: Mechanism, inputs: tuple[Any, ...], out: Tensor) -> None:
        q, k, v, mask, bias = inputs
        weights = mechanism.weights(q, k, mask, bias)
        apart = (weights @ v - out).abs().max() / out.abs().max().clamp_min(1e-30)
        seen.append(LayerMaps(weights[0], float(apart)))

    hooks = [m.register_forward_hook(look) for m in find_mechanisms(reading.model, "the model")]
    try:
        return reading.outputs(), seen
    finally:
        for hook in hooks:
            hook.remove()


@contextmanager
def remove_head(mechanism: Mechanism, head: int) -> Iterator[None]:
    """Set one head's output to zero inside the `with`."""

    def silence(mechanism: Mechanism, inputs: tuple[Any, ...], out: Tensor) -> Tensor:
        out = out.clone()
        out[:, head] = 0.0
        return out

    hook = mechanism.register_forward_hook(silence)
    try:
        yield
    finally:
        hook.remove()


def entropy(weights: Array) -> Array:
    """Return the mean over the queries of -sum w ln w, for maps [..., t, s]: 0 for one key, ln s at most."""
    positive = np.where(weights > 0, weights, 1.0)
    spread: Array = -(positive * np.log(positive)).sum(-1).mean(-1)
    return spread


def distance(weights: Array) -> Array:
    """Return the mean over the queries of sum w |t - s|, in tokens."""
    t, s = weights.shape[-2:]
    far: Array = (weights * np.abs(np.arange(t)[:, None] - np.arange(s))).sum(-1).mean(-1)
    return far


def mean_weights(weights: Array) -> dict[str, float]:
    """Return the mean weight on the token itself, its neighbors, and the two ends, of one map [t, s].

    The mean of a neighbor is over the tokens that have one.
    """
    return {
        "itself": float(np.diagonal(weights).mean()),
        "the one before": mean(np.diagonal(weights, -1)),
        "the next": mean(np.diagonal(weights, 1)),
        "the first": float(weights[:, 0].mean()),
        "the last": float(weights[:, -1].mean()),
    }


def mean(values: Array) -> float:
    return float(values.mean()) if values.size else 0.0
