"""The heads of BERT that are in use: which state a classifier reads, and what is before the output layer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.contracts.suites.transformer import apply, predict_tokens

Head = Callable[[Tensor, Tensor, Mapping[str, Tensor]], Tensor]
MIDDLES: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "GELU": F.gelu,
    "GELU by tanh": lambda x: F.gelu(x, approximate="tanh"),
    "ReLU": F.relu,
}
POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "the state of [CLS]": lambda states, real: states[:, 0],
    "the mean of real tokens": lambda states, real: (
        (states * real[..., None]).sum(1) / real.sum(1, keepdim=True).clamp_min(1)
    ),
}


def normalize_head(x: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
    if "head_norm_weight" not in parameters:
        return x
    return F.layer_norm(
        x, x.shape[-1:], parameters["head_norm_weight"], parameters.get("head_norm_bias"), 1e-5
    )


def make_classifier(pooling: str, layers: tuple[str, ...], middle: str) -> Head:
    """Return a head that pools, goes through layers with an activation each, and ends in the classes."""

    def head(states: Tensor, real: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        x = POOLINGS[pooling](states, real)
        for layer in layers:
            activation = MIDDLES["tanh"] if layer == "pool" else MIDDLES[middle]
            x = activation(apply(x, parameters, layer))
        return apply(normalize_head(x, parameters), parameters, "class")

    return head


def make_masked_head(middle: str | None) -> Head:
    """Return a head over tokens, with a layer before the output if there is an activation."""

    def head(states: Tensor, real: Tensor, parameters: Mapping[str, Tensor]) -> Tensor:
        x = states if middle is None else MIDDLES[middle](apply(states, parameters, "transform"))
        return predict_tokens(normalize_head(x, parameters), parameters)

    return head


def list_heads(operation: str, names: Collection[str]) -> dict[str, Head]:
    """Return the heads that a model with these parameters may have, by what they are called."""
    if operation == "encode":
        return {"its states": lambda states, real, parameters: states}
    if operation == "predict_masked":
        if "transform_weight" in names:
            return {f"a layer with {m} before the output": make_masked_head(m) for m in MIDDLES}
        return {"the output layer": make_masked_head(None)}
    chains: list[tuple[str, ...]] = [("transform",)] if "transform_weight" in names else [()]
    if "pool_weight" in names:
        chains += [("pool", *chain) for chain in chains]
    found: dict[str, Head] = {}
    for pooling in POOLINGS:
        for chain in chains:
            for middle in MIDDLES if "transform" in chain else ("tanh",):
                words = [
                    pooling,
                    *("BERT's pooler" if part == "pool" else f"a layer with {middle}" for part in chain),
                ]
                found[" and ".join(words)] = make_classifier(pooling, chain, middle)
    return found
