"""GPT: causal self-attention, blocks, and models that predict the next token."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.contracts.asking import (
    TOLERANCE,
    Inputs,
    ask,
    choose_convention,
    collect,
    difference,
    fit_exponent,
    relative,
    require_agreement,
    varies,
)
from heedful.contracts.heat_map import draw_heat_maps
from heedful.contracts.subject import NotApplicable, Subject, SubjectStoppedError
from heedful.contracts.suite import Claim, Fingerprint, Suite
from heedful.contracts.suites.blocks import BLOCK_OPERATIONS, fingerprint_block, make_claims
from heedful.contracts.suites.self_attention import MODULE_CLAIMS, MODULE_OPERATIONS, fingerprint_modules
from heedful.contracts.suites.transformer import (
    SIZES,
    Convention,
    draw_ids,
    draw_model,
    list_conventions,
    predict_tokens,
    run_model,
    select,
)
from heedful.contracts.verdicts import RefutedError

LENGTHS = [(1, 1), (1, 2), (1, 4), (2, 5), (2, 8)]
"""Batch and length of the inputs, in the order of their size."""
MIXES = 1e-5
IGNORED = (-100, -1)
"""Targets that right models ignore: torch's, and minGPT's."""


def draw_input(batch: int, n: int, seed: int = 0) -> dict[str, Any]:
    return {"input_ids": draw_ids(batch, n, seed), "parameters": draw_model(), "sizes": SIZES}


def run(subject: Subject, inputs: Inputs) -> Tensor:
    return ask(subject, "next_token", **inputs)


def facts_of(subject: Subject) -> Mapping[str, Any]:
    return subject.operations["next_token"]


def find_roles(subject: Subject) -> list[str]:
    names = list(facts_of(subject).get("roles", ()))
    if not names:
        unknown = ", ".join(facts_of(subject).get("unknown", ())[:3])
        raise NotApplicable(f"the meaning of its parameters {unknown or '?'} is unknown")
    return names


def reference(inputs: Inputs, names: list[str], convention: Convention) -> Tensor:
    parameters = select(inputs["parameters"], names)
    states = run_model(inputs["input_ids"], parameters, convention, causal=True)
    return predict_tokens(states, parameters)


def choose_style(subject: Subject, names: list[str]) -> tuple[Convention, str | None, bool]:
    """Return the convention and the packing under which the model agrees best, and whether it does."""
    return choose_convention(
        [draw_input(*sizes) for sizes in LENGTHS],
        list(facts_of(subject).get("packings") or [None]),
        list_conventions(names),
        lambda i: run(subject, i),
        lambda i, convention: reference(i, names, convention),
    )


def check_shape(subject: Subject) -> str:
    """Check [b, t, vocabulary] for several lengths."""
    if problem := facts_of(subject).get("problem"):
        raise RefutedError(f"it cannot be built: {problem}", inputs=SIZES)
    for n in (9, 3, 1):
        got = run(subject, draw_input(2, n))
        expected = [2, n, SIZES["vocabulary"]]
        if list(got.shape) != expected:
            raise RefutedError(f"the logits have shape {tuple(got.shape)} instead of {tuple(expected)}",
                               inputs={"shape of the ids": [2, n]}, got=list(got.shape), expected=expected)  # fmt: skip
    return "one row of logits over the vocabulary per token"


def check_causality(subject: Subject) -> str:
    """Change the last token: no earlier prediction may change."""
    leak = 0.0
    for n in (2, 3, 6):
        inputs = draw_input(1, n, seed=n)
        leak = max(leak, leak_of(subject, inputs))
        if leak > MIXES:
            raise RefutedError(
                f"the future leaks into the past: {leak:.3g} nats", inputs={"input_ids": inputs["input_ids"]},
                got="logits that depend on later tokens", expected="logits of the tokens before alone",
                heat_map=draw_heat_maps({"reach of each token": measure_reach(subject, inputs)}, "logits", "token"),
            )  # fmt: skip
    return f"later tokens change the predictions before them by {leak:.1g} nats"


def leak_of(subject: Subject, inputs: Inputs) -> float:
    before, after = (
        run(subject, {**inputs, "input_ids": ids})[:, :-1].double().log_softmax(-1)
        for ids in (inputs["input_ids"], replace_token(inputs["input_ids"], -1))
    )
    leak = float((before - after).abs().max())
    return leak if math.isfinite(leak) else math.inf


def replace_token(ids: Tensor, place: int) -> Tensor:
    ids = ids.clone()
    ids[:, place] = (ids[:, place] + 11) % SIZES["vocabulary"]
    return ids


def measure_reach(subject: Subject, inputs: Inputs) -> Tensor:
    """Return how much each token [column] changes the logits of each position [row]."""
    ids = inputs["input_ids"]
    before = run(subject, inputs)
    after = [run(subject, {**inputs, "input_ids": replace_token(ids, i)}) for i in range(ids.shape[1])]
    return torch.stack([(out - before)[0].abs().amax(-1) for out in after], 1)


def check_past(subject: Subject) -> str:
    """Change the first token: the last prediction must change."""
    inputs = draw_input(1, 6)
    reach = measure_reach(subject, inputs)
    blind = (reach[-1] < MIXES).nonzero().flatten().tolist()
    if blind:
        raise RefutedError(f"the last prediction does not depend on token {blind[0]}",
                           inputs={"input_ids": inputs["input_ids"]}, got=reach[-1], expected="every token has an influence",
                           heat_map=draw_heat_maps({"reach of each token": reach}, "logits", "token"))  # fmt: skip
    return "every token of the past has an influence on the last prediction"


def check_positions(subject: Subject) -> str:
    """Exchange two earlier tokens: a model that knows positions predicts something else."""
    inputs = draw_input(1, 5)
    ids = inputs["input_ids"]
    exchanged = ids[:, [1, 0, *range(2, 5)]]
    before, after = (run(subject, {**inputs, "input_ids": x})[:, -1] for x in (ids, exchanged))
    if difference(before, after) < MIXES:
        raise RefutedError("exchanging two earlier tokens changes nothing: positions have no influence",
                           inputs={"input_ids": ids, "exchanged": exchanged}, got=after, expected="other logits")  # fmt: skip
    return "the order of the tokens has an influence"


def check_agreement(subject: Subject) -> str:
    """Give the model our parameters and compare with a GPT of the same parameters."""
    names = find_roles(subject)
    convention, packing, _ = choose_style(subject, names)
    largest = require_agreement(
        [draw_input(*sizes) | {"packing": packing} for sizes in LENGTHS],
        lambda i: run(subject, i),
        lambda i: reference(i, names, convention),
        what=f"with the same parameters the logits differ from GPT-2's ({convention})",
        hidden=("parameters", "packing", "sizes"),
    )
    return f"agrees with GPT-2's forward pass ({convention}) to {largest:.1g} (allowed {TOLERANCE:g})"


def check_layers(subject: Subject) -> str:
    """Count the blocks that have parameters of their own."""
    number = facts_of(subject).get("layers")
    if number is None:
        raise NotApplicable("its blocks are not known")
    if number != SIZES["layers"]:
        raise RefutedError(f"{number} blocks have parameters of their own instead of {SIZES['layers']}",
                           inputs={"n_layers": SIZES["layers"]}, got=number, expected=SIZES["layers"])  # fmt: skip
    return f"each of {number} blocks has parameters of its own"


def shifts(subject: Subject) -> bool:
    """Whether the model itself shifts what it is given: `labels` are the ids, `targets` are the next ids."""
    return bool(facts_of(subject).get("shifts"))


def expected_loss(logits: Tensor, targets: Tensor, shift: bool) -> Tensor:
    if shift:
        logits, targets = logits[:, :-1], targets[:, 1:]
    targets = torch.where(targets < 0, -100, targets)
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)


def draw_targets(inputs: Inputs, shift: bool, ignored: int | None = None) -> Tensor:
    """Return the next ids; the ids themselves for a model that shifts; some are ignored."""
    ids = inputs["input_ids"]
    targets = ids.clone() if shift else torch.cat([ids[:, 1:], draw_ids(len(ids), 1, seed=5)], 1)
    if ignored is not None:
        targets[:, ids.shape[1] // 2 :] = ignored
    return targets


def run_loss(subject: Subject, inputs: Inputs, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss and the logits."""
    if not facts_of(subject).get("targets"):
        raise NotApplicable("it takes no targets")
    answer = subject.call("next_token", {**inputs, "targets": targets})
    if not isinstance(answer.get("loss"), Tensor):
        raise RefutedError("with targets no loss comes back", inputs={"targets": targets}, got=sorted(answer))
    return answer["loss"], answer["out"]


def check_loss(subject: Subject) -> str:
    """Compare the loss with the cross-entropy of the model's own logits."""
    shift = shifts(subject)
    largest = 0.0
    for sizes in ((1, 2), (2, 4), (3, 8)):
        inputs = draw_input(*sizes)
        targets = draw_targets(inputs, shift)
        loss, logits = run_loss(subject, inputs, targets)
        expected = expected_loss(logits, targets, shift)
        largest = max(largest, relative(loss.reshape(()), expected)) if loss.numel() == 1 else math.inf
        if largest > TOLERANCE:
            whose = "labels (the ids, which the model shifts)" if shift else "targets (the next ids)"
            raise RefutedError("the loss is not the mean cross-entropy of the next tokens",
                               inputs={"input_ids": inputs["input_ids"], whose: targets}, got=loss, expected=expected)  # fmt: skip
    return f"the loss is the mean cross-entropy of the next tokens (to {largest:.1g})"


def check_ignored(subject: Subject) -> str:
    """Targets of -100 (or -1) must have no part in the loss."""
    shift = shifts(subject)
    inputs = draw_input(2, 6)
    problem: Any = "nothing"
    expected: Tensor | None = None
    for ignored in IGNORED:
        targets = draw_targets(inputs, shift, ignored)
        try:
            loss, logits = run_loss(subject, inputs, targets)
        except (SubjectStoppedError, NotApplicable):
            raise
        except Exception as error:  # an index out of range, in the model's own words
            problem = str(error)
            continue
        expected, problem = expected_loss(logits, targets, shift), loss
        if relative(loss.reshape(-1)[:1], expected.reshape(1)) < TOLERANCE:
            return f"targets of {ignored} have no part in the loss"
    raise RefutedError("targets that are to be ignored (-100, or -1) change the loss",
                       inputs={"input_ids": inputs["input_ids"], "targets": draw_targets(inputs, shift, -100)},
                       got=problem, expected=expected)  # fmt: skip


def check_batch(subject: Subject) -> str:
    """Each row of a batch must give what it gives alone."""
    inputs = draw_input(3, 5)
    together = run(subject, inputs)
    for row in range(3):
        alone = run(subject, {**inputs, "input_ids": inputs["input_ids"][row : row + 1]})
        if relative(together[row : row + 1], alone) > TOLERANCE:
            raise RefutedError(f"row {row} of a batch of 3 gives other logits than alone",
                               inputs={"input_ids": inputs["input_ids"]}, got=together[row], expected=alone[0])  # fmt: skip
    return "the rows of a batch do not touch each other"


def check_repeatable(subject: Subject) -> str:
    """In evaluation mode the logits must not depend on the random generator."""
    inputs = draw_input(2, 4)
    first, second = (run(subject, {**inputs, "seed": seed}) for seed in (0, 1))
    if varies(first, second):
        raise RefutedError("in evaluation mode the same ids give other logits", got=second, expected=first,
                           inputs={"input_ids": inputs["input_ids"]},
                           hint="dropout must follow the mode: nn.Dropout, or F.dropout(..., training=self.training)")  # fmt: skip
    return "dropout is off in evaluation mode"


def check_reached(subject: Subject) -> str:
    """Every parameter must get a gradient from the loss."""
    inputs = draw_input(2, 8)
    shift = shifts(subject)
    if not facts_of(subject).get("targets"):
        raise NotApplicable("it takes no targets")
    answer = subject.call(
        "next_token", {**inputs, "targets": draw_targets(inputs, shift), "backward": True, "training": False}
    )
    still = list(answer.get("without_gradient", ()))
    if still:
        raise RefutedError(f"no gradient of the loss reaches {', '.join(still[:3])}",
                           inputs={"input_ids": inputs["input_ids"]}, got=still[:8], expected="a gradient for every parameter",
                           hint="a layer that is never called, or .detach(), .data, torch.no_grad()")  # fmt: skip
    return "the loss reaches every parameter"


def check_cost(subject: Subject) -> str:
    """Fit how work and the largest tensor grow with the length."""
    lengths = (8, 16, 32)
    costs = [
        subject.call("next_token", {"input_ids": torch.arange(n)[None] % 29, "measure": True})["cost"]
        for n in lengths
    ]
    work = fit_exponent(lengths, [c["elements"] for c in costs])
    memory = fit_exponent(lengths, [c["largest"] for c in costs])
    message = f"work grows as length^{work:.2f}, the largest tensor as length^{memory:.2f}"
    if work > 2.6 or memory > 2.4:
        raise RefutedError(f"{message}, more than the square", inputs={"lengths": list(lengths)}, got=costs)
    return message


def fingerprint(subject: Subject) -> Fingerprint:
    """Outputs of attention, block and model with given parameters, and the loss relative to what it should be."""
    return {**fingerprint_modules(subject), **fingerprint_block(subject, True), **fingerprint_model(subject)}


def fingerprint_model(subject: Subject) -> Fingerprint:
    if "next_token" not in subject.operations:
        return {}
    inputs, shift = draw_input(2, 7, seed=3), shifts(subject)

    def measure_noise() -> float:
        first, second = (run(subject, {**inputs, "seed": seed}) for seed in (0, 1))
        return float(varies(first, second))

    def run_packings() -> Any:
        packings = list(facts_of(subject).get("packings") or [None])
        outputs = [run(subject, {**inputs, "packing": p}) for p in packings]
        return outputs if len(outputs) > 1 else outputs[0]

    def compare_loss() -> Tensor:
        targets = draw_targets(inputs, shift)
        loss, logits = run_loss(subject, inputs, targets)
        return loss.reshape(-1)[:1] / expected_loss(logits, targets, shift)

    taken = collect({"model noise": measure_noise, "loss": compare_loss})
    taken |= {"layers": float(n)} if (n := facts_of(subject).get("layers")) is not None else {}
    taken |= {"shifts": float(shift)} if facts_of(subject).get("targets") else {}
    if taken.get("model noise"):
        taken.pop("loss", None)
    elif facts_of(subject).get("roles"):
        taken |= collect({"next_token": run_packings})
    return taken


SUITE = Suite(
    "gpt",
    "GPT: causal self-attention, blocks, and models that predict the next token",
    {
        **MODULE_OPERATIONS,
        **BLOCK_OPERATIONS,
        "next_token": "input_ids [b, t], targets [b, t] (the next ids; the ids themselves where the argument is called "
        "labels), sizes, parameters by role and packing; returns out (logits [b, t, vocabulary]) and loss",
    },
    (
        *MODULE_CLAIMS,
        *make_claims(causal=True),
        Claim("logits", "The model gives one row of logits over the vocabulary per token.", check_shape, "next_token"),
        Claim("causality", "No later token changes an earlier prediction.", check_causality, "next_token",
              "a mask in every block; targets must not enter the model"),
        Claim("past", "Every token of the past has an influence on the last prediction.", check_past, "next_token"),
        Claim("positions", "The order of the tokens has an influence.", check_positions, "next_token",
              "add embeddings of the positions 0, 1, 2, ... to those of the tokens"),
        Claim("agreement", "With the same parameters the logits are those of GPT-2.", check_agreement, "next_token",
              "embeddings, blocks, the last norm, the output layer: in this order, each once"),
        Claim("layers", "Each block has parameters of its own.", check_layers, "next_token",
              "[Block()] * n has one block n times"),
        Claim("loss", "The loss is the mean cross-entropy of the next tokens.", check_loss, "next_token",
              "logits of position t belong to the token t + 1; shift once, here or in the data"),
        Claim("ignored targets", "Targets of -100 (or -1) have no part in the loss.", check_ignored, "next_token",
              "ignore_index of F.cross_entropy"),
        Claim("batch", "Each row of a batch gives what it gives alone.", check_batch, "next_token"),
        Claim("repeatable", "In evaluation mode the same ids give the same logits.", check_repeatable, "next_token"),
        Claim("gradient flow", "The loss reaches every parameter.", check_reached, "next_token"),
        Claim("cost", "Work and memory grow at most as the square of the length.", check_cost, "next_token"),
    ),
    fingerprint,
)  # fmt: skip
