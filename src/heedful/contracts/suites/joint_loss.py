"""Joint losses: classification and masked language modeling on one encoder, weighted by alpha."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.contracts.asking import TOLERANCE, Inputs, ask, collect, relative, require_agreement
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint, Suite
from heedful.contracts.suites.joint_model import (
    JOINT_MODEL_CLAIMS,
    JOINT_MODEL_OPERATIONS,
    fingerprint_joint_model,
)
from heedful.contracts.verdicts import RefutedError

ALPHA = 0.3
SIZES = [(1, 1, 1), (1, 1, 2), (2, 1, 3), (3, 2, 4)]
"""Labeled texts, masked texts and tokens of each, in the order of their size."""
CLASSES, WORDS = 3, 7


def draw(texts: int, masked: int, tokens: int, alpha: float = ALPHA, seed: int = 0) -> dict[str, Any]:
    """Return logits and labels of both tasks; about half of the tokens have no label, but one always has."""
    generator = torch.Generator().manual_seed(seed + 2)
    labels = torch.randint(WORDS, (masked, tokens), generator=generator)
    labels[torch.rand(masked, tokens, generator=generator) < 0.5] = -100
    labels[0, 0] = 2
    return {
        "class_logits": torch.randn(texts, CLASSES, generator=generator) * 2,
        "labels": torch.randint(CLASSES, (texts,), generator=generator),
        "token_logits": torch.randn(masked, tokens, WORDS, generator=generator) * 2,
        "token_labels": labels,
        "alpha": alpha,
    }


def reference(inputs: Inputs) -> Tensor:
    tokens = F.cross_entropy(
        inputs["token_logits"].flatten(0, 1), inputs["token_labels"].flatten(), ignore_index=-100
    )
    both: Tensor = F.cross_entropy(inputs["class_logits"], inputs["labels"]) + inputs["alpha"] * tokens
    return both.reshape(1)


def run(subject: Subject, inputs: Inputs) -> Tensor:
    return ask(subject, "combine", **inputs).reshape(-1)


def check_sum(subject: Subject) -> str:
    """Compare with both mean cross-entropies, the second times alpha."""
    largest = require_agreement(
        [draw(*sizes) for sizes in SIZES], lambda i: run(subject, i), reference,
        what="the loss is not classification + alpha x masked language modeling",
    )  # fmt: skip
    return f"the loss is classification + alpha x masked language modeling (to {largest:.1g})"


def check_zero(subject: Subject) -> str:
    """With alpha = 0 only classification counts."""
    require_agreement(
        [draw(*sizes, alpha=0.0) for sizes in SIZES], lambda i: run(subject, i), reference,
        what="with alpha = 0 the loss is not that of classification alone",
    )  # fmt: skip
    return "with alpha = 0 the loss is that of classification"


def check_ignored(subject: Subject) -> str:
    """Change the logits where no token is to be predicted: the loss must stay."""
    inputs = draw(2, 2, 4)
    without = (inputs["token_labels"] < 0)[..., None]
    changed = {**inputs, "token_logits": inputs["token_logits"] + 5 * without * torch.arange(WORDS)}
    before, after = run(subject, inputs), run(subject, changed)
    if relative(after, before) > TOLERANCE:
        raise RefutedError("logits of tokens without a label change the loss", inputs={"token_labels": inputs["token_labels"]},
                           got=after, expected=before)  # fmt: skip
    return "tokens without a label have no part"


def check_counts(subject: Subject) -> str:
    """Repeat the masked texts: each mean is over its own number, so the loss must stay."""
    inputs = draw(2, 2, 4)
    twice = {
        **inputs,
        **{
            name: inputs[name].repeat(3, *[1] * (inputs[name].dim() - 1))
            for name in ("token_logits", "token_labels")
        },
    }
    before, after = run(subject, inputs), run(subject, twice)
    if relative(after, before) > TOLERANCE:
        raise RefutedError("three times the same masked texts give another loss", got=after, expected=before,
                           inputs={"masked texts": 2, "repeated": 3, "texts with a class": 2})  # fmt: skip
    return "each mean is over its own number of labels"


def check_nothing(subject: Subject) -> str:
    """Without any masked token the loss must be finite: that of classification."""
    inputs = draw(2, 1, 3)
    inputs["token_labels"] = torch.full_like(inputs["token_labels"], -100)
    got = run(subject, inputs)
    expected = F.cross_entropy(inputs["class_logits"], inputs["labels"]).reshape(1)
    if not math.isfinite(float(got[0])):
        return (
            "without any masked token the loss is not a number, as torch's; keep at least one in each batch"
        )
    if relative(got, expected) > TOLERANCE:
        raise RefutedError("without any masked token the loss is not that of classification", got=got, expected=expected,
                           inputs={"token_labels": inputs["token_labels"]})  # fmt: skip
    return "without any masked token the loss is that of classification"


def check_gradients(subject: Subject) -> str:
    """Compare the gradients of both logits with those of the reference."""
    inputs = draw(3, 2, 4)
    names = ["class_logits", "token_logits"]
    leaves = {name: inputs[name].clone().requires_grad_() for name in names}
    expected = torch.autograd.grad(reference({**inputs, **leaves}).sum(), list(leaves.values()))
    answer = subject.call("combine", {**inputs, "gradients": names})
    for name, right in zip(names, expected, strict=True):
        got = answer[f"grad_{name}"]
        if got is None:
            raise RefutedError(f"no gradient reaches the {name.replace('_', ' ')}", inputs={"alpha": ALPHA}, got=got, expected=right,
                               hint="look for .item(), .detach(), torch.tensor(loss) or float(loss)")  # fmt: skip
        if relative(got, right) > 10 * TOLERANCE:
            raise RefutedError(f"the gradient of the {name.replace('_', ' ')} is another one", inputs={"alpha": ALPHA}, got=got,
                               expected=right)  # fmt: skip
    return "gradients reach the logits of both tasks"


def fingerprint(subject: Subject) -> Fingerprint:
    """Losses of some inputs, and the gradients' sizes."""
    if "combine" not in subject.operations:
        return fingerprint_joint_model(subject)
    inputs = draw(3, 2, 4, seed=5)
    measures: dict[str, Any] = {
        "loss": lambda: run(subject, inputs),
        "loss of zero": lambda: run(subject, {**inputs, "alpha": 0.0}),
        "loss of one": lambda: run(subject, {**inputs, "alpha": 1.0}),
        "gradients": lambda: size_gradients(subject, inputs),
    }
    return {**collect(measures), **fingerprint_joint_model(subject)}


def size_gradients(subject: Subject, inputs: Inputs) -> Tensor:
    names = ["class_logits", "token_logits"]
    answer = subject.call("combine", {**inputs, "gradients": names})
    found = [answer[f"grad_{name}"] for name in names]
    if all(gradient is None for gradient in found):
        raise NotApplicable("there are no gradients")
    return torch.tensor([0.0 if gradient is None else float(gradient.abs().sum()) for gradient in found])


SUITE = Suite(
    "joint-loss",
    "joint losses: classification and masked language modeling on one encoder, weighted by alpha",
    {
        "combine": "class_logits [b, classes], labels [b], token_logits [n, t, vocabulary], token_labels [n, t] (-100 where "
        "nothing is predicted) and alpha; returns out, the loss",
        **JOINT_MODEL_OPERATIONS,
    },
    (
        Claim("sum", "The loss is the mean cross-entropy of classes plus alpha times that of masked tokens.", check_sum, "combine",
              "cross_entropy(class logits, labels) + alpha * cross_entropy(token logits, token labels)"),
        Claim("alpha zero", "With alpha = 0 the loss is that of classification alone.", check_zero, "combine"),
        Claim("ignored tokens", "Tokens without a label have no part in the loss.", check_ignored, "combine", "ignore_index=-100"),
        Claim("own counts", "Each of both means is over its own number of labels.", check_counts, "combine",
              "take two means, and then the sum"),
        Claim("nothing masked", "A batch without masked tokens has the loss of classification.", check_nothing, "combine"),
        Claim("gradients", "Gradients reach the logits of both tasks.", check_gradients, "combine"),
        *JOINT_MODEL_CLAIMS,
    ),
    fingerprint,
)  # fmt: skip
