"""Attention: a function of queries, keys, values and a mask, and modules with projections and heads."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from heedful.attention.mask import masked_softmax
from heedful.contracts.asking import (
    TOLERANCE,
    Inputs,
    ask,
    collect,
    difference,
    fit_exponent,
    relative,
    require_agreement,
    varies,
)
from heedful.contracts.heat_map import draw_heat_maps
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint, Suite
from heedful.contracts.suites.additive import ADDITIVE_CLAIMS, ADDITIVE_OPERATIONS, fingerprint_additive
from heedful.contracts.suites.drawn import causal_mask, draw, shapes
from heedful.contracts.suites.self_attention import MODULE_CLAIMS, MODULE_OPERATIONS, fingerprint_modules
from heedful.contracts.verdicts import RefutedError

SIZES = [(1, 2, 1), (1, 2, 2), (1, 3, 2), (2, 3, 4), (2, 5, 4), (2, 7, 6)]
"""Batch, length and width of the inputs, in the order of their size."""


def reference(inputs: Inputs) -> Tensor:
    """Scaled dot-product attention, as torch computes it; computed here in the same number format."""
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    out: Tensor = weights_of(q, k, inputs.get("mask")) @ v
    return out


def weights_of(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    return masked_softmax(q @ k.mT / math.sqrt(q.shape[-1]), mask)


def attend(subject: Subject, inputs: Inputs) -> Tensor:
    return ask(subject, "attend", **inputs)


def attention_weights(subject: Subject, q: Tensor, k: Tensor, mask: Tensor | None = None) -> Tensor:
    """Return the weights [b, t, s], read off with values that are the unit vectors."""
    s = k.shape[1]
    unit = torch.eye(s, dtype=q.dtype).expand(len(q), s, s).clone()
    return ask(subject, "attend", q=q, k=k, v=unit, mask=mask)


def draw_weights(subject: Subject, inputs: Inputs) -> str | None:
    """Draw the weights of the first row as they are and as they should be."""
    q, k, mask = inputs["q"][:1], inputs["k"][:1], inputs.get("mask")
    mask = None if mask is None else mask[:1]
    try:
        got = attention_weights(subject, q, k, mask)
    except Exception:  # a drawing is no reason for another error
        return None
    return (
        draw_heat_maps({"your weights": got[0], "expected": weights_of(q, k, mask)[0]})
        if got.dim() == 3
        else None
    )


def check_shape(subject: Subject) -> str:
    """Check one output row per query, as wide as the values, for other lengths of keys."""
    inputs = draw(2, 3, 5, 4)
    inputs["v"] = torch.cat([inputs["v"], inputs["v"][..., :2]], dim=-1)
    try:
        out = attend(subject, inputs)
    except NotApplicable:
        raise
    except Exception as error:
        inputs = draw(2, 3, 3, 4)
        out = attend(subject, inputs)
        if out.shape != (2, 3, 4):
            raise RefutedError(
                f"the shape is {tuple(out.shape)} instead of (2, 3, 4)",
                inputs=shapes(inputs),
                got=list(out.shape),
            ) from error
        return "right for queries, keys and values of one shape; other lengths of keys raise an error"
    expected = [2, 3, 6]
    if list(out.shape) != expected:
        raise RefutedError(
            f"the shape is {tuple(out.shape)} instead of {tuple(expected)}",
            inputs=shapes(inputs), got=list(out.shape), expected=expected,
        )  # fmt: skip
    return "one row per query, as wide as the values"


def check_weights(subject: Subject) -> str:
    """Check that each output is an average of the values: weights at least 0 that sum to 1."""
    worst = 0.0
    for batch, n, width in SIZES:
        for mask in (None, causal_mask(n, batch)) if has_mask(subject) else (None,):
            q, k, _ = draw(batch, n, n, width).values()
            weights = attention_weights(subject, q, k, mask)
            sums = weights.sum(-1)
            worst = max(worst, float((sums - 1).abs().max()))
            if worst > TOLERANCE or float(weights.min()) < -TOLERANCE:
                inputs = {"q": q, "k": k, "mask": mask}
                raise RefutedError(
                    f"the weights of a query sum to {float(sums.flatten()[(sums - 1).abs().argmax()]):.4g}",
                    inputs=inputs, got=weights, expected=weights_of(q, k, mask),
                    heat_map=draw_weights(subject, inputs),
                )  # fmt: skip
    return f"each row of weights sums to 1 (to {worst:.1g})"


def has_mask(subject: Subject) -> bool:
    return bool(subject.operations["attend"].get("masks", True))


def sized_inputs(masked: bool) -> Iterator[dict[str, Any]]:
    """Yield inputs of growing size, masked causally or not at all."""
    for batch, n, width in SIZES:
        yield draw(batch, n, n, width) | ({"mask": causal_mask(n, batch)} if masked else {})


def check_agreement(subject: Subject) -> str:
    """Compare with softmax(q k / sqrt(d)) v."""
    largest = require_agreement(
        sized_inputs(False), lambda i: attend(subject, i), reference, what="the output differs from torch's",
        draw=lambda i, *_: draw_weights(subject, i),
    )  # fmt: skip
    return f"agrees with torch.nn.functional.scaled_dot_product_attention to {largest:.1g} (allowed {TOLERANCE:g})"


def check_masked_agreement(subject: Subject) -> str:
    """Compare with torch under a causal mask."""
    require_mask(subject)
    largest = require_agreement(
        sized_inputs(True), lambda i: attend(subject, i), reference,
        what="under a causal mask the output differs from torch's", draw=lambda i, *_: draw_weights(subject, i),
    )  # fmt: skip
    return f"agrees with torch under a causal mask to {largest:.1g} (allowed {TOLERANCE:g})"


def require_mask(subject: Subject) -> None:
    if not has_mask(subject):
        raise NotApplicable("it takes no mask")


def check_causality(subject: Subject) -> str:
    """Change the future's keys, and measure by how many nats the weights of the past change."""
    require_mask(subject)
    leak = 0.0
    for n in (2, 3, 5, 8):
        q, k, _ = draw(1, n, n, 4, seed=n).values()
        before = attention_weights(subject, q, k, causal_mask(n))
        changed = k.clone()
        changed[:, n - 1] += 2.0
        after = attention_weights(subject, q, changed, causal_mask(n))
        future = before[0].triu(1).abs().sum(-1).max().item()
        leak = max(leak, leak_in_nats(before[0], after[0], n), -math.log(max(1e-9, 1 - min(future, 1.0))))
        if leak > 1e-5:
            inputs = {"q": q, "k": k, "mask": causal_mask(n)}
            raise RefutedError(
                f"the future leaks into the past: {leak:.3g} nats", inputs=inputs, got=before,
                expected=weights_of(q, k, causal_mask(n)), heat_map=draw_weights(subject, inputs),
            )  # fmt: skip
    return f"the future changes the weights of the past by {leak:.1g} nats"


def leak_in_nats(before: Tensor, after: Tensor, n: int) -> float:
    """Return the largest change of the logarithm of a weight of the past when the last key changes."""
    past = torch.ones(n, n, dtype=torch.bool).tril()
    past[n - 1] = False
    a, b = (x[past].double().clamp_min(1e-12).log() for x in (before, after))
    return float((a - b).abs().max()) if len(a) else 0.0


def check_padding(subject: Subject) -> str:
    """Put large numbers into masked keys and values: the outputs must be those without them."""
    require_mask(subject)
    for real, padding in ((1, 1), (2, 1), (3, 3), (5, 4)):
        inputs: dict[str, Any] = draw(1, real, real, 4, seed=real)
        expected = attend(subject, inputs)
        wide = {name: torch.cat([x, torch.full((1, padding, 4), 100.0)], 1) for name, x in inputs.items()}
        allowed = torch.zeros(1, real + padding, real + padding, dtype=torch.bool)
        allowed[:, :, :real] = True
        got = attend(subject, {**wide, "mask": allowed})[:, :real]
        if relative(got, expected) > TOLERANCE:
            raise RefutedError(
                f"padding changes the output of real tokens by {difference(got, expected):.3g}",
                inputs={**wide, "mask": allowed}, got=got, expected=expected,
                heat_map=draw_weights(subject, {**wide, "mask": allowed}),
            )  # fmt: skip
    return "masked keys and values change nothing"


def check_batch(subject: Subject) -> str:
    """Each row of a batch must give what it gives alone."""
    inputs = draw(3, 4, 4, 4)
    together = attend(subject, inputs)
    for row in range(3):
        alone = attend(subject, {name: x[row : row + 1] for name, x in inputs.items()})
        if relative(together[row : row + 1], alone) > TOLERANCE:
            raise RefutedError(
                "a row of a batch changes another row", inputs=inputs, got=together[row], expected=alone[0]
            )
    return "the rows of a batch do not touch each other"


def check_large(subject: Subject) -> str:
    """Use scores of some hundreds, as real models have."""
    inputs = draw(1, 3, 3, 4)
    inputs["q"] = inputs["q"] * 300
    got, expected = attend(subject, inputs), reference(inputs)
    if relative(got, expected) > 1e-3:
        raise RefutedError(
            f"with scores of some hundreds {describe(got)}", inputs=inputs, got=got, expected=expected,
            hint="subtract the largest score of each row before exp, or use torch.softmax",
        )  # fmt: skip
    return "scores of some hundreds do no harm"


def describe(out: Tensor) -> str:
    return "the output is wrong" if out.isfinite().all() else "the output is not finite"


def check_inputs(subject: Subject) -> str:
    """The function must not change its arguments; a second call gives the same."""
    inputs = draw(2, 4, 4, 4)
    first, second = attend(subject, inputs), attend(subject, {**inputs, "seed": 1})
    if varies(first, second):
        raise RefutedError(
            "the same input gives another output the second time", inputs=inputs, got=second, expected=first,
            hint="is dropout on although the module is in evaluation mode?",
        )  # fmt: skip
    return "the same input gives the same output"


def check_gradients(subject: Subject) -> str:
    """Compare the gradients of q, k and v with torch's."""
    inputs = draw(2, 4, 4, 4)
    weights = torch.randn(2, 4, 4, generator=torch.Generator().manual_seed(9))
    leaves = {name: x.clone().requires_grad_() for name, x in inputs.items()}
    expected = torch.autograd.grad((reference(leaves) * weights).sum(), list(leaves.values()))
    answer = subject.call("attend", {**inputs, "gradients": ["q", "k", "v"], "output_gradient": weights})
    for name, right in zip("qkv", expected, strict=True):
        got = answer[f"grad_{name}"]
        if got is None or float(got.abs().max()) == 0.0:
            raise RefutedError(f"no gradient reaches {name}", inputs=inputs, got=got, expected=right,
                               hint="look for .detach(), .data, torch.no_grad() or a round trip through numpy")  # fmt: skip
        if relative(got, right) > 10 * TOLERANCE:
            raise RefutedError(f"the gradient of {name} differs from torch's by {difference(got, right):.3g}",
                               inputs=inputs, got=got, expected=right)  # fmt: skip
    return "gradients reach q, k and v, and agree with torch's"


def check_cost(subject: Subject) -> str:
    """Fit how work and the largest tensor grow with the length."""
    lengths = (16, 32, 64)
    costs = [subject.call("attend", {**draw(1, n, n, 8), "measure": True})["cost"] for n in lengths]
    work = fit_exponent(lengths, [c["elements"] for c in costs])
    memory = fit_exponent(lengths, [c["largest"] for c in costs])
    message = f"work grows as length^{work:.2f}, the largest tensor as length^{memory:.2f}"
    if work > 2.6 or memory > 2.4:
        raise RefutedError(f"{message}, more than the square", inputs={"lengths": list(lengths)}, got=costs)
    return message


def fingerprint(subject: Subject) -> Fingerprint:
    """Outputs on fixed inputs, plain and masked, which tell known mistakes apart."""
    inputs = draw(2, 4, 4, 6, seed=3)
    generator = torch.Generator().manual_seed(4)
    uneven = torch.rand(2, 4, 4, generator=generator) < 0.5
    uneven |= torch.eye(4, dtype=torch.bool)
    masks = {"causal": causal_mask(4, 2), "uneven": uneven}
    noise = collect({"attend noise": lambda: measure_noise(subject, inputs)})
    measures = {} if noise.get("attend noise") else {"attend": partial(attend, subject, inputs)}
    if measures and "attend" in subject.operations and has_mask(subject):
        for name, mask in masks.items():
            measures[f"attend {name}"] = partial(attend, subject, {**inputs, "mask": mask})
    return {**noise, **collect(measures), **fingerprint_additive(subject), **fingerprint_modules(subject)}


def measure_noise(subject: Subject, inputs: Inputs) -> float:
    """Return 1 if the random generator changes the output."""
    first, second = (attend(subject, {**inputs, "seed": seed}) for seed in (0, 1))
    return float(varies(first, second))


SUITE = Suite(
    "attention",
    "attention: functions of q, k, v and a mask, and modules with projections and heads",
    {
        "attend": "q [b, t, d], k [b, s, d], v [b, s, e] and, if there is one, mask [b, t, s], True = attend; "
        "returns out [b, t, e]",
        **ADDITIVE_OPERATIONS,
        **MODULE_OPERATIONS,
    },
    (
        Claim("shapes", "The output has one row per query, as wide as the values.", check_shape, "attend"),
        Claim("weights", "Each output is an average of the values: its weights are at least 0 and sum to 1.",
              check_weights, "attend", "the softmax goes over the keys (the last dimension), after the mask"),
        Claim("agreement", "Without a mask the output is softmax(q k / sqrt(d)) v, as torch computes it.",
              check_agreement, "attend", "look at the scale (the width of one head) and at what is transposed"),
        Claim("masked agreement", "Under a causal mask the output is torch's.", check_masked_agreement, "attend",
              "scores of masked keys are minus infinity before the softmax"),
        Claim("causality", "With a causal mask no key of the future changes a weight of the past.",
              check_causality, "attend", "scores of masked keys are minus infinity before the softmax"),
        Claim("padding", "What is in masked keys and values changes nothing.", check_padding, "attend",
              "scores of masked keys are minus infinity before the softmax"),
        Claim("batch", "Each row of a batch gives what it gives alone.", check_batch, "attend",
              "look for a reshape or a softmax that mixes the first dimension with another"),
        Claim("large scores", "Scores of some hundreds give finite, right outputs.", check_large, "attend"),
        Claim("repeatable", "The same input gives the same output.", check_inputs, "attend"),
        Claim("gradients", "Gradients reach q, k and v, and are torch's.", check_gradients, "attend"),
        Claim("cost", "Work and memory grow at most as the square of the length.", check_cost, "attend",
              "a loop that does the whole product for each query costs the cube"),
        *ADDITIVE_CLAIMS,
        *MODULE_CLAIMS,
    ),
    fingerprint,
)  # fmt: skip
