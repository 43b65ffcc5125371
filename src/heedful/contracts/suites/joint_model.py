"""Models with two heads on one encoder (the course's BertForCLSMLM): claims of the suite `joint-loss`."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.contracts.asking import TOLERANCE, Inputs, ask, collect, difference, relative, varies
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint
from heedful.contracts.suites.bert import MASKED, draw_input
from heedful.contracts.suites.bert_heads import list_heads
from heedful.contracts.suites.transformer import SIZES, Convention, draw_ids, run_model, select
from heedful.contracts.verdicts import RefutedError

ALPHA = 0.3
BERT = Convention("after")
JOINT_MODEL_OPERATIONS = {
    "joint_model": "input_ids, mask [b, t] and labels [b]; mlm_input_ids, mlm_mask and mlm_labels [n, t] (-100 where nothing is "
    "predicted), alpha and parameters by role; returns out (logits [b, labels]), loss, and encoders (how many it has)",
}


def draw(batch: int = 2, masked: int = 2, n: int = 5, alpha: float = ALPHA, seed: int = 0) -> dict[str, Any]:
    """Return texts with classes and masked texts, which are others."""
    inputs = draw_input(batch, n, padding=1, seed=seed)
    generator = torch.Generator().manual_seed(seed + 4)
    ids = draw_ids(masked, n, seed + 50) % MASKED
    labels = torch.full_like(ids, -100)
    labels[:, 1], labels[:, 3] = ids[:, 1], ids[:, 3]
    labels[0, 3] = -100
    hidden = torch.where(labels >= 0, MASKED, ids)
    inputs |= {"labels": torch.randint(SIZES["labels"], (batch,), generator=generator), "alpha": alpha}
    return inputs | {"mlm_input_ids": hidden, "mlm_mask": torch.ones_like(ids).bool(), "mlm_labels": labels}


def run(subject: Subject, inputs: Inputs) -> tuple[Tensor, Tensor]:
    """Return the loss and the logits of the classes."""
    answer = subject.call("joint_model", dict(inputs))
    if not isinstance(answer.get("loss"), Tensor):
        raise RefutedError("with labels no loss comes back", inputs={"labels": inputs["labels"]}, got=sorted(answer),
                           expected="(loss, logits)")  # fmt: skip
    return answer["loss"].reshape(-1), answer["out"]


def class_loss(logits: Tensor, inputs: Inputs) -> Tensor:
    return F.cross_entropy(logits, inputs["labels"]).reshape(1)


def check_logits(subject: Subject) -> str:
    """Check the shape of the logits, with and without labels."""
    if problem := subject.operations["joint_model"].get("problem"):
        raise RefutedError(f"it cannot be built: {problem}", inputs=SIZES)
    inputs = draw()
    plain = {k: inputs[k] for k in ("input_ids", "mask", "parameters", "alpha")}
    for name, got in (
        ("with labels", run(subject, inputs)[1]),
        ("without labels", ask(subject, "joint_model", **plain)),
    ):
        if list(got.shape) != [2, SIZES["labels"]]:
            raise RefutedError(f"{name} the logits have shape {tuple(got.shape)} instead of {(2, SIZES['labels'])}",
                               inputs={"shape of the ids": [2, 5]}, got=list(got.shape), expected=[2, SIZES["labels"]])  # fmt: skip
    return "one row of class logits per text, with and without labels"


def check_zero(subject: Subject) -> str:
    """With alpha = 0 the loss must be that of the classes."""
    inputs = draw(alpha=0.0)
    loss, logits = run(subject, inputs)
    expected = class_loss(logits, inputs)
    if relative(loss, expected) > TOLERANCE:
        raise RefutedError("with alpha = 0 the loss is not that of classification", inputs={"labels": inputs["labels"], "alpha": 0.0},
                           got=loss, expected=expected)  # fmt: skip
    return "with alpha = 0 the loss is that of classification"


def check_alpha(subject: Subject) -> str:
    """The part of masked language modeling must be proportional to alpha, and about ln(vocabulary) or more."""
    parts = []
    for alpha in (0.25, 0.5, 1.0):
        inputs = draw(alpha=alpha)
        loss, logits = run(subject, inputs)
        parts.append(float(loss - class_loss(logits, inputs)) / alpha)
    if max(parts) - min(parts) > TOLERANCE * max(1.0, abs(parts[0])) or not all(map(math.isfinite, parts)):
        raise RefutedError("the loss is not classification + alpha x something that does not depend on alpha",
                           inputs={"alpha": [0.25, 0.5, 1.0]}, got={"(loss - classification) / alpha": parts},
                           expected="three times the same number")  # fmt: skip
    if parts[0] <= 0:
        raise RefutedError("the masked texts have no part in the loss", inputs={"alpha": [0.25, 0.5, 1.0]}, got=parts[0],
                           expected="the cross-entropy of the masked tokens")  # fmt: skip
    return f"the loss is classification + alpha x {parts[0]:.3g}"


def check_apart(subject: Subject) -> str:
    """Other masked texts must not change the logits of the classes."""
    inputs = draw()
    other = {**inputs, "mlm_input_ids": inputs["mlm_input_ids"].flip(0).roll(1, 1)}
    before, after = run(subject, inputs)[1], run(subject, other)[1]
    if difference(before, after) > 1e-5:
        raise RefutedError("other masked texts change the logits of the classes: the classifier reads masked text",
                           inputs={"input_ids": inputs["input_ids"], "mlm_input_ids": other["mlm_input_ids"]}, got=after,
                           expected=before)  # fmt: skip
    return "the classifier reads the texts that are not masked"


def check_shared(subject: Subject) -> str:
    """Both heads must be on one encoder."""
    number = subject.operations["joint_model"].get("encoders")
    if not number:
        raise NotApplicable("its encoders are not known")
    if number != 1:
        raise RefutedError(
            f"there are {number} encoders: the two tasks share nothing", inputs={}, got=number, expected=1
        )
    return "both heads are on one encoder"


def check_agreement(subject: Subject) -> str:
    """Give the model our parameters, and compare the loss with that of BERT with both heads."""
    names = list(subject.operations["joint_model"].get("roles", ()))
    if not names:
        raise NotApplicable("the meaning of its parameters is unknown")
    inputs = draw(alpha=1.0)
    loss, logits = run(subject, inputs)
    part = loss - class_loss(logits, inputs)
    candidates = [name for name in names if name != "pool_weight"]
    expected = {
        name: mlm_loss(inputs, candidates, head)
        for name, head in list_heads("predict_masked", candidates).items()
    }
    best = min(expected, key=lambda name: relative(part, expected[name]))
    if relative(part, expected[best]) > TOLERANCE:
        raise RefutedError("the part of the masked texts is not the mean cross-entropy of BERT's masked tokens", got=part,
                           expected=expected[best], inputs={"mlm_input_ids": inputs["mlm_input_ids"], "mlm_labels": inputs["mlm_labels"]})  # fmt: skip
    return (
        f"the part of the masked texts is that of BERT with {best} (to {relative(part, expected[best]):.1g})"
    )


def mlm_loss(inputs: Inputs, names: list[str], head: Any) -> Tensor:
    parameters = select(inputs["parameters"], names)
    states = run_model(inputs["mlm_input_ids"], parameters, BERT, causal=False, real=inputs["mlm_mask"])
    logits = head(states, inputs["mlm_mask"], parameters)
    return F.cross_entropy(logits.flatten(0, 1), inputs["mlm_labels"].flatten(), ignore_index=-100).reshape(1)


def check_repeatable(subject: Subject) -> str:
    """In evaluation mode the loss must not depend on the random generator."""
    inputs = draw()
    first, second = (run(subject, {**inputs, "seed": seed})[0] for seed in (0, 1))
    if varies(first, second):
        raise RefutedError("in evaluation mode the same texts give another loss", inputs={"input_ids": inputs["input_ids"]},
                           got=second, expected=first)  # fmt: skip
    return "dropout is off in evaluation mode"


def fingerprint_joint_model(subject: Subject) -> Fingerprint:
    """Losses at some alphas, and the number of encoders."""
    if "joint_model" not in subject.operations:
        return {}
    facts = subject.operations["joint_model"]

    def part(alpha: float) -> Tensor:
        inputs = draw(alpha=alpha, seed=3)
        loss, logits = run(subject, inputs)
        return loss - class_loss(logits, inputs)

    measures: dict[str, Any] = {"model apart": lambda: float(
        difference(run(subject, draw())[1], run(subject, {**draw(), "mlm_input_ids": draw(seed=9)["mlm_input_ids"]})[1]) > 1e-5
    )}  # fmt: skip
    if facts.get("roles"):
        measures |= {
            "model part": lambda: part(1.0),
            "model part of 0.3": lambda: part(0.3),
            "model part of 0": lambda: part(0.0),
        }
    taken = collect(measures)
    return taken | ({"encoders": float(facts["encoders"])} if facts.get("encoders") else {})


HINT = "classification + alpha * masked language modeling"
JOINT_MODEL_CLAIMS = (
    Claim("model logits", "The model gives one row of class logits per text.", check_logits, "joint_model"),
    Claim("model alpha zero", "With alpha = 0 the model's loss is that of classification.", check_zero, "joint_model", HINT),
    Claim("model alpha", "The model's loss is classification plus a part proportional to alpha.", check_alpha, "joint_model", HINT),
    Claim("model texts", "The classifier reads the texts that are not masked.", check_apart, "joint_model",
          "each of the two heads has texts of its own"),
    Claim("one encoder", "Both heads are on one encoder.", check_shared, "joint_model", "give the second head the first's encoder"),
    Claim("model agreement", "The part of the masked texts is the mean cross-entropy of BERT's masked tokens.", check_agreement,
          "joint_model"),
    Claim("model repeatable", "In evaluation mode the same texts give the same loss.", check_repeatable, "joint_model"),
)  # fmt: skip
