"""Self-attention modules (projections, heads and a mask): claims of the suites `attention` and `gpt`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

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
from heedful.contracts.suite import Claim, Fingerprint
from heedful.contracts.verdicts import RefutedError

SIZES = [(1, 1, 2, 1), (1, 2, 2, 1), (1, 2, 4, 2), (1, 3, 4, 2), (2, 4, 8, 2), (2, 5, 12, 3)]
"""Batch, length, width and heads of the inputs, in the order of their size."""
ROLES = ("q", "k", "v", "o")
MODULE_OPERATIONS = {
    "self_attend": "x [b, t, d], n_heads, parameters (q_weight, q_bias, ... of q, k, v and o, as in nn.Linear), "
    "packing (how one matrix has q, k and v) and training; returns out [b, t, d]",
}
MIXES = 1e-5


def draw_module(batch: int, n: int, width: int, heads: int, seed: int = 0) -> dict[str, Any]:
    """Return x and the parameters of one module, of moderate size."""
    generator = torch.Generator().manual_seed(seed)
    parameters = {}
    for role in ROLES:
        parameters[f"{role}_weight"] = torch.randn(width, width, generator=generator) / math.sqrt(width) * 1.5
        parameters[f"{role}_bias"] = torch.randn(width, generator=generator) / 4
    x = torch.randn(batch, n, width, generator=generator)
    return {"x": x, "n_heads": heads, "parameters": parameters}


def project(x: Tensor, parameters: Mapping[str, Tensor], role: str, names: list[str]) -> Tensor:
    """Return x projected as far as the module has parameters for it."""
    if f"{role}_weight" not in names:
        return x
    y = x @ parameters[f"{role}_weight"].T
    return y + parameters[f"{role}_bias"] if f"{role}_bias" in names else y


def weigh(inputs: Inputs, names: list[str], causal: bool) -> Tensor:
    """Return the attention weights [b, h, t, t]."""
    x, heads = inputs["x"], inputs["n_heads"]
    q, k = (split(project(x, inputs["parameters"], role, names), heads) for role in "qk")
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        n = x.shape[1]
        scores = scores.masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), -math.inf)
    return scores.softmax(-1)


def split(x: Tensor, heads: int) -> Tensor:
    b, t, d = x.shape
    return x.view(b, t, heads, d // heads).transpose(1, 2)  # [b, h, t, d / h]


def reference(inputs: Inputs, names: list[str], causal: bool) -> Tensor:
    """Multi-head self-attention as torch.nn.MultiheadAttention computes it."""
    v = split(project(inputs["x"], inputs["parameters"], "v", names), inputs["n_heads"])
    mixed = (weigh(inputs, names, causal) @ v).transpose(1, 2).flatten(2)
    return project(mixed, inputs["parameters"], "o", names)


def attend(subject: Subject, inputs: Inputs) -> Tensor:
    return ask(subject, "self_attend", **inputs)


def facts_of(subject: Subject) -> Mapping[str, Any]:
    return subject.operations["self_attend"]


def find_roles(subject: Subject) -> list[str]:
    """Return the roles that can be filled; without them outputs cannot be compared."""
    names = list(facts_of(subject).get("roles", ()))
    if not names:
        raise NotApplicable("which of its parameters are q, k and v is unknown")
    return names


def is_causal(subject: Subject, packing: str | None = None) -> bool:
    """Whether the module attends causally: it says so, or its output is nearer to that."""
    causal = facts_of(subject).get("causal")
    if causal is not None:
        return bool(causal)
    inputs = draw_module(1, 4, 8, 2, seed=5)
    return leak_of(subject, inputs) < MIXES


def leak_of(subject: Subject, inputs: Inputs) -> float:
    """Return by how many nats the last token changes the (softmax of the) outputs before it."""
    changed = inputs["x"].clone()
    changed[:, -1] = changed[:, -1].roll(1, -1) * 2 + 1
    before, after = (attend(subject, {**inputs, "x": x})[:, :-1].double() for x in (inputs["x"], changed))
    if before.shape != after.shape or not before.numel():
        return 0.0
    leak = float((before.log_softmax(-1) - after.log_softmax(-1)).abs().max())
    return leak if math.isfinite(leak) else math.inf


def list_packings(subject: Subject) -> list[str | None]:
    return list(facts_of(subject).get("packings") or [None])


def choose_packing(subject: Subject, names: list[str], causal: bool) -> str | None:
    """Return the packing of q, k and v under which the module agrees best."""
    packings = list_packings(subject)
    if len(packings) == 1:
        return packings[0]
    inputs = draw_module(*SIZES[-1])
    expected = reference(inputs, names, causal)
    return min(packings, key=lambda p: relative(attend(subject, {**inputs, "packing": p}), expected))


def check_shape(subject: Subject) -> str:
    """Check [b, t, d] for several lengths, the shorter ones too."""
    problem = facts_of(subject).get("problem")
    if problem:
        raise RefutedError(f"it cannot be built: {problem}", inputs={"width": 8, "heads": 2})
    for n in (16, 5, 1):
        inputs = draw_module(2, n, 8, 2)
        got = attend(subject, {"x": inputs["x"], "n_heads": 2})
        if list(got.shape) != [2, n, 8]:
            raise RefutedError(
                f"the shape is {tuple(got.shape)} instead of {(2, n, 8)}",
                inputs={"shape of x": [2, n, 8], "n_heads": 2}, got=list(got.shape), expected=[2, n, 8],
            )  # fmt: skip
    return "the output has the shape of the input, for any length up to the longest"


def check_causality(subject: Subject) -> str:
    """Change the last token: nothing before it may change."""
    if facts_of(subject).get("causal") is False:
        raise NotApplicable("it is not causal")
    if facts_of(subject).get("causal") is None and not is_causal(subject):
        raise NotApplicable("its name does not say that it is causal, and it is not")
    leak = 0.0
    for n in (2, 3, 5, 9):
        inputs = draw_module(1, n, 8, 2, seed=n)
        leak = max(leak, leak_of(subject, inputs))
        if leak > MIXES:
            got = attend(subject, inputs)
            raise RefutedError(
                f"the future leaks into the past: {leak:.3g} nats", inputs={"x": inputs["x"], "n_heads": 2},
                got=got, expected="outputs that do not depend on later tokens",
                heat_map=draw_heat_maps({"reach of each token": measure_reach(subject, n)}, "output", "input"),
            )  # fmt: skip
    return f"the future changes the outputs of the past by {leak:.1g} nats"


def measure_reach(subject: Subject, n: int) -> Tensor:
    """Return how much each input token [column] changes each output [row]."""
    inputs = draw_module(1, n, 8, 2, seed=n)
    before = attend(subject, inputs)
    columns = []
    for i in range(n):
        x = inputs["x"].clone()
        x[:, i] += 1.0
        columns.append((attend(subject, {**inputs, "x": x}) - before)[0].abs().amax(-1))
    return torch.stack(columns, 1)


def sized_inputs(packing: str | None) -> Iterator[dict[str, Any]]:
    for sizes in SIZES:
        yield draw_module(*sizes) | {"packing": packing}


def check_agreement(subject: Subject) -> str:
    """Give the module our parameters and compare with multi-head attention in torch."""
    names = find_roles(subject)
    causal = is_causal(subject)
    packing = choose_packing(subject, names, causal)
    largest = require_agreement(
        sized_inputs(packing), lambda i: attend(subject, i), lambda i: reference(i, names, causal),
        what="with the same parameters the output differs from torch.nn.MultiheadAttention's",
        draw=lambda i, *_: draw_heat_maps({"expected weights of head 1": weigh(i, names, causal)[0, 0]}),
    )  # fmt: skip
    kind = "causal " if causal else ""
    return f"agrees with {kind}torch.nn.MultiheadAttention to {largest:.1g} (allowed {TOLERANCE:g})"


def check_batch(subject: Subject) -> str:
    """Each row of a batch must give what it gives alone."""
    inputs = draw_module(3, 4, 8, 2)
    together = attend(subject, inputs)
    for row in range(3):
        alone = attend(subject, {**inputs, "x": inputs["x"][row : row + 1]})
        if relative(together[row : row + 1], alone) > TOLERANCE:
            raise RefutedError(
                f"row {row} of a batch of 3 gives another output than alone",
                inputs={"x": inputs["x"], "n_heads": 2}, got=together[row], expected=alone[0],
            )  # fmt: skip
    return "the rows of a batch do not touch each other"


def check_repeatable(subject: Subject) -> str:
    """In evaluation mode the output must not depend on the random generator."""
    inputs = draw_module(2, 4, 8, 2)
    first, second = (attend(subject, {**inputs, "seed": seed}) for seed in (0, 1))
    if varies(first, second):
        raise RefutedError(
            "in evaluation mode the same input gives another output", inputs={"x": inputs["x"]},
            got=second, expected=first,
            hint="dropout must follow the mode: nn.Dropout, or F.dropout(..., training=self.training)",
        )  # fmt: skip
    return "dropout is off in evaluation mode"


def check_gradients(subject: Subject) -> str:
    """Compare the gradient of the input with that of the reference."""
    names = find_roles(subject)
    causal = is_causal(subject)
    packing = choose_packing(subject, names, causal)
    inputs = draw_module(2, 4, 8, 2)
    weights = torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(9))
    x = inputs["x"].clone().requires_grad_()
    out = reference({**inputs, "x": x}, names, causal)
    (expected,) = torch.autograd.grad((out * weights).sum(), x)
    got = subject.call(
        "self_attend", {**inputs, **({"packing": packing} if packing else {}),
                        "gradients": ["x"], "output_gradient": weights}
    )["grad_x"]  # fmt: skip
    if got is None or float(got.abs().max()) == 0.0:
        raise RefutedError("no gradient reaches the input", inputs={"x": inputs["x"]}, got=got, expected=expected,
                           hint="look for .detach(), .data, torch.no_grad() or a round trip through numpy")  # fmt: skip
    if relative(got, expected) > 10 * TOLERANCE:
        raise RefutedError(f"the gradient of the input differs from torch's by {difference(got, expected):.3g}",
                           inputs={"x": inputs["x"]}, got=got, expected=expected)  # fmt: skip
    return "the gradient of the input is torch's"


def check_cost(subject: Subject) -> str:
    """Fit how work and the largest tensor grow with the length."""
    lengths = (32, 64, 128)
    costs = [
        subject.call("self_attend", {"x": draw_module(1, n, 8, 2)["x"], "n_heads": 2, "measure": True})[
            "cost"
        ]
        for n in lengths
    ]
    work = fit_exponent(lengths, [c["elements"] for c in costs])
    memory = fit_exponent(lengths, [c["largest"] for c in costs])
    message = f"work grows as length^{work:.2f}, the largest tensor as length^{memory:.2f}"
    if work > 2.6 or memory > 2.4:
        raise RefutedError(f"{message}, more than the square", inputs={"lengths": list(lengths)}, got=costs)
    return message


def fingerprint_modules(subject: Subject) -> Fingerprint:
    """Outputs with given parameters, under each packing that the module may mean."""
    if "self_attend" not in subject.operations:
        return {}
    inputs = draw_module(2, 5, 12, 3, seed=3)

    def run(**more: Any) -> Any:
        outputs = [attend(subject, {**inputs, **more, "packing": p}) for p in list_packings(subject)]
        return outputs if len(outputs) > 1 else outputs[0]

    def measure_noise() -> float:
        first, second = (attend(subject, {**inputs, "seed": seed}) for seed in (0, 1))
        return float(varies(first, second))

    roles = facts_of(subject).get("roles")
    measures = {"self noise": measure_noise}
    taken = collect(measures)
    if roles and not taken.get("self noise"):
        taken |= collect({"self_attend": run})
    return taken


HINT = "with one head first, then with two: view(b, t, heads, width of a head).transpose(1, 2)"
MODULE_CLAIMS = (
    Claim("module shapes", "A module gives one output per token, as wide as the input.", check_shape, "self_attend"),
    Claim("module causality", "No later token changes an earlier output.", check_causality, "self_attend",
          "mask the scores above the diagonal, before the softmax"),
    Claim("module agreement", "With the same parameters a module's output is that of torch.nn.MultiheadAttention.",
          check_agreement, "self_attend", HINT),
    Claim("module batch", "Each row of a batch gives what it gives alone.", check_batch, "self_attend",
          "look for a view that mixes the batch with another dimension"),
    Claim("module repeatable", "In evaluation mode the same input gives the same output.", check_repeatable, "self_attend"),
    Claim("module gradients", "The gradient of a module's input is torch's.", check_gradients, "self_attend"),
    Claim("module cost", "A module's work and memory grow at most as the square of the length.", check_cost, "self_attend"),
)  # fmt: skip
