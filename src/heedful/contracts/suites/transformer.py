"""A small Transformer in plain torch, under any of the usual conventions: what models are compared with."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

SIZES = {"vocabulary": 29, "width": 12, "heads": 3, "layers": 2, "length": 32, "inner": 48, "labels": 5}
"""The sizes of the models that are built for a check; no two of them can be confused."""
ACTIVATIONS = {"gelu": F.gelu, "gelu by tanh": lambda x: F.gelu(x, approximate="tanh"), "relu": F.relu}
PLACEMENTS = ("before", "after")


@dataclass(frozen=True)
class Convention:
    """What right implementations may choose."""

    placement: str = "before"
    """Whether the norms are before attention and feed-forward (GPT-2) or after the residual sum (BERT)."""
    activation: str = "gelu"
    norm: str = "layer"
    """`layer` or `rms`."""

    def __str__(self) -> str:
        return f"norms {self.placement} each part, {self.activation}"


def list_conventions(names: Collection[str]) -> list[Convention]:
    """Return the conventions that a model with these parameters may have."""
    norms = ["layer"] if any(n.endswith("norm1_bias") for n in names) else ["layer", "rms"]
    return [Convention(*choice) for choice in product(PLACEMENTS, ACTIVATIONS, norms)]


def draw_block(width: int = 12, inner: int = 48, seed: int = 0) -> dict[str, Tensor]:
    """Return the parameters of one block by their roles, of moderate size."""
    generator = torch.Generator().manual_seed(seed)

    def matrix(rows: int, columns: int) -> Tensor:
        return torch.randn(rows, columns, generator=generator) / math.sqrt(columns) * 1.5

    def vector(n: int, mean: float = 0.0) -> Tensor:
        return mean + torch.randn(n, generator=generator) / 4

    parameters: dict[str, Tensor] = {}
    for role in "qkvo":
        parameters |= {f"{role}_weight": matrix(width, width), f"{role}_bias": vector(width)}
    parameters |= {"ff_in_weight": matrix(inner, width), "ff_in_bias": vector(inner)}
    parameters |= {"ff_out_weight": matrix(width, inner), "ff_out_bias": vector(width)}
    for norm in ("norm1", "norm2"):
        parameters |= {f"{norm}_weight": vector(width, 1.0), f"{norm}_bias": vector(width)}
    return parameters


def draw_model(seed: int = 0) -> dict[str, Tensor]:
    """Return the parameters of a whole model and of the heads it may have, by their roles."""
    generator = torch.Generator().manual_seed(seed + 99)
    width, vocabulary = SIZES["width"], SIZES["vocabulary"]

    def draw(*shape: int, scale: float = 1.0, mean: float = 0.0) -> Tensor:
        return mean + torch.randn(*shape, generator=generator) * scale

    parameters = {
        "tokens": draw(vocabulary, width),
        "positions": draw(SIZES["length"], width, scale=0.7),
        "types": draw(2, width, scale=0.3),
        "head_weight": draw(vocabulary, width, scale=0.5),
        "head_bias": draw(vocabulary, scale=0.25),
        "class_weight": draw(SIZES["labels"], width, scale=0.5),
        "class_bias": draw(SIZES["labels"], scale=0.25),
        "pool_weight": draw(width, width, scale=0.4),
        "pool_bias": draw(width, scale=0.25),
        "transform_weight": draw(width, width, scale=0.4),
        "transform_bias": draw(width, scale=0.25),
    }
    for norm in ("embed_norm", "final_norm", "head_norm"):
        parameters[f"{norm}_weight"] = draw(width, scale=0.25, mean=1.0)
        parameters[f"{norm}_bias"] = draw(width, scale=0.25)
    for layer in range(SIZES["layers"]):
        block = draw_block(width, SIZES["inner"], seed + layer + 1)
        parameters |= {f"layer{layer}.{name}": value for name, value in block.items()}
    return parameters


def normalize(x: Tensor, parameters: Mapping[str, Tensor], name: str, convention: Convention) -> Tensor:
    """Return x normed; x itself if there is no such norm."""
    weight = parameters.get(f"{name}_weight")
    if weight is None:
        return x
    if convention.norm == "rms":
        return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * weight
    return F.layer_norm(x, x.shape[-1:], weight, parameters.get(f"{name}_bias"), 1e-5)


def apply(x: Tensor, parameters: Mapping[str, Tensor], name: str) -> Tensor:
    """Return x through a linear layer, as far as it has parameters."""
    return F.linear(x, parameters[f"{name}_weight"], parameters.get(f"{name}_bias"))


def attend(x: Tensor, parameters: Mapping[str, Tensor], heads: int, allowed: Tensor) -> Tensor:
    """Multi-head self-attention; `allowed` [b, 1, t, t] or [t, t] is True where a query sees a key."""
    b, t, d = x.shape
    q, k, v = (apply(x, parameters, role).view(b, t, heads, d // heads).transpose(1, 2) for role in "qkv")
    scores = (q @ k.mT / math.sqrt(d // heads)).masked_fill(~allowed, -math.inf)
    return apply((scores.softmax(-1) @ v).transpose(1, 2).flatten(2), parameters, "o")


def run_block(
    x: Tensor, parameters: Mapping[str, Tensor], heads: int, allowed: Tensor, convention: Convention
) -> Tensor:
    """Return the output of one block."""

    def feed_forward(y: Tensor) -> Tensor:
        hidden: Tensor = ACTIVATIONS[convention.activation](apply(y, parameters, "ff_in"))
        return apply(hidden, parameters, "ff_out")

    def norm(y: Tensor, name: str) -> Tensor:
        return normalize(y, parameters, name, convention)

    if convention.placement == "before":
        x = x + attend(norm(x, "norm1"), parameters, heads, allowed)
        return x + feed_forward(norm(x, "norm2"))
    x = norm(x + attend(x, parameters, heads, allowed), "norm1")
    return norm(x + feed_forward(x), "norm2")


def see(length: int, causal: bool, real: Tensor | None = None) -> Tensor:
    """Return where a query sees a key: the past if causal, real tokens [b, t] if there is padding."""
    allowed = torch.ones(length, length, dtype=torch.bool)
    allowed = allowed.tril() if causal else allowed
    return allowed if real is None else allowed & real[:, None, None, :]


def run_model(
    ids: Tensor,
    parameters: Mapping[str, Tensor],
    convention: Convention,
    *,
    causal: bool,
    real: Tensor | None = None,
) -> Tensor:
    """Return the last states [b, t, d] of a model with those parameters that are given."""
    n = ids.shape[1]
    x = parameters["tokens"][ids]
    if "positions" in parameters:
        x = x + parameters["positions"][:n]
    if "types" in parameters:
        x = x + parameters["types"][0]
    x = normalize(x, parameters, "embed_norm", convention)
    allowed = see(n, causal, real)
    for layer in range(count_layers(parameters)):
        x = run_block(x, select_block(parameters, layer), SIZES["heads"], allowed, convention)
    return normalize(x, parameters, "final_norm", convention)


def select_block(parameters: Mapping[str, Tensor], layer: int) -> dict[str, Tensor]:
    prefix = f"layer{layer}."
    return {name.removeprefix(prefix): p for name, p in parameters.items() if name.startswith(prefix)}


def count_layers(names: Collection[str]) -> int:
    return len({name.partition(".")[0] for name in names if name.startswith("layer")})


def predict_tokens(states: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
    """Return logits [b, t, vocabulary]; without an output matrix that of the token embeddings is used."""
    weight = parameters.get("head_weight", parameters["tokens"])
    return F.linear(states, weight, parameters.get("head_bias"))


def draw_ids(batch: int, length: int, seed: int = 0) -> Tensor:
    """Return token ids; no row has a token twice, as far as the vocabulary reaches."""
    generator = torch.Generator().manual_seed(seed + 7)
    rows = [torch.randperm(SIZES["vocabulary"] - 1, generator=generator)[:length] + 1 for _ in range(batch)]
    return torch.stack(rows)


def select(parameters: Mapping[str, Tensor], names: Collection[str]) -> dict[str, Any]:
    """Return the parameters that a model has."""
    return {name: value for name, value in parameters.items() if name in names}
