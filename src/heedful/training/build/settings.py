"""Chooses the settings of `adapt` that the user did not give, from the task, the model and the method.

The rules were measured: docs/adapting.md has them in plain words, docs/results.md the table behind them. What
was chosen is printed, and stored: config.toml has the values, env.json the reasons.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from heedful import checkpoints
from heedful.data import Split, Task
from heedful.methods import METHODS
from heedful.models import Classifier
from heedful.models.heads import LinearHead, OrdinalHead
from heedful.options.training import FIXED_FULL_RATE, FIXED_SETTINGS, AdaptOptions, has_prompt_length
from heedful.text import Tokenizer
from heedful.training.build.model import starts_from_scratch

Ints = npt.NDArray[np.int64]

BATCH_SIZE = 16
EPOCHS = 3
LEAST_STEPS = 200
"""Fewer steps stop before the model has learned a small task."""
STEPS_PER_LABEL = 30
"""A task with many labels needs more steps: each label is in few of the batches."""
MOST_EPOCHS = 20
"""More passes over few rows of many labels cost time and were not better."""
WARMUP = 0.1
EVALUATIONS = 10
"""The most evaluations of a run whose epochs are short."""
CONTRASTIVE_STEPS = 40
"""Number of steps of contrastive tuning for two labels; more change the score of few rows little."""
MOST_CONTRASTIVE_STEPS = 200
CONTRASTIVE_EVALUATIONS = 2
"""Each evaluation of contrastive tuning fits the head again, which reads all training texts."""
LENGTHS = (32, 64, 128, 256)
"""The numbers of tokens to choose from; the texts' lengths are measured on at most `SAMPLE` of them."""
COVERED = 0.95
"""Share of the texts that are read whole, if they are not too long."""
STEP_SETTINGS = ("lr", "batch_size", "epochs", "warmup")
"""Settings that a run without steps does not have."""
SAMPLE = 2000
PROMPT_LENGTHS = (8, 128)
"""The fewest and the most vectors of a prompt: as many as a usual text has tokens, at most as long again."""
OTHER_SHARES = 0.1
"""From this total variation distance on, the label shares of dev count as different from those of train."""
BEYOND_CHANCE = 3.0
"""And from this many times the distance on that two samples of their sizes have by chance."""


@dataclass(frozen=True)
class Choice:
    """A setting that was chosen, and why."""

    value: Any
    reason: str


@dataclass(frozen=True)
class TaskFacts:
    """What the rules read."""

    rows: int
    """Number of rows to train on."""
    labels: Ints
    """Number of rows per label in train."""
    dev_labels: Ints | None
    """Number of rows per label in dev, if there is one."""
    lengths: Ints
    """Number of tokens of a sample of the texts."""
    room: int
    """Number of tokens that the model has room for."""
    width: int
    """The model's d_model."""
    new_linear_head: bool
    """Whether the head is one new linear layer, which can be fitted before training."""
    one_label: bool = True
    """Whether each text has one label."""


def choose_pool(options: AdaptOptions) -> tuple[AdaptOptions, dict[str, Choice]]:
    """Return the options with what the head reads, if the user left it open."""
    if options.pool is not None:
        return options, {}
    declared = None if starts_from_scratch(options.model) else checkpoints.declared_pooling(options.model)
    if declared is None:
        choice = Choice(FIXED_SETTINGS["pool"], "the model's folder declares no pooling")
    else:
        choice = Choice(declared, "the model's folder declares it (1_Pooling)")
    return replace(options, pool=choice.value), {"pool": choice}


def choose_prompt_length(
    options: AdaptOptions, task: Task, tokenizer: Tokenizer
) -> tuple[AdaptOptions, dict[str, Choice]]:
    """Return the options with the number of vectors of a prompt, if the user left it open."""
    if options.method != "prompt" or has_prompt_length(options.method_options):
        return options, {}
    lengths = sample_lengths(task, tokenizer)
    median = round(float(np.median(lengths))) if len(lengths) else PROMPT_LENGTHS[-1]
    length = min(max(median, PROMPT_LENGTHS[0]), PROMPT_LENGTHS[-1])
    choice = Choice((*options.method_options, f"length={length}"), f"the median text has {median:,} tokens")
    return replace(options, method_options=choice.value), {"method_options": choice}


def choose_settings(
    options: AdaptOptions, facts: TaskFacts | None, *, takes_steps: bool = True
) -> tuple[AdaptOptions, dict[str, Choice]]:
    """Return the options with every setting filled in, and what was chosen.

    Without facts (free answers, models from scratch) the settings are fixed numbers. A run that takes no
    steps has no settings of steps, and its head is fitted.
    """
    if facts is None:
        choices = {name: Choice(value, "fixed") for name, value in FIXED_SETTINGS.items()}
        choices["lr"] = Choice(fixed_learning_rate(options.method), "fixed")
    else:
        choices = {
            "lr": choose_learning_rate(options, facts),
            "batch_size": Choice(BATCH_SIZE, "small batches take more steps per epoch"),
            "epochs": choose_epochs(options, facts),
            "warmup": Choice(WARMUP, "a tenth of the steps"),
            "max_len": choose_length(facts),
            "class_weights": choose_class_weights(facts.labels, facts.dev_labels)
            if facts.one_label
            else Choice("none", "each label, or the number, is learned by itself"),
            "head_start": choose_head_start(facts),
        }
    if options.token_budget is not None:
        choices.pop("batch_size")
    if facts is not None and options.method == "contrastive" and options.epochs is None:
        choices["steps"] = choose_contrastive_steps(facts)
        choices.pop("epochs")
    elif options.steps is not None:
        choices["epochs"] = Choice(EPOCHS, "--steps decides")
    if not takes_steps:
        choices = {name: choice for name, choice in choices.items() if name not in STEP_SETTINGS}
        choices["head_start"] = Choice("fitted", "the method fits the head and takes no steps")
    chosen = {name: choice for name, choice in choices.items() if not_given(options, name)}
    options = replace(options, **{name: choice.value for name, choice in chosen.items()})
    if options.method == "contrastive" and options.steps is not None and options.eval_every is None:
        rarely = Choice(math.ceil(options.steps / CONTRASTIVE_EVALUATIONS), "each evaluation fits the head")
        chosen["eval_every"] = rarely
        options = replace(options, eval_every=rarely.value)
    elif facts is not None and "epochs" in chosen:
        every = evaluation_interval(options, facts.rows)
        if every is not None:
            chosen["eval_every"] = Choice(every, f"{EVALUATIONS} evaluations, since epochs are short")
            options = replace(options, eval_every=every)
    return options, chosen


def not_given(options: AdaptOptions, name: str) -> bool:
    return getattr(options, name) in (None, "auto")


def choose_learning_rate(options: AdaptOptions, facts: TaskFacts) -> Choice:
    method = METHODS[options.method]
    rate = method.learning_rate_for(facts.width)
    if rate == method.learning_rate:
        return Choice(rate, f"usual for {options.method}")
    return Choice(rate, f"usual for {options.method} and a width of {facts.width}")


def usual_batch_size(model: str) -> int:
    """Return the batch size that a run of this model chooses."""
    return int(FIXED_SETTINGS["batch_size"]) if starts_from_scratch(model) else BATCH_SIZE


def fixed_learning_rate(method: str) -> float:
    """Return the rate where no rule was measured, and of runs before version 0.2."""
    return FIXED_FULL_RATE if method == "full" else METHODS[method].learning_rate


def choose_epochs(options: AdaptOptions, facts: TaskFacts) -> Choice:
    """Return enough epochs for a minimum number of steps, which grows with the number of labels."""
    if options.token_budget is None:
        per_epoch = math.ceil(facts.rows / (options.batch_size or BATCH_SIZE))
    else:
        tokens = facts.rows * float(facts.lengths.mean()) if len(facts.lengths) else facts.rows
        per_epoch = math.ceil(tokens / options.token_budget)
    for_labels = min(MOST_EPOCHS * per_epoch, STEPS_PER_LABEL * len(facts.labels))
    least = max(LEAST_STEPS, for_labels)
    epochs = max(EPOCHS, math.ceil(least / per_epoch))
    if epochs == EPOCHS:
        return Choice(epochs, f"{epochs * per_epoch:,} steps are enough for {len(facts.labels)} labels")
    return Choice(epochs, f"at least {least:,} steps for {len(facts.labels)} labels")


def choose_contrastive_steps(facts: TaskFacts) -> Choice:
    """Return a number of steps that depends on the labels alone: pairs are sampled, not counted."""
    n = int(np.count_nonzero(facts.labels))
    steps = min(MOST_CONTRASTIVE_STEPS, CONTRASTIVE_STEPS * math.ceil(n / 2))
    return Choice(steps, f"{CONTRASTIVE_STEPS} for each two labels, at most {MOST_CONTRASTIVE_STEPS}")


def evaluation_interval(options: AdaptOptions, rows: int) -> int | None:
    """Return after how many steps to score dev, if an epoch is too short for it; None for every epoch."""
    given = options.eval_every is not None or options.token_budget is not None or options.steps is not None
    assert options.epochs is not None
    if given or options.epochs <= EVALUATIONS:
        return None
    assert options.batch_size is not None
    return math.ceil(math.ceil(rows / options.batch_size) * options.epochs / EVALUATIONS)


def choose_length(facts: TaskFacts) -> Choice:
    """Return the shortest length that covers nearly all texts, or the longest of `LENGTHS`."""
    longest = min(LENGTHS[-1], facts.room)
    for length in LENGTHS:
        share = float(np.mean(facts.lengths <= length)) if len(facts.lengths) else 1.0
        if share >= COVERED and length <= longest:
            return Choice(length, f"{share:.0%} of the texts are not longer")
    share = float(np.mean(facts.lengths > longest))
    why = "more tokens cost time" if longest == LENGTHS[-1] else "the model has room for no more"
    return Choice(longest, f"{share:.0%} of the texts are longer; {why}")


def choose_head_start(facts: TaskFacts) -> Choice:
    if not facts.new_linear_head:
        return Choice("random", "the head is not one new linear layer")
    return Choice("fitted", "the model is pretrained: its states tell much about the labels")


def choose_class_weights(labels: Ints, dev_labels: Ints | None) -> Choice:
    """Return balanced weights if dev is closer to equal shares than to those of train.

    A dev split with the shares of train asks for the answers that are most often right, so that no label is
    weighted. One with other shares says that the texts to come will be unlike train.
    """
    train = labels / max(1, labels.sum())
    if dev_labels is None or not dev_labels.sum():
        return Choice("none", "the shares of the labels are those to expect")
    dev = dev_labels / dev_labels.sum()
    if distance(train, dev) < max(OTHER_SHARES, BEYOND_CHANCE * chance_distance(labels, dev_labels)):
        return Choice("none", "dev has the same shares of labels as train")
    if distance(dev, np.full(len(dev), 1 / len(dev))) < distance(dev, train):
        return Choice("balanced", "the labels of train are imbalanced, those of dev are not")
    return Choice("none", "dev has other shares of labels than train, but no equal ones")


def distance(one: npt.NDArray[np.float64], other: npt.NDArray[np.float64]) -> float:
    """Return the total variation distance of two distributions."""
    return float(np.abs(one - other).sum() / 2)


def chance_distance(one: Ints, other: Ints) -> float:
    """Return the total variation distance to expect between two samples of one distribution."""
    shares = (one + other) / (one + other).sum()
    deviations = np.sqrt(shares * (1 - shares) * (1 / one.sum() + 1 / other.sum()))
    return float(math.sqrt(2 / math.pi) * deviations.sum() / 2)


def read_facts(
    options: AdaptOptions, task: Task, tokenizer: Tokenizer, model: Classifier, room: int
) -> TaskFacts:
    train, dev = task.splits["train"], task.splits.get("dev")
    return TaskFacts(
        rows=min(options.train_rows or len(train), len(train)),
        labels=count_labels(task, train),
        dev_labels=None if dev is None or dev.targets is None else count_labels(task, dev),
        lengths=sample_lengths(task, tokenizer),
        room=room,
        width=model.config.d_model,
        new_linear_head=isinstance(model.head, LinearHead | OrdinalHead)
        and "head.out.weight" in model.report.new,
        one_label=task.kind not in ("labels", "number"),
    )


def count_labels(task: Task, split: Split) -> Ints:
    """Return the number of rows of each label; a number counts as one label."""
    assert split.targets is not None
    if task.kind == "labels":
        return np.asarray(split.targets.sum(0, dtype=np.int64))
    if task.kind == "number":
        return np.array([len(split)])
    return np.bincount(split.targets, minlength=len(task.label_names))


def sample_lengths(task: Task, tokenizer: Tokenizer) -> Ints:
    """Return the numbers of tokens of at most about `SAMPLE` training texts."""
    train = task.splits["train"]
    step = max(1, len(train) // SAMPLE)
    pairs = None if train.pairs is None else train.pairs[::step]
    return np.array([len(one.ids) for one in tokenizer.encode_batch(train.texts[::step], pairs)], np.int64)


def describe_choices(chosen: Mapping[str, Choice], facts: TaskFacts) -> str:
    """Return the line that a run prints about what was chosen for it, as options."""
    words = [f"--{name.replace('_', '-')} {choice.value}" for name, choice in chosen.items()]
    of_labels = f" of {len(facts.labels)} labels" if len(facts.labels) > 1 else ""
    return f"chosen for {facts.rows:,} rows{of_labels}: {' '.join(words)}"
