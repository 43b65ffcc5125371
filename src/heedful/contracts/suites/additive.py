"""Additive attention (Bahdanau et al. 2015): claims of the suite `attention`."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from heedful.attention.mask import masked_softmax
from heedful.contracts.asking import TOLERANCE, Inputs, ask, collect, difference, relative, require_agreement
from heedful.contracts.heat_map import draw_heat_maps
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint
from heedful.contracts.suites.drawn import causal_mask, draw
from heedful.contracts.verdicts import RefutedError

SIZES = [(1, 2, 2), (1, 3, 2), (2, 3, 4), (2, 5, 4)]
"""Batch, length and width of the inputs, in the order of their size."""
ADDITIVE_OPERATIONS = {
    "attend_additive": "q, k and v [b, n, d], mask [b, n, n] if there is one, matrix [d, d] (symmetric, for "
    "queries and for keys) and vector [d]; returns out [b, n, d] with scores vector . tanh(matrix (q + k))",
}


def draw_inputs(batch: int, n: int, width: int, seed: int = 0, masked: bool = False) -> dict[str, Any]:
    """Return q, k, v, a symmetric matrix for queries and keys, and the vector."""
    generator = torch.Generator().manual_seed(seed + 17)
    half = torch.randn(width, width, generator=generator)
    inputs: dict[str, Any] = draw(batch, n, n, width, seed)
    inputs |= {"matrix": (half + half.T) / 2, "vector": torch.randn(width, generator=generator)}
    return inputs | ({"mask": causal_mask(n, batch)} if masked else {})


def weights_of(inputs: Inputs) -> Tensor:
    matrix = inputs["matrix"]
    q, k = inputs["q"] @ matrix, inputs["k"] @ matrix
    scores = torch.tanh(q[:, :, None] + k[:, None]) @ inputs["vector"]  # [b, t, s]
    return masked_softmax(scores, inputs.get("mask"))


def reference(inputs: Inputs) -> Tensor:
    out: Tensor = weights_of(inputs) @ inputs["v"]
    return out


def attend(subject: Subject, inputs: Inputs) -> Tensor:
    return ask(subject, "attend_additive", **inputs)


def read_weights(subject: Subject, inputs: Inputs) -> Tensor:
    """Return the weights, read off with values that are the unit vectors; the length must be the width."""
    n = inputs["k"].shape[1]
    unit = torch.eye(n).expand(len(inputs["q"]), n, n).clone()
    return attend(subject, {**inputs, "v": unit})


def sized_inputs(masked: bool) -> Iterator[dict[str, Any]]:
    for batch, n, width in SIZES:
        yield draw_inputs(batch, n, width, masked=masked)


def check_agreement(subject: Subject, masked: bool = False) -> str:
    """Compare with softmax(vector . tanh(matrix (q + k))) v."""
    if masked:
        require_mask(subject)
    largest = require_agreement(
        sized_inputs(masked), lambda i: attend(subject, i), reference,
        what="the output differs from softmax(w . tanh(W q + W k)) v" + (" under a causal mask" if masked else ""),
    )  # fmt: skip
    return f"agrees to {largest:.1g} (allowed {TOLERANCE:g})"


def require_mask(subject: Subject) -> None:
    if not subject.operations["attend_additive"].get("masks", True):
        raise NotApplicable("it takes no mask")


def check_causality(subject: Subject) -> str:
    """Change the future's keys, and measure by how many nats the weights of the past change."""
    require_mask(subject)
    leak = 0.0
    for n in (2, 3, 5):
        inputs = draw_inputs(1, n, n, seed=n, masked=True)
        changed = inputs["k"].clone()
        changed[:, n - 1] += 2.0
        past = torch.ones(n, n, dtype=torch.bool).tril()
        past[n - 1] = False
        before, after = (read_weights(subject, {**inputs, "k": k})[0] for k in (inputs["k"], changed))
        logs = [x[past].double().clamp_min(1e-12).log() for x in (before, after)]
        future = min(float(before.triu(1).abs().sum(-1).max()), 1.0)
        leak = max(leak, float((logs[0] - logs[1]).abs().max()), -math.log(max(1e-9, 1 - future)))
        if leak > 1e-5:
            expected = weights_of(inputs)
            raise RefutedError(
                f"the future leaks into the past: {leak:.3g} nats", inputs=inputs, got=before, expected=expected,
                heat_map=draw_heat_maps({"your weights": before, "expected": expected[0]}),
            )  # fmt: skip
    return f"the future changes the weights of the past by {leak:.1g} nats"


def check_padding(subject: Subject) -> str:
    """Put large numbers into masked keys and values: the outputs must be those without them."""
    require_mask(subject)
    for real, padding in ((1, 1), (2, 1), (3, 3)):
        inputs = draw_inputs(1, real, 4, seed=real)
        expected = attend(subject, inputs)
        wide = {n: torch.cat([inputs[n], torch.full((1, padding, 4), 50.0)], 1) for n in ("q", "k", "v")}
        allowed = torch.zeros(1, real + padding, real + padding, dtype=torch.bool)
        allowed[:, :, :real] = True
        inputs = {**inputs, **wide, "mask": allowed}
        got = attend(subject, inputs)[:, :real]
        if relative(got, expected) > TOLERANCE:
            raise RefutedError(
                f"padding changes the output of real tokens by {difference(got, expected):.3g}",
                inputs=inputs, got=got, expected=expected,
            )  # fmt: skip
    return "masked keys and values change nothing"


def fingerprint_additive(subject: Subject) -> Fingerprint:
    """Outputs on fixed inputs, plain and masked."""
    if "attend_additive" not in subject.operations:
        return {}
    measures = {"additive": lambda: attend(subject, draw_inputs(2, 4, 6, seed=3))}
    if subject.operations["attend_additive"].get("masks", True):
        measures["additive causal"] = lambda: attend(subject, draw_inputs(2, 4, 6, seed=3, masked=True))
    return collect(measures)


HINT = "scores of masked keys are minus infinity before the softmax"
ADDITIVE_CLAIMS = (
    Claim("additive agreement", "Additive attention is softmax(w . tanh(W q + U k)) v.", check_agreement, "attend_additive",
          "every query meets every key: [b, t, 1, d] + [b, 1, s, d], then tanh, then the vector"),
    Claim("additive masked agreement", "Under a causal mask so is its output.",
          lambda subject: check_agreement(subject, masked=True), "attend_additive", HINT),
    Claim("additive causality", "With a causal mask no key of the future changes a weight of the past.",
          check_causality, "attend_additive", HINT),
    Claim("additive padding", "What is in masked keys and values changes nothing.", check_padding, "attend_additive", HINT),
)  # fmt: skip
