"""Transformer blocks: attention, feed-forward, residual connections and norms; for suites `bert` and `gpt`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from heedful.contracts.asking import (
    TOLERANCE,
    Inputs,
    ask,
    choose_convention,
    collect,
    difference,
    relative,
    require_agreement,
    varies,
)
from heedful.contracts.heat_map import draw_heat_maps
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint
from heedful.contracts.suites.transformer import (
    Convention,
    draw_block,
    list_conventions,
    run_block,
    see,
    select,
)
from heedful.contracts.verdicts import RefutedError

BLOCK_OPERATIONS = {
    "block": "x [b, t, d], n_heads, mask [b, t] (True = real token; absent in a causal block), parameters by role "
    "(q, k, v, o, ff_in, ff_out, norm1, norm2, each _weight and _bias) and packing; returns out [b, t, d]",
}
LENGTHS = [(1, 1), (1, 2), (1, 3), (2, 4), (2, 6)]
"""Batch and length of the inputs, in the order of their size."""
MIXES = 1e-5
WIDTH, HEADS = 12, 3


def draw_input(batch: int, n: int, causal: bool, seed: int = 0, padded: bool = True) -> dict[str, Any]:
    """Return x, the parameters of a block, and a mask with one padded row unless the block is causal."""
    x = torch.randn(batch, n, WIDTH, generator=torch.Generator().manual_seed(seed + 31))
    inputs: dict[str, Any] = {"x": x, "n_heads": HEADS, "parameters": draw_block(WIDTH, 4 * WIDTH, seed + 5)}
    if not causal:
        inputs["mask"] = torch.ones(batch, n, dtype=torch.bool)
        if padded and batch > 1:
            inputs["mask"][0, n - 1 :] = False
    return inputs


def run(subject: Subject, inputs: Inputs) -> Tensor:
    return ask(subject, "block", **inputs)


def facts_of(subject: Subject) -> Mapping[str, Any]:
    return subject.operations["block"]


def find_roles(subject: Subject) -> list[str]:
    """Return the roles that can be filled; without them outputs cannot be compared."""
    names = list(facts_of(subject).get("roles", ()))
    if not {"q_weight", "o_weight", "ff_in_weight", "ff_out_weight"} <= set(names):
        raise NotApplicable("which of its parameters is which is unknown")
    return names


def real_of(inputs: Inputs) -> Tensor | None:
    mask: Tensor | None = inputs.get("mask")
    return mask


def reference(inputs: Inputs, names: list[str], convention: Convention, causal: bool) -> Tensor:
    x = inputs["x"]
    allowed = see(x.shape[1], causal, real_of(inputs))
    return run_block(x, select(inputs["parameters"], names), inputs["n_heads"], allowed, convention)


def keep_real(out: Tensor, inputs: Inputs) -> Tensor:
    """Return the output with zeros at padding, whose states have no meaning."""
    real = real_of(inputs)
    return out if real is None or out.shape[:2] != real.shape else out * real[..., None]


def sized_inputs(causal: bool) -> list[dict[str, Any]]:
    return [draw_input(*sizes, causal) for sizes in LENGTHS]


def choose_style(subject: Subject, names: list[str], causal: bool) -> tuple[Convention, str | None, bool]:
    """Return the convention and the packing under which the block agrees best, and whether it does."""
    return choose_convention(
        sized_inputs(causal),
        list(facts_of(subject).get("packings") or [None]),
        list_conventions(names),
        lambda i: keep_real(run(subject, i), i),
        lambda i, convention: keep_real(reference(i, names, convention, causal), i),
    )


def check_shape(subject: Subject, causal: bool) -> str:
    """Check [b, t, d] for several lengths."""
    problem = facts_of(subject).get("problem")
    if problem:
        raise RefutedError(f"it cannot be built: {problem}", inputs={"width": WIDTH, "heads": HEADS})
    for n in (7, 3, 1):
        got = run(subject, draw_input(2, n, causal, padded=False))
        if list(got.shape) != [2, n, WIDTH]:
            raise RefutedError(
                f"the shape is {tuple(got.shape)} instead of {(2, n, WIDTH)}",
                inputs={"shape of x": [2, n, WIDTH]}, got=list(got.shape), expected=[2, n, WIDTH],
            )  # fmt: skip
    return "the output has the shape of the input"


def check_agreement(subject: Subject, causal: bool) -> str:
    """Compare with a block of the same parameters under the conventions that are in use."""
    names = find_roles(subject)
    convention, packing, _ = choose_style(subject, names, causal)
    largest = require_agreement(
        [inputs | {"packing": packing} for inputs in sized_inputs(causal)],
        lambda i: keep_real(run(subject, i), i),
        lambda i: keep_real(reference(i, names, convention, causal), i),
        what=f"with the same parameters the output differs from a Transformer block's ({convention})",
        hidden=("parameters", "packing"),
    )
    return f"agrees with a Transformer block ({convention}) to {largest:.1g} (allowed {TOLERANCE:g})"


def check_causality(subject: Subject) -> str:
    """Change the last token: nothing before it may change."""
    for n in (2, 3, 6):
        inputs = draw_input(1, n, True, seed=n)
        leak = measure_leak(subject, inputs)
        if leak > MIXES:
            raise RefutedError(
                f"the future leaks into the past: {leak:.3g} nats", inputs={"x": inputs["x"]},
                got=run(subject, inputs), expected="outputs that do not depend on later tokens",
                heat_map=draw_heat_maps({"reach of each token": measure_reach(subject, inputs)}, "output", "input"),
            )  # fmt: skip
    return "no later token changes an earlier output"


def measure_leak(subject: Subject, inputs: Inputs) -> float:
    """Return by how many nats the last token changes the softmax of the outputs before it."""
    changed = inputs["x"].clone()
    changed[:, -1] += 1.0
    changed[:, -1, 0] += 2.0
    before, after = (run(subject, {**inputs, "x": x})[:, :-1].double() for x in (inputs["x"], changed))
    leak = float((before.log_softmax(-1) - after.log_softmax(-1)).abs().max())
    return leak if math.isfinite(leak) else math.inf


def measure_reach(subject: Subject, inputs: Inputs) -> Tensor:
    """Return how much each input token [column] changes each output [row]."""
    before, columns = run(subject, inputs), []
    for i in range(inputs["x"].shape[1]):
        x = inputs["x"].clone()
        x[:, i, 0] += 1.0
        columns.append((run(subject, {**inputs, "x": x}) - before)[0].abs().amax(-1))
    return torch.stack(columns, 1)


def check_padding(subject: Subject) -> str:
    """Put other numbers into padding: the outputs of real tokens must stay."""
    if not facts_of(subject).get("masks", True):
        raise NotApplicable("it takes no mask")
    for n in (2, 3, 6):
        inputs = draw_input(1, n, False, seed=n)
        inputs["mask"][:, n - 1] = False
        changed = inputs["x"].clone()
        changed[:, n - 1, ::2] += 5.0
        got, after = (run(subject, {**inputs, "x": x})[:, : n - 1] for x in (inputs["x"], changed))
        if relative(after, got) > TOLERANCE:
            raise RefutedError(
                f"what is in padding changes the output of real tokens by {difference(after, got):.3g}",
                inputs={"x": changed, "mask": inputs["mask"]}, got=after, expected=got,
            )  # fmt: skip
    return "padding changes no real token"


def check_batch(subject: Subject, causal: bool) -> str:
    """Each row of a batch must give what it gives alone."""
    inputs = draw_input(3, 4, causal, padded=False)
    together = run(subject, inputs)
    for row in range(3):
        part = {k: v[row : row + 1] for k, v in inputs.items() if k in ("x", "mask")}
        alone = run(subject, {**inputs, **part})
        if relative(together[row : row + 1], alone) > TOLERANCE:
            raise RefutedError(
                f"row {row} of a batch of 3 gives another output than alone",
                inputs={"x": inputs["x"]}, got=together[row], expected=alone[0],
            )  # fmt: skip
    return "the rows of a batch do not touch each other"


def check_repeatable(subject: Subject, causal: bool) -> str:
    """In evaluation mode the output must not depend on the random generator."""
    inputs = draw_input(2, 4, causal)
    first, second = (run(subject, {**inputs, "seed": seed}) for seed in (0, 1))
    if varies(first, second):
        raise RefutedError(
            "in evaluation mode the same input gives another output", inputs={"x": inputs["x"]}, got=second,
            expected=first, hint="dropout must follow the mode: nn.Dropout, or F.dropout(..., training=self.training)",
        )  # fmt: skip
    return "dropout is off in evaluation mode"


def check_gradients(subject: Subject, causal: bool) -> str:
    """Compare the gradient of the input with that of the reference."""
    names = find_roles(subject)
    convention, packing, agrees = choose_style(subject, names, causal)
    if not agrees:
        raise NotApplicable("the output differs already")
    inputs = draw_input(2, 4, causal, padded=False)
    weights = torch.randn(2, 4, WIDTH, generator=torch.Generator().manual_seed(9))
    x = inputs["x"].clone().requires_grad_()
    out = reference({**inputs, "x": x}, names, convention, causal)
    (expected,) = torch.autograd.grad((out * weights).sum(), x)
    more = {"packing": packing} if packing else {}
    got = subject.call("block", {**inputs, **more, "gradients": ["x"], "output_gradient": weights})["grad_x"]
    if got is None or relative(got, expected) > 10 * TOLERANCE:
        what = "no gradient reaches the input" if got is None else "the gradient of the input is another one"
        raise RefutedError(what, inputs={"x": inputs["x"]}, got=got, expected=expected,
                           hint="look for .detach(), .data, torch.no_grad() or a round trip through numpy")  # fmt: skip
    return "the gradient of the input is torch's"


def fingerprint_block(subject: Subject, causal: bool) -> Fingerprint:
    """Outputs with given parameters, under each packing that the block may mean."""
    if "block" not in subject.operations:
        return {}
    inputs = draw_input(2, 5, causal, seed=3)

    def measure_noise() -> float:
        first, second = (run(subject, {**inputs, "seed": seed}) for seed in (0, 1))
        return float(varies(first, second))

    def run_packings() -> Any:
        packings = list(facts_of(subject).get("packings") or [None])
        outputs = [keep_real(run(subject, {**inputs, "packing": p}), inputs) for p in packings]
        return outputs if len(outputs) > 1 else outputs[0]

    taken = collect({"block noise": measure_noise})
    if facts_of(subject).get("roles") and not taken.get("block noise"):
        taken |= collect({"block": run_packings})
    return taken


def make_claims(causal: bool) -> Iterable[Claim]:
    """Return the claims about a block of a decoder (causal) or of an encoder (with padding)."""

    def bind(function: Callable[[Subject, bool], str]) -> Callable[[Subject], str]:
        return lambda subject: function(subject, causal)

    yield Claim(
        "block shapes",
        "A block gives one output per token, as wide as the input.",
        bind(check_shape),
        "block",
    )
    if causal:
        yield Claim("block causality", "No later token changes an earlier output of a block.", check_causality, "block",
                    "mask the scores above the diagonal, before the softmax")  # fmt: skip
    else:
        yield Claim("block padding", "What is in padding changes no output of a real token.", check_padding, "block",
                    "scores of padded keys are minus infinity before the softmax")  # fmt: skip
    yield Claim(
        "block agreement",
        "With the same parameters a block is attention and feed-forward, each with a norm and a residual sum.",
        bind(check_agreement), "block", "x + attention(norm1(x)), then x + feed_forward(norm2(x)); or norms after the sums",
    )  # fmt: skip
    yield Claim(
        "block batch", "Each row of a batch gives what it gives alone in a block.", bind(check_batch), "block"
    )
    yield Claim("block repeatable", "In evaluation mode a block gives the same output for the same input.",
                bind(check_repeatable), "block")  # fmt: skip
    yield Claim(
        "block gradients", "The gradient of a block's input is torch's.", bind(check_gradients), "block"
    )
