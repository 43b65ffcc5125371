"""Mistakes in options that can be found before anything is loaded, checked against the registries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path

from heedful.errors import UserError, unknown
from heedful.evaluation.metrics import METRICS, check_metric
from heedful.linear.folders import is_linear
from heedful.methods import METHODS
from heedful.objectives.registry import find_objective, refuse_options_of_others
from heedful.options.model_names import ENSEMBLE, MAJORITY
from heedful.options.training import AdaptOptions, LoopOptions, PretrainOptions
from heedful.options.values import check_bounds
from heedful.problems import PROBLEMS
from heedful.training.build import is_trained_by_steps
from heedful.training.build.model import parse_model_options, pretraining_changes
from heedful.training.build.objective import check_objective
from heedful.training.optimizers import OPTIMIZERS
from heedful.training.schedules import SCHEDULES
from heedful.training.trackers import TRACKERS

STEP_OPTIONS = (
    "lr", "epochs", "steps", "batch_size", "token_budget", "accumulate", "optimizer", "schedule", "warmup",
    "weight_decay", "clip", "eval_every", "patience", "label_smoothing",
)  # fmt: skip
"""Options about gradient steps."""
LINEAR_OPTIONS = (
    "model", "task", "metric", "train_eval_rows", "seed", "threads", "tensorboard", "track", "note", "out",
    "resume", "overwrite", "train_rows", "balanced", "dev_rows", "class_weights", "expect_shares",
    "threshold", "data_dir", "split", "split_seed", "text_column", "pair_column", "label_column", "group",
    "time", "strict", "score_dev", "score_test", "fold", "with_dev",
)  # fmt: skip
"""Options that a model without a network reads."""
LINEAR_VALUES: dict[str, tuple[object, ...]] = {
    "kind": ("label", "labels", "number", "ordered"),
    "objective": ("classify", "labels", "number", "ordered"),
    "device": ("cpu",),
    "precision": ("float32",),
    "processes": (1,),
    "cache_features": (False,),
}
"""Values of other options that say what is true of it anyway."""


def validate(options: LoopOptions) -> None:
    """Refuse options that no run could have; a mistake is a `UserError` that names the option."""
    if isinstance(options, AdaptOptions):
        validate_adapt(options)
    else:
        assert isinstance(options, PretrainOptions)
        validate_pretrain(options)


def validate_adapt(options: AdaptOptions) -> None:
    if options.model == ENSEMBLE:
        folder = f"; for the folder, write ./{ENSEMBLE}" if Path(ENSEMBLE).is_dir() else ""
        what = "is an average of runs, which heedful solve makes of its candidates"
        raise UserError(f"{ENSEMBLE}: {what}{folder}")
    METHODS.find(options.method)
    check_common(options)
    if is_linear(options.model):
        refuse_network_options(options)
    if options.kind is not None:
        PROBLEMS.find(options.kind)
    if options.objective == "auto":
        defaults = [PROBLEMS[name].objective for name in PROBLEMS.paths]
        refuse_options_of_others(options, defaults)  # the task decides which of these it is
    else:
        check_objective(options)
    parse_model_options(options.model, options.model_options)
    if not is_trained_by_steps(options) and not is_linear(options.model):
        refuse_step_options(options)


def refuse_network_options(options: AdaptOptions) -> None:
    """Refuse what a model without a network has no use for."""
    defaults = AdaptOptions()
    what = f"{options.model} is fitted to the words of the texts, without a network or steps"
    read, values = set(LINEAR_OPTIONS), LINEAR_VALUES
    if options.model == MAJORITY:
        what = f"{options.model} counts the labels of train, and reads no text"
        read, values = (
            read - {"class_weights", "expect_shares", "threshold"},
            {**values, "class_weights": ("none",)},
        )
    for field in fields(options):
        value = getattr(options, field.name)
        accepted = (getattr(defaults, field.name), *values.get(field.name, ()))
        if field.name not in read and value not in accepted:
            raise UserError(f"{what}; leave --{field.name.replace('_', '-')} away")


def refuse_step_options(options: AdaptOptions) -> None:
    """Refuse what a head that is fitted without steps has no use for."""
    chosen = f"--method {options.method} --method-options {' '.join(options.method_options)}"
    defaults = AdaptOptions()
    for name in STEP_OPTIONS:
        if getattr(options, name) != getattr(defaults, name):
            raise UserError(f"{chosen} fits the head without steps; leave --{name.replace('_', '-')} away")
    if options.head_start == "random":
        raise UserError(f"{chosen} fits the head; leave --head-start random away")
    if options.head == "family":
        raise UserError(f"{chosen} fits a head of one linear layer; leave --head family away")


def validate_pretrain(options: PretrainOptions) -> None:
    check_common(options)
    objective = find_objective(options.objective, "pretrain")
    if options.metric is not None:
        check_metric(options.metric, objective.problem)
    if options.questions is not None and not objective.writes_text():
        name = options.objective
        raise UserError(f"--questions are answered by writing; --objective {name} does not learn to write")
    for other in ("budget_min", "branch"):
        if options.minutes is not None and getattr(options, other) is not None:
            raise UserError(f"--minutes and --{other.replace('_', '-')} exclude each other")
    refuse_options_of_others(options, [options.objective])
    objective.check_options(options)
    refuse_unused(
        options,
        {
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
