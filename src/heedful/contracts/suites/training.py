"""Training habits: the learning rate, the loss of next tokens, steps, evaluation, and what selects a model."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.contracts.asking import Inputs, ask, collect, require_agreement
from heedful.contracts.heat_map import draw_heat_maps
from heedful.contracts.subject import NotApplicable, Subject
from heedful.contracts.suite import Claim, Fingerprint, Suite
from heedful.contracts.suites.training_loops import LOOP_CLAIMS, LOOP_OPERATIONS, fingerprint_loops
from heedful.contracts.verdicts import RefutedError

TOTAL, WARMUP, PEAK = 100, 10, 0.5
BEYOND = 140
"""Steps are asked for up to here: runs are longer than planned."""
PAD, WORDS = 0, 6


def rates_of(subject: Subject, steps: list[int] | None = None) -> Tensor:
    """Return the learning rates, or multiples of the largest, at some steps."""
    steps = list(range(BEYOND)) if steps is None else steps
    return ask(subject, "learning_rate", steps=steps, total=TOTAL, warmup=WARMUP, peak=PEAK).double()


def refute_rates(message: str, rates: Tensor, at: int, expected: str) -> RefutedError:
    shown = rates[max(0, at - 3) : at + 4]
    drawn = draw_heat_maps(
        {"every tenth learning rate": (rates[::10] / rates.abs().max())[None].tolist()}, "", "step / 10"
    )
    return RefutedError(message, inputs={"total": TOTAL, "warmup": WARMUP, "peak": PEAK, "steps": f"{max(0, at - 3)} to {at + 3}"},
                        got=shown, expected=expected, heat_map=drawn)  # fmt: skip


def check_no_rise(subject: Subject) -> str:
    """After its peak the learning rate must never rise, also beyond the planned end."""
    rates = rates_of(subject)
    peak = int(rates[: WARMUP + 2].argmax())
    rises = (rates[peak + 1 :] > rates[peak:-1] + 1e-9).nonzero().flatten()
    if len(rises):
        at = peak + 1 + int(rises[0])
        where = "beyond the planned end" if at >= TOTAL else "during training"
        raise refute_rates(
            f"the learning rate rises again {where}, at step {at}",
            rates,
            at,
            "a learning rate that stays or falls",
        )
    return "after its peak the learning rate never rises"


def check_positive(subject: Subject) -> str:
    """No learning rate may be negative."""
    rates = rates_of(subject)
    if float(rates.min()) < 0:
        at = int((rates < 0).nonzero()[0])
        raise refute_rates(f"the learning rate is negative at step {at}", rates, at, "0 or more")
    return "no learning rate is negative"


def check_warmup(subject: Subject) -> str:
    """The learning rate must rise during warm-up, and reach its peak at the end of it."""
    if not subject.operations["learning_rate"].get("warmup", True):
        raise NotApplicable("it has no warm-up")
    rates = rates_of(subject)
    begin = rates[: WARMUP - 1]
    if not bool((begin[1:] > begin[:-1]).all()):
        at = int((begin[1:] <= begin[:-1]).nonzero()[0]) + 1
        raise refute_rates(
            f"the learning rate does not rise during warm-up, at step {at}",
            rates,
            at,
            "a rise from 0 to the peak",
        )
    peak = subject.operations["learning_rate"].get("peak")
    top, expected = float(rates.max()), PEAK if peak else 1.0
    if abs(top - expected) > 0.02 * expected:
        raise refute_rates(
            f"the largest learning rate is {top:.4g} instead of {expected:g}",
            rates,
            WARMUP,
            f"{expected:g} after {WARMUP} steps",
        )
    if int(rates.argmax()) > WARMUP + 1:
        raise refute_rates(
            f"the peak is at step {int(rates.argmax())}", rates, WARMUP, f"the peak after {WARMUP} steps"
        )
    return f"it rises for {WARMUP} steps, to its peak"


def draw_tokens(rows: int, n: int, padding: int) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(rows * 10 + n)
    tokens = torch.randint(1, WORDS, (rows, n), generator=generator)
    if padding:
        tokens[0, n - padding :] = PAD
    return {"logits": torch.randn(rows, n, WORDS, generator=generator) * 2, "tokens": tokens, "pad_id": PAD}


def expected_loss(inputs: Inputs) -> Tensor:
    logits, tokens = inputs["logits"][:, :-1], inputs["tokens"][:, 1:]
    return F.cross_entropy(logits.flatten(0, 1), tokens.flatten(), ignore_index=PAD).reshape(1)


def run_loss(subject: Subject, inputs: Inputs) -> Tensor:
    return ask(subject, "next_token_loss", **inputs).reshape(-1)


def check_shift(subject: Subject) -> str:
    """Without padding the loss must be that of the next tokens."""
    largest = require_agreement(
        [draw_tokens(1, 2, 0), draw_tokens(1, 3, 0), draw_tokens(3, 5, 0)], partial(run_loss, subject), expected_loss,
        what="the loss is not the mean cross-entropy of the next tokens",
    )  # fmt: skip
    return f"each position is asked for the next token (to {largest:.1g})"


def check_padding(subject: Subject) -> str:
    """Padding must have no part in the loss."""
    if not subject.operations["next_token_loss"].get("padding", True):
        raise NotApplicable("it knows nothing of padding")
    largest = require_agreement(
        [draw_tokens(1, 4, 1), draw_tokens(2, 4, 2), draw_tokens(3, 6, 3)], partial(run_loss, subject), expected_loss,
        what="with padding the loss is not the mean over real next tokens",
    )  # fmt: skip
    return f"padding has no part in the loss (to {largest:.1g})"


def fingerprint(subject: Subject) -> Fingerprint:
    """Learning rates, losses, and what loops do."""
    measures: dict[str, Any] = {}
    if "learning_rate" in subject.operations:
        measures["rates"] = lambda: scale_rates(rates_of(subject))
    if "next_token_loss" in subject.operations:
        measures["loss"] = lambda: run_loss(subject, draw_tokens(3, 6, 0))
        if subject.operations["next_token_loss"].get("padding", True):
            measures["loss with padding"] = lambda: run_loss(subject, draw_tokens(2, 4, 2))
    return {**collect(measures), **fingerprint_loops(subject)}


def scale_rates(rates: Tensor) -> Tensor:
    """Return the rates relative to the largest, so that multiples and rates are the same."""
    top = float(rates.abs().max())
    return rates / top if math.isfinite(top) and top else rates


SUITE = Suite(
    "training",
    "training habits: the learning rate, the loss of next tokens, steps, evaluation, and what selects a model",
    {
        "learning_rate": "steps (a list), total, warmup (steps) and peak; returns out, the learning rate at each step or its multiple",
        "next_token_loss": "logits [b, t, vocabulary], tokens [b, t] and pad_id; returns out, the loss",
        **LOOP_OPERATIONS,
    },
    (
        Claim("no rise", "After its peak the learning rate never rises, also beyond the planned end.", check_no_rise, "learning_rate",
              "what is the progress after the last planned step? min(progress, 1)"),
        Claim("positive", "No learning rate is negative.", check_positive, "learning_rate", "max(0, ...)"),
        Claim("warm-up", "The learning rate rises to its peak during warm-up.", check_warmup, "learning_rate",
              "(step + 1) / warmup; and the decay begins where the warm-up ends"),
        Claim("next tokens", "The loss asks each position for the next token.", check_shift, "next_token_loss",
              "logits[:, :-1] and tokens[:, 1:]"),
        Claim("padding", "Padding has no part in the loss.", check_padding, "next_token_loss", "ignore_index"),
        *LOOP_CLAIMS,
    ),
    fingerprint,
)  # fmt: skip
