"""BERT: blocks and encoders with padding, classifiers, and masked language models."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import product
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
    relative,
    require_agreement,
    varies,
)
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint, Suite
from heedful.contracts.suites.bert_heads import list_heads
from heedful.contracts.suites.blocks import BLOCK_OPERATIONS, fingerprint_block, make_claims
from heedful.contracts.suites.transformer import (
    SIZES,
    draw_ids,
    draw_model,
    list_conventions,
    run_model,
    select,
)
from heedful.contracts.verdicts import RefutedError

PAD, MASKED = 0, 28
"""The ids of padding and of [MASK]; no other token has them."""
LENGTHS = [(1, 2), (1, 4), (2, 5), (3, 8)]
"""Batch and length of the inputs, in the order of their size."""
MIXES = 1e-5
WHAT = {"encode": "encoder", "classify": "classifier", "predict_masked": "masked model"}


def draw_input(batch: int, n: int, padding: int = 0, seed: int = 0) -> dict[str, Any]:
    """Return ids, the mask of real tokens and the parameters; the first row ends with padding."""
    ids = draw_ids(batch, n, seed) % MASKED
    real = torch.ones(batch, n, dtype=torch.bool)
    if padding:
        ids[0, n - padding :], real[0, n - padding :] = PAD, False
    return {"input_ids": ids, "mask": real, "parameters": draw_model()}


def run(subject: Subject, operation: str, inputs: Inputs) -> Tensor:
    return ask(subject, operation, **inputs)


def facts_of(subject: Subject, operation: str) -> Mapping[str, Any]:
    return subject.operations[operation]


def width_of(operation: str) -> int:
    return SIZES[{"encode": "width", "classify": "labels", "predict_masked": "vocabulary"}[operation]]


def keep_real(out: Tensor, inputs: Inputs) -> Tensor:
    """Return states or logits of tokens with zeros at padding; those of texts as they are."""
    real = inputs["mask"]
    return out * real[..., None] if out.dim() == 3 and out.shape[:2] == real.shape else out


def check_shape(subject: Subject, operation: str) -> str:
    """Check [b, t, width], [b, labels] or [b, t, vocabulary] for several lengths."""
    if problem := facts_of(subject, operation).get("problem"):
        raise RefutedError(f"it cannot be built: {problem}", inputs=SIZES)
    for n in (9, 4):
        got = run(subject, operation, draw_input(2, n))
        expected = [2, width_of(operation)] if operation == "classify" else [2, n, width_of(operation)]
        if list(got.shape) != expected:
            raise RefutedError(f"the shape is {tuple(got.shape)} instead of {tuple(expected)}",
                               inputs={"shape of the ids": [2, n]}, got=list(got.shape), expected=expected)  # fmt: skip
    return f"the shape is right: [{'batch' if operation == 'classify' else 'batch, length'}, {width_of(operation)}]"


def check_padding(subject: Subject, operation: str) -> str:
    """Lengthen a text by padding: what comes out for it must stay."""
    if not facts_of(subject, operation).get("masks", True):
        raise NotApplicable("it takes no mask")
    for n, padding in ((2, 1), (3, 2), (5, 4)):
        inputs = draw_input(1, n, seed=n)
        longer = {**inputs, "input_ids": F.pad(inputs["input_ids"], (0, padding), value=PAD),
                  "mask": F.pad(inputs["mask"], (0, padding))}  # fmt: skip
        alone = run(subject, operation, inputs)
        padded = run(subject, operation, longer)
        padded = padded[:, :n] if padded.dim() == 3 else padded
        if relative(padded, alone) > TOLERANCE:
            raise RefutedError(f"{padding} tokens of padding change the output by {difference(padded, alone):.3g}",
                               inputs={"input_ids": longer["input_ids"], "attention_mask": longer["mask"].long()},
                               got=padded, expected=alone)  # fmt: skip
    return "padding changes nothing"


def check_agreement(subject: Subject, operation: str) -> str:
    """Give the model our parameters, and compare with BERT under each of the usual heads."""
    facts = facts_of(subject, operation)
    names = list(facts.get("roles", ()))
    if not names:
        unknown = ", ".join(facts.get("unknown", ())[:3])
        raise NotApplicable(f"the meaning of its parameters {unknown or '?'} is unknown")
    heads, masks = list_heads(operation, names), facts.get("masks", True)
    candidates = [draw_input(*sizes, padding=int(sizes[0] > 1 and masks)) for sizes in LENGTHS]
    (style, head), packing, _ = choose_convention(
        candidates, list(facts.get("packings") or [None]), list(product(list_conventions(names), heads)),
        lambda i: keep_real(run(subject, operation, i), i),
        lambda i, choice: keep_real(expect(i, names, choice[0], heads[choice[1]]), i),
    )  # fmt: skip
    largest = require_agreement(
        [inputs | {"packing": packing} for inputs in candidates],
        lambda i: keep_real(run(subject, operation, i), i),
        lambda i: keep_real(expect(i, names, style, heads[head]), i),
        what=f"with the same parameters the output differs from transformers' BERT with {head}",
        hidden=("parameters", "packing"),
    )
    return f"agrees with transformers' BERT with {head} to {largest:.1g} (allowed {TOLERANCE:g})"


def expect(inputs: Inputs, names: list[str], style: Any, head: Callable[..., Tensor]) -> Tensor:
    parameters = select(inputs["parameters"], names)
    states = run_model(inputs["input_ids"], parameters, style, causal=False, real=inputs["mask"])
    return head(states, inputs["mask"], parameters)


def check_both_sides(subject: Subject, operation: str) -> str:
    """Change the last token: the first output must change, because an encoder sees both sides."""
    inputs = draw_input(1, 5)
    ids = inputs["input_ids"].clone()
    ids[0, 4] = (ids[0, 4] + 3) % MASKED
    before, after = (run(subject, operation, {**inputs, "input_ids": x}) for x in (inputs["input_ids"], ids))
    before, after = (x[:, 0] if x.dim() == 3 else x for x in (before, after))
    if difference(before, after) < MIXES:
        raise RefutedError("the last token has no influence on the output at the first", got=after, expected="another output",
                           inputs={"input_ids": inputs["input_ids"], "changed": ids},
                           hint="is there a causal mask? An encoder sees both sides.")  # fmt: skip
    return "the first output depends on the last token"


def check_repeatable(subject: Subject, operation: str) -> str:
    """In evaluation mode the output must not depend on the random generator."""
    inputs = draw_input(2, 5)
    first, second = (run(subject, operation, {**inputs, "seed": seed}) for seed in (0, 1))
    if varies(first, second):
        raise RefutedError("in evaluation mode the same ids give another output", got=second, expected=first,
                           inputs={"input_ids": inputs["input_ids"]},
                           hint="dropout must follow the mode: nn.Dropout, or F.dropout(..., training=self.training)")  # fmt: skip
    return "dropout is off in evaluation mode"


def check_batch(subject: Subject, operation: str) -> str:
    """Each row of a batch must give what it gives alone."""
    inputs = draw_input(3, 5)
    together = run(subject, operation, inputs)
    for row in range(3):
        alone = run(
            subject, operation, {**inputs, **{k: inputs[k][row : row + 1] for k in ("input_ids", "mask")}}
        )
        if relative(together[row : row + 1], alone) > TOLERANCE:
            raise RefutedError(f"row {row} of a batch of 3 gives another output than alone", got=together[row],
                               inputs={"input_ids": inputs["input_ids"]}, expected=alone[0])  # fmt: skip
    return "the rows of a batch do not touch each other"


def draw_labels(operation: str, batch: int, n: int, seed: int = 3) -> Tensor:
    """Return a class per text; or for each token its id or -100, the first two tokens labeled."""
    generator = torch.Generator().manual_seed(seed)
    if operation == "classify":
        return torch.randint(SIZES["labels"], (batch,), generator=generator)
    labels = torch.randint(1, MASKED, (batch, n), generator=generator)
    labels[:, 2:] = -100
    return labels


def run_loss(subject: Subject, operation: str, inputs: Inputs, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Return the loss and the logits."""
    if not facts_of(subject, operation).get("labels"):
        raise NotApplicable("it takes no labels")
    answer = subject.call(operation, {**inputs, "labels": labels})
    if not isinstance(answer.get("loss"), Tensor):
        raise RefutedError("with labels no loss comes back", inputs={"labels": labels}, got=sorted(answer),
                           expected="(loss, logits)")  # fmt: skip
    return answer["loss"].reshape(-1), answer["out"]


def expected_loss(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=-100).reshape(1)


def check_loss(subject: Subject, operation: str) -> str:
    """Compare the loss with the mean cross-entropy of the model's own logits."""
    largest = 0.0
    for batch, n in ((1, 3), (2, 4), (4, 6)):
        inputs = draw_input(batch, n, padding=int(batch > 1))
        labels = draw_labels(operation, batch, n)
        loss, logits = run_loss(subject, operation, inputs, labels)
        expected = expected_loss(logits, labels)
        largest = max(largest, relative(loss, expected))
        if largest > TOLERANCE or not math.isfinite(largest):
            raise RefutedError("the loss is not the mean cross-entropy of the labels" +
                               (", without those of -100" if operation != "classify" else ""),
                               inputs={"input_ids": inputs["input_ids"], "labels": labels}, got=loss, expected=expected)  # fmt: skip
    return f"the loss is the mean cross-entropy (to {largest:.1g})"


def check_reached(subject: Subject, operation: str) -> str:
    """Every parameter must get a gradient from the loss; a pooler that is not used may have none."""
    if not facts_of(subject, operation).get("labels"):
        raise NotApplicable("it takes no labels")
    inputs = draw_input(2, 5)
    answer = subject.call(operation, {**inputs, "labels": draw_labels(operation, 2, 5), "backward": True})
    still = list(answer.get("without_gradient", ()))
    if still:
        raise RefutedError(f"no gradient of the loss reaches {', '.join(still[:3])}", got=still[:8],
                           inputs={"input_ids": inputs["input_ids"]}, expected="a gradient for every parameter",
                           hint="a layer that is never called, or .detach(), .data, torch.no_grad() around the encoder")  # fmt: skip
    return "the loss reaches every parameter"


def fingerprint_operation(subject: Subject, operation: str) -> Fingerprint:
    """Outputs with given parameters, with and without padding, and the loss relative to what it should be."""
    if operation not in subject.operations:
        return {}
    facts = facts_of(subject, operation)
    plain, padded = draw_input(2, 6, seed=3), draw_input(2, 6, padding=2, seed=3)

    def measure_noise() -> float:
        first, second = (run(subject, operation, {**plain, "seed": seed}) for seed in (0, 1))
        return float(varies(first, second))

    def compare_loss() -> Tensor:
        labels = draw_labels(operation, 2, 6)
        loss, logits = run_loss(subject, operation, padded, labels)
        return loss[:1] / expected_loss(logits, labels)

    def count_unreached() -> float:
        answer = subject.call(operation, {**plain, "labels": draw_labels(operation, 2, 6), "backward": True})
        return float(bool(answer.get("without_gradient", ())))

    def run_packings(inputs: Inputs) -> Any:
        packings = list(facts.get("packings") or [None])
        outputs = [keep_real(run(subject, operation, {**inputs, "packing": p}), inputs) for p in packings]
        return outputs if len(outputs) > 1 else outputs[0]

    taken = collect({"noise": measure_noise})
    if not taken.get("noise"):
        taken |= collect({"loss": compare_loss, "unreached": count_unreached})
        if facts.get("roles"):
            taken |= collect({"plain": partial(run_packings, plain), "padded": partial(run_packings, padded)})
    return {f"{operation} {name}": value for name, value in taken.items()}


def fingerprint(subject: Subject) -> Fingerprint:
    """Outputs of the block, the encoder and both models."""
    parts: dict[str, Any] = dict(fingerprint_block(subject, False))
    for operation in WHAT:
        parts |= fingerprint_operation(subject, operation)
    return parts


def list_claims(operation: str) -> Iterable[Claim]:
    """Return the claims about an encoder, a classifier or a masked language model."""
    what = WHAT[operation]
    shape = {"encode": "one state per token", "classify": "one row of logits per text",
             "predict_masked": "one row of logits over the vocabulary per token"}[operation]  # fmt: skip

    def claim(name: str, sentence: str, function: Callable[[Subject, str], str], hint: str = "") -> Claim:
        return Claim(
            f"{what} {name}", sentence, lambda subject: function(subject, operation), operation, hint
        )

    yield claim("shapes", f"The {what} gives {shape}.", check_shape)
    yield claim("padding", f"Padding changes nothing in what the {what} gives.", check_padding,
                "the mask must reach the attention of every block; and a mean must leave padding out")  # fmt: skip
    yield claim("agreement", f"With the same parameters the {what} is transformers' BERT with a usual head.",
                check_agreement, "which state is used, and what is between it and the output?")  # fmt: skip
    yield claim("both sides", f"The {what} sees tokens on both sides.", check_both_sides)
    yield claim("batch", f"Each row of a batch gives what it gives alone in the {what}.", check_batch)
    yield claim(
        "repeatable",
        f"In evaluation mode the {what} gives the same output for the same ids.",
        check_repeatable,
    )
    if operation != "encode":
        yield claim("loss", f"The loss of the {what} is the mean cross-entropy of its labels, -100 left out.",
                    check_loss, "F.cross_entropy takes logits, and leaves labels of -100 out")  # fmt: skip
        yield claim("gradient flow", f"The loss of the {what} reaches every parameter.", check_reached)


SUITE = Suite(
    "bert",
    "BERT: blocks and encoders with padding, classifiers, and masked language models",
    {
        **BLOCK_OPERATIONS,
        "encode": "input_ids [b, t], mask [b, t] (True = real token), parameters by role and packing; returns out [b, t, d]",
        "classify": "the same and labels [b]; returns out (logits [b, labels]) and loss",
        "predict_masked": "the same and labels [b, t], -100 where nothing is predicted; returns out (logits [b, t, "
        "vocabulary]) and loss",
    },
    (*make_claims(causal=False), *(claim for operation in WHAT for claim in list_claims(operation))),
    fingerprint,
)  # fmt: skip
