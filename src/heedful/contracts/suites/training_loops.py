"""Loops over batches and the choice of a model: claims of the suite `training`."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.contracts.asking import TOLERANCE, Inputs, collect, relative
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint
from heedful.contracts.verdicts import RefutedError

FEATURES, CLASSES, RATE = 4, 3, 0.1
SIZES = (4, 4, 1)
"""Sizes of the batches: the last one is smaller, as in real data."""
LOOP_OPERATIONS = {
    "evaluate": f"weight [{CLASSES}, {FEATURES}] of a linear model with dropout, x and y, lists of batches; returns values (the numbers "
    "that come back), training (whether the model was called in training mode), gradients (whether they were on) and "
    "changed (whether the model is another one after it)",
    "train_epoch": "the same and lr; returns weight after it, calls (how many batches), and training",
    "select": "dev and test, lists of scores per epoch where higher is better; returns epoch and score, as far as it says them",
}


def draw(seed: int = 0) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed + 12)
    x = [torch.randn(n, FEATURES, generator=generator) for n in SIZES]
    y = [torch.randint(CLASSES, (n,), generator=generator) for n in SIZES]
    weight = torch.randn(CLASSES, FEATURES, generator=generator)
    wrong = (x[-1] @ weight.T).argmin(-1)
    return {"weight": weight, "x": x, "y": [*y[:-1], wrong]}


def scores_of(inputs: Inputs) -> dict[str, float]:
    """Return accuracy and loss over all examples."""
    logits, labels = torch.cat(inputs["x"]) @ inputs["weight"].T, torch.cat(inputs["y"])
    return {
        "accuracy": float((logits.argmax(-1) == labels).double().mean()),
        "loss": float(F.cross_entropy(logits, labels)),
    }


def run_evaluation(subject: Subject, seed: int = 0) -> tuple[dict[str, Any], dict[str, Any]]:
    inputs = draw(seed)
    return subject.call("evaluate", inputs), inputs


def check_mode(subject: Subject) -> str:
    """The model must be in evaluation mode while it is scored."""
    answer, _ = run_evaluation(subject)
    if answer["training"]:
        raise RefutedError("the model is scored in training mode: dropout is on", inputs={"model": "in training mode before"},
                           got="training mode", expected="evaluation mode", hint="model.eval()")  # fmt: skip
    return "the model is scored in evaluation mode"


def check_gradients(subject: Subject) -> str:
    """Scoring needs no gradients."""
    answer, _ = run_evaluation(subject)
    if answer["gradients"]:
        raise RefutedError("gradients are on while the model is scored, which keeps every batch in memory", got="on", expected="off",
                           inputs={"batches": len(SIZES)}, hint="torch.no_grad()")  # fmt: skip
    return "gradients are off"


def check_score(subject: Subject) -> str:
    """What comes back must be accuracy or loss over all examples, not the mean over batches."""
    for seed in range(3):
        answer, inputs = run_evaluation(subject, seed)
        scores = scores_of(inputs)
        right = [scores["accuracy"], 100 * scores["accuracy"], scores["loss"]]
        values = [float(v) for v in answer["values"]]
        if not values:
            raise NotApplicable("no number comes back")
        if not any(abs(v - r) < 1e-3 * max(1.0, abs(r)) for v in values for r in right):
            raise RefutedError("the score is neither the accuracy nor the loss over all examples", got=values, expected=scores,
                               inputs={"sizes of the batches": list(SIZES)},
                               hint="sum over examples, and divide by their number; the last batch is smaller")  # fmt: skip
    return "the score is over all examples"


def check_unchanged(subject: Subject) -> str:
    """Scoring must not change the model."""
    answer, _ = run_evaluation(subject)
    if answer["changed"]:
        raise RefutedError("the model is another one after it was scored", inputs={"batches": len(SIZES)}, got="changed parameters",
                           expected="the same parameters")  # fmt: skip
    return "scoring changes nothing"


def train_reference(inputs: Inputs, lr: float) -> Tensor:
    """Return the weight after one step of gradient descent per batch."""
    weight: Tensor = inputs["weight"].clone()
    for x, y in zip(inputs["x"], inputs["y"], strict=True):
        leaf = weight.clone().requires_grad_()
        (gradient,) = torch.autograd.grad(F.cross_entropy(x @ leaf.T, y), leaf)
        weight = weight - lr * gradient
    return weight


def run_training(subject: Subject) -> tuple[dict[str, Any], dict[str, Any]]:
    inputs = draw(1)
    return subject.call("train_epoch", {**inputs, "lr": RATE}), inputs


def check_steps(subject: Subject) -> str:
    """One epoch must be one step per batch, each from the gradients of its own batch."""
    answer, inputs = run_training(subject)
    expected = train_reference(inputs, RATE)
    if relative(answer["weight"], expected) > 10 * TOLERANCE:
        same = torch.equal(answer["weight"], inputs["weight"])
        raise RefutedError("the model did not learn" if same else "the weight is not what one step per batch gives",
                           inputs={"sizes of the batches": list(SIZES), "lr": RATE}, got=answer["weight"], expected=expected,
                           hint="per batch: zero_grad, forward, backward, step")  # fmt: skip
    return "one step per batch, each from its own gradients"


def check_training_mode(subject: Subject) -> str:
    """The model must be in training mode while it learns, also after it was evaluated."""
    answer, _ = run_training(subject)
    if not answer["training"]:
        raise RefutedError("the model learns in evaluation mode: dropout is off", inputs={"model": "in evaluation mode before"},
                           got="evaluation mode", expected="training mode", hint="model.train() at the beginning of each epoch")  # fmt: skip
    return "the model learns in training mode"


HISTORIES = (
    ([0.6, 0.7, 0.5], [0.8, 0.6, 0.75]),
    ([0.5, 0.9, 0.7, 0.8], [0.51, 0.61, 0.81, 0.71]),
    ([0.3, 0.2, 0.1], [0.1, 0.3, 0.2]),
)
"""Scores on dev and on test per epoch; the best on dev is never the best on test, nor the last."""


def check_selection(subject: Subject) -> str:
    """The epoch that is best on dev must be chosen, and its own test score reported."""
    for dev, test in HISTORIES:
        answer = subject.call("select", {"dev": dev, "test": test})
        best = max(range(len(dev)), key=dev.__getitem__)
        about = {"dev": dev, "test": test}
        expected = {"epoch": best, "test score": test[best]}
        if "epoch" in answer and int(answer["epoch"]) not in (
            best,
            best + int(bool(answer.get("counts from 1"))),
        ):
            on_test = max(range(len(test)), key=test.__getitem__)
            why = ", which is best on test" if int(answer["epoch"]) == on_test else ""
            raise RefutedError(
                f"epoch {int(answer['epoch'])} is chosen{why}",
                inputs=about,
                got=int(answer["epoch"]),
                expected=expected,
            )
        if "score" in answer and not any(
            abs(float(answer["score"]) - s) < 1e-6 for s in (test[best], dev[best])
        ):
            why = " (the best on test)" if abs(float(answer["score"]) - max(test)) < 1e-6 else ""
            raise RefutedError(
                f"the score is {float(answer['score']):g}{why}",
                inputs=about,
                got=float(answer["score"]),
                expected=expected,
            )
        if not {"epoch", "score"} & set(answer):
            raise NotApplicable("neither an epoch nor a score comes back")
    return "dev selects, and test is reported for what was selected"


def fingerprint_loops(subject: Subject) -> Fingerprint:
    """Modes, gradients, scores relative to the right ones, weights after an epoch, and what is selected."""
    measures: dict[str, Any] = {}
    if "evaluate" in subject.operations:
        for name in ("training", "gradients", "changed"):
            measures[f"evaluate {name}"] = lambda name=name: float(run_evaluation(subject)[0][name])
        measures["evaluate wrong"] = lambda: float(is_broken(subject))
        measures["evaluate values"] = lambda: torch.tensor(
            [float(v) for v in run_evaluation(subject)[0]["values"][:1]]
        )
    if "train_epoch" in subject.operations:
        measures["train weight"] = lambda: run_training(subject)[0]["weight"]
        measures["train mode"] = lambda: float(run_training(subject)[0]["training"])
    if "select" in subject.operations:
        for key in ("epoch", "score"):
            measures[f"select {key}"] = lambda key=key: torch.tensor(
                [float(subject.call("select", {"dev": d, "test": t})[key]) for d, t in HISTORIES]
            )
    taken = collect(measures)
    if taken.get("evaluate training"):
        taken.pop("evaluate values", None)
        taken.pop("evaluate wrong", None)
    return taken


def is_broken(subject: Subject) -> bool:
    try:
        check_score(subject)
    except RefutedError:
        return True
    return False


LOOP_CLAIMS = (
    Claim("evaluation mode", "A model is scored in evaluation mode.", check_mode, "evaluate", "model.eval()"),
    Claim("no gradients", "A model is scored without gradients.", check_gradients, "evaluate", "torch.no_grad()"),
    Claim("score", "A score is over all examples, not a mean over batches.", check_score, "evaluate"),
    Claim("nothing learned", "Scoring changes no parameter.", check_unchanged, "evaluate"),
    Claim("steps", "One epoch is one step per batch, each from the gradients of its own batch.", check_steps, "train_epoch"),
    Claim("training mode", "A model learns in training mode.", check_training_mode, "train_epoch"),
    Claim("selection", "Dev selects the epoch, and test is reported for what was selected.", check_selection, "select",
          "test is looked at once, at the end"),
)  # fmt: skip
