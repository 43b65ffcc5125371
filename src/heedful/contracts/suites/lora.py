"""LoRA beside a linear layer: how it starts, what learns, its scale and rank, and merging."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.contracts.asking import (
    TOLERANCE,
    Inputs,
    ask,
    collect,
    difference,
    relative,
    require_agreement,
    varies,
)
from heedful.contracts.heat_map import draw_heat_maps
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint, Suite
from heedful.contracts.suites.adapters import ADAPTER_CLAIMS, ADAPTER_OPERATIONS, fingerprint_adapters
from heedful.contracts.verdicts import RefutedError

IN, OUT, RANK, ALPHA = 6, 5, 2, 8.0
"""The layer's sizes; each shape has one meaning."""
STEPS = 4


def draw(
    n: int = 3, rank: int = RANK, alpha: float = ALPHA, factors: bool = True, seed: int = 0
) -> dict[str, Any]:
    """Return a layer, its input, and the factors A [r, in] and B [out, r] if they are wanted."""
    generator = torch.Generator().manual_seed(seed + 3)

    def number(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator)

    inputs: dict[str, Any] = {"weight": number(OUT, IN), "bias": number(OUT), "x": number(n, IN)}
    inputs |= {"rank": rank, "alpha": alpha}
    return inputs | ({"a": number(rank, IN), "b": number(OUT, rank)} if factors else {})


def frozen(inputs: Inputs) -> Tensor:
    return F.linear(inputs["x"], inputs["weight"], inputs["bias"])


def product(inputs: Inputs) -> Tensor:
    out: Tensor = inputs["x"] @ inputs["a"].T @ inputs["b"].T
    return out


def reference(inputs: Inputs) -> Tensor:
    out: Tensor = frozen(inputs) + inputs["alpha"] / inputs["rank"] * product(inputs)
    return out


def run(subject: Subject, inputs: Inputs) -> Tensor:
    return ask(subject, "adapt_linear", **inputs)


def require_factors(subject: Subject) -> None:
    """Claims about given factors need to know which parameters they are."""
    if not subject.operations["adapt_linear"].get("factors", True):
        raise NotApplicable("which of its parameters are the two thin matrices is unknown")


def check_shape(subject: Subject) -> str:
    """Check inputs of two and of three dimensions."""
    if problem := subject.operations["adapt_linear"].get("problem"):
        raise RefutedError(f"it cannot be built: {problem}", inputs={"in": IN, "out": OUT, "rank": RANK})
    for shape in ((3, IN), (2, 4, IN)):
        inputs = {**draw(factors=False), "x": torch.ones(*shape)}
        got = run(subject, inputs)
        expected = [*shape[:-1], OUT]
        if list(got.shape) != expected:
            raise RefutedError(f"the shape is {tuple(got.shape)} instead of {tuple(expected)}",
                               inputs={"shape of x": list(shape)}, got=list(got.shape), expected=expected)  # fmt: skip
    return "the shape is that of the layer's output"


def check_identity(subject: Subject) -> str:
    """A layer that has not learned yet must give what the frozen layer gives."""
    apart = require_agreement(
        [draw(n, factors=False) for n in (1, 3)], lambda i: run(subject, i), frozen,
        what="before training the output differs from that of the frozen layer", tolerance=1e-6,
    )  # fmt: skip
    return f"before training the output is that of the frozen layer (to {apart:.1g})"


def check_agreement(subject: Subject) -> str:
    """Give it A and B, and compare with W x + b + alpha / r B A x."""
    require_factors(subject)
    inputs = draw()
    got = run(subject, inputs)
    if got.shape == reference(inputs).shape:
        change = got - frozen(inputs)
        scale = float((change * product(inputs)).sum() / product(inputs).square().sum())
        if relative(change, scale * product(inputs)) < TOLERANCE and not math.isclose(
            scale, ALPHA / RANK, rel_tol=1e-3
        ):
            raise RefutedError(
                f"the product of A and B is multiplied by {scale:.4g} instead of alpha / r = {ALPHA / RANK:g}",
                inputs={"alpha": ALPHA, "r": RANK}, got=scale, expected=ALPHA / RANK,
            )  # fmt: skip
    candidates = [draw(1), draw(3), draw(3, rank=3), draw(3, alpha=1.0)]
    largest = require_agreement(
        candidates, lambda i: run(subject, i), reference,
        what="the output differs from W x + b + alpha / r B A x",
        draw=lambda i, g, e: draw_heat_maps({"your change": g - frozen(i), "expected": e - frozen(i)}, "row", "output")
        if g.shape == e.shape else None,
    )  # fmt: skip
    return f"the output is W x + b + alpha / r B A x (to {largest:.1g})"


def train(subject: Subject, **more: Any) -> dict[str, Any]:
    """Take a few steps, and return what became of the layer."""
    inputs = {**draw(8, factors=False), "target": draw(8, seed=9)["x"][:, :OUT], "steps": STEPS, **more}
    answer = subject.call("train_adapter", inputs)
    return {**answer, "inputs": inputs}


def change_of(answer: Inputs) -> Tensor:
    """Return the change of the matrix [out, in] that the layer computes now."""
    before = answer["inputs"]["weight"]
    change: Tensor = (answer["at_units"] - answer["at_zero"]).T - before
    return change


def check_frozen(subject: Subject) -> str:
    """After some steps the layer's own weight and bias must be what they were."""
    answer = train(subject)
    for name in ("weight", "bias"):
        after = answer.get(name)
        if isinstance(after, Tensor) and difference(after, answer["inputs"][name]) > 0:
            raise RefutedError(f"the {name} of the frozen layer changed during training",
                               inputs={name: answer["inputs"][name], "steps": STEPS}, got=after,
                               expected=answer["inputs"][name],
                               hint="which parameters have requires_grad, and which does the optimizer get?")  # fmt: skip
    return "the layer's own weight and bias do not learn"


def check_learning(subject: Subject) -> str:
    """After some steps the output must have changed, and both factors too."""
    answer = train(subject)
    if difference(change_of(answer), torch.zeros(OUT, IN)) < 1e-6:
        raise RefutedError(f"after {STEPS} steps the layer computes the same as before", inputs={"steps": STEPS},
                           got=change_of(answer), expected="a change of the matrix",
                           hint="if A and B are both zero, neither gets a gradient")  # fmt: skip
    still = list(answer.get("still", ()))
    if still:
        raise RefutedError(f"{', '.join(still[:3])} did not learn in {STEPS} steps", inputs={"steps": STEPS}, got=still,
                           expected="both factors change")  # fmt: skip
    return "both factors learn"


def check_rank(subject: Subject) -> str:
    """The learned change must have the rank that was asked for, and not more."""
    for rank in (1, RANK):
        answer = train(subject, rank=rank)
        values = torch.linalg.svdvals(change_of(answer).double())
        number = int((values > 1e-5 * max(float(values[0]), 1e-3)).sum())
        if number > rank:
            raise RefutedError(f"the learned change of the matrix has rank {number} instead of {rank}",
                               inputs={"rank": rank}, got=values, expected=f"{rank} singular values above 0")  # fmt: skip
    return "the learned change has at most the rank that was asked for"


def check_count(subject: Subject) -> str:
    """Count the parameters that learn."""
    answer = train(subject)
    number, expected = answer["trained"], RANK * (IN + OUT)
    if number != expected:
        raise RefutedError(f"{number} parameters learn instead of r (in + out) = {expected}",
                           inputs={"in": IN, "out": OUT, "r": RANK}, got=number, expected=expected)  # fmt: skip
    return f"r (in + out) = {expected} parameters learn"


def check_merge(subject: Subject) -> str:
    """After merging the output must be the same, and the weight must have the product."""
    require_factors(subject)
    inputs = draw()
    answer = subject.call("merge", inputs)
    expected = reference(inputs)
    if relative(answer["out"], expected) > TOLERANCE:
        raise RefutedError(f"after merging the output differs by {difference(answer['out'], expected):.3g}",
                           inputs={k: inputs[k] for k in ("x", "alpha", "rank")}, got=answer["out"], expected=expected,
                           hint="the merged layer must no longer add the product; and the product has its scale")  # fmt: skip
    weight = inputs["weight"] + ALPHA / RANK * inputs["b"] @ inputs["a"]
    merged = answer.get("weight")
    if isinstance(merged, Tensor) and merged.shape == weight.shape and relative(merged, weight) > TOLERANCE:
        raise RefutedError(f"the merged weight differs from W + alpha / r B A by {difference(merged, weight):.3g}",
                           inputs={"alpha": ALPHA, "rank": RANK}, got=merged, expected=weight)  # fmt: skip
    return "merging changes no output"


def check_unmerge(subject: Subject) -> str:
    """After merging and unmerging everything must be as before."""
    require_factors(subject)
    inputs = draw()
    answer = subject.call("merge", {**inputs, "undo": True})
    if "undone" not in answer:
        raise NotApplicable("it has no unmerge")
    if relative(answer["undone"], reference(inputs)) > TOLERANCE:
        raise RefutedError("after merging and unmerging the output is another one", inputs={"x": inputs["x"]},
                           got=answer["undone"], expected=reference(inputs))  # fmt: skip
    return "unmerging undoes merging"


def check_repeatable(subject: Subject) -> str:
    """In evaluation mode the output must not depend on the random generator."""
    inputs = draw(4)
    first, second = (run(subject, {**inputs, "seed": seed}) for seed in (0, 1))
    if varies(first, second) and subject.operations["adapt_linear"].get("factors", True):
        raise RefutedError("in evaluation mode the same input gives another output", inputs={"x": inputs["x"]},
                           got=second, expected=first,
                           hint="dropout must follow the mode: nn.Dropout, or F.dropout(..., training=self.training)")  # fmt: skip
    return "dropout is off in evaluation mode"


def fingerprint(subject: Subject) -> Fingerprint:
    """Outputs with given factors, the start, and what training and merging do."""
    if "adapt_linear" not in subject.operations:
        return fingerprint_adapters(subject)
    inputs, fresh = draw(), draw(factors=False)
    measures: dict[str, Any] = {
        "starts": lambda: float(relative(run(subject, fresh), frozen(fresh)) > 1e-6),
        "factors": lambda: float(bool(subject.operations["adapt_linear"].get("factors", True))),
    }
    if subject.operations["adapt_linear"].get("factors", True):
        measures["noise"] = lambda: float(varies(*(run(subject, {**inputs, "seed": s}) for s in (0, 1))))
        measures["adapted"] = lambda: run(subject, inputs)
    if "merge" in subject.operations:
        measures["merged"] = lambda: subject.call("merge", inputs)["out"]
        measures["undone"] = lambda: subject.call("merge", {**inputs, "undo": True})["undone"]
    taken = collect(measures)
    if taken.get("noise"):
        for name in ("adapted", "starts"):
            taken.pop(name, None)
    answer = collect({"trained": lambda: train(subject)}).get("trained")
    if answer is not None:
        taken["trained"] = float(answer["trained"])
        taken["learns"] = float(difference(change_of(answer), torch.zeros(OUT, IN)) > 1e-6)
        taken["still"] = float(len(answer.get("still", ())))
        for name in ("weight", "bias"):
            if isinstance(answer.get(name), Tensor):
                taken[f"{name} moves"] = float(difference(answer[name], answer["inputs"][name]) > 0)
    return {**taken, **fingerprint_adapters(subject)}


SUITE = Suite(
    "lora",
    "LoRA beside a linear layer, bottleneck adapters and soft prompts",
    {
        "adapt_linear": "weight [out, in], bias [out], x [.., in], rank, alpha and, if they are set, a [r, in] and "
        "b [out, r]; returns out [.., out] in evaluation mode",
        "train_adapter": "the same without a and b, target [n, out] and steps; trains what learns, and returns trained (how "
        "many numbers learn), weight and bias of the frozen layer, at_units and at_zero (outputs of the identity matrix and "
        "of zeros, in evaluation mode) and still (names of what should learn and did not)",
        "merge": "the inputs of adapt_linear with a and b, and undo; returns out and weight after merging, and undone",
        **ADAPTER_OPERATIONS,
    },
    (
        Claim("shapes", "The output has the shape of the linear layer's.", check_shape, "adapt_linear"),
        Claim("starts as it was", "Before training the output is that of the frozen layer.", check_identity, "adapt_linear",
              "one of the two factors begins with zeros"),
        Claim("agreement", "The output is W x + b + alpha / r B A x.", check_agreement, "adapt_linear",
              "the frozen layer, and the product of two thin matrices times alpha / r"),
        Claim("frozen weight", "The layer's own weight and bias do not learn.", check_frozen, "train_adapter"),
        Claim("learning", "Both factors learn.", check_learning, "train_adapter"),
        Claim("rank", "The learned change has at most the rank that was asked for.", check_rank, "train_adapter",
              "A is [r, in] and B is [out, r]"),
        Claim("count", "r (in + out) parameters learn.", check_count, "train_adapter"),
        Claim("merge", "Merging the product into the weight changes no output.", check_merge, "merge",
              "W + alpha / r B A"),
        Claim("unmerge", "Unmerging undoes merging.", check_unmerge, "merge"),
        Claim("repeatable", "In evaluation mode the same input gives the same output.", check_repeatable, "adapt_linear"),
        *ADAPTER_CLAIMS,
    ),
    fingerprint,
)  # fmt: skip
