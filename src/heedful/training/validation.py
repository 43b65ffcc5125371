"""Mistakes in options that can be found before anything is loaded, checked against the registries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from heedful import methods
from heedful.errors import UserError, unknown
from heedful.evaluation.metrics import METRICS
from heedful.options.training import AdaptOptions, LoopOptions, PretrainOptions
from heedful.options.values import check_bounds
from heedful.training.build.model import parse_model_options, pretraining_changes
from heedful.training.optimizers import OPTIMIZERS
from heedful.training.schedules import SCHEDULES
from heedful.training.trackers import TRACKERS


def validate(options: LoopOptions) -> None:
    """Refuse options that no run could have; a mistake is a `UserError` that names the option."""
    if isinstance(options, AdaptOptions):
        validate_adapt(options)
    else:
        assert isinstance(options, PretrainOptions)
        validate_pretrain(options)


def validate_adapt(options: AdaptOptions) -> None:
    """Refuse options that `adapt` cannot combine."""
    method = methods.METHODS.find(options.method)
    check_common(options)
    joint, text2text = options.objective == "joint", options.objective == "text2text"
    refuse_unused(
        options,
        {
            "--objective joint": (joint, ("unlabeled", "mlm_first", "mlm_weight", "mlm_rate")),
            "--objective text2text": (text2text, ("label_words",)),
        },
    )
    if text2text and options.head != "auto":
        raise UserError(f"--objective text2text writes label words and has no --head {options.head}")
    if options.unlabeled is not None and not options.unlabeled.is_file():
        raise UserError(f"{options.unlabeled}: there is no such file")
    if joint and method.frozen_body:
        raise UserError(f"--objective joint trains the body; --method {options.method} keeps it frozen")
    if options.pool is not None and options.objective in ("answer", "text2text"):
        raise UserError(f"--pool is for classifying; --objective {options.objective} writes text")
    parse_model_options(options.model, options.model_options)


def validate_pretrain(options: PretrainOptions) -> None:
    """Refuse options that `pretrain` cannot combine."""
    check_common(options)
    if options.questions is not None and options.objective == "masked":
        raise UserError("--questions are answered by writing; --objective masked does not learn to write")
    masked, span = options.objective == "masked", options.objective == "span"
    refuse_unused(
        options,
        {
            "--objective masked": (masked, ("mask_rate", "whole_words")),
            "--objective span": (span, ("span_form", "span_loss", "salient")),
            "--span-form window": (options.span_form == "window", ("window_left", "window_right")),
            "--questions": (options.questions is not None, ("questions_share",)),
        },
    )
    pretraining_changes(options)


def check_common(options: LoopOptions) -> None:
    """Refuse numbers outside their bounds, and names that no registry has."""
    check_bounds(options)
    OPTIMIZERS.find(options.optimizer)
    if options.schedule not in SCHEDULES:
        raise unknown("schedule", options.schedule, SCHEDULES)
    if options.metric is not None:
        METRICS.find(options.metric)
    for name in options.track:
        TRACKERS.find(name)


def refuse_unused(options: LoopOptions, owners: Mapping[str, tuple[bool, Sequence[str]]]) -> None:
    """Refuse options that change nothing, because the choice that they belong to was not made."""
    defaults = type(options)()
    for owner, (chosen, names) in owners.items():
        for name in names:
            if not chosen and getattr(options, name) != getattr(defaults, name):
                raise UserError(f"--{name.replace('_', '-')} belongs to {owner}")
