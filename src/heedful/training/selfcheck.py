"""A run examines itself, with everything it has at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from heedful.data import tokenize
from heedful.evaluation import checks
from heedful.evaluation.baselines import bag_of_words
from heedful.evaluation.checks import causality, reload
from heedful.models import Decoder
from heedful.objectives import Evaluation
from heedful.runs.directory import Run
from heedful.runs.schemas import Check, Checks, Results
from heedful.text import load as load_tokenizer
from heedful.training.loading import load_best
from heedful.training.loop import Loop

if TYPE_CHECKING:
    from heedful.training.adapt import Job


def examine(job: Job, loop: Loop, found: Mapping[str, Evaluation], results: Results, run: Run) -> Checks:
    """All checks of a finished run."""
    made = [
        tokenizer_check(job),
        checks.shared_texts(job.task),
        checks.shared_parts(job.task),
        checks.labels_everywhere(job.task),
        truncation_check(job),
        checks.warmup(loop.warmup, loop.total),
        checks.dev_falls_while_train_rises(run.metrics()),
        reload_check(job, run),
    ]
    if isinstance(job.model.body, Decoder):
        made.append(causality(job.model))
    if "dev" in found:
        made += score_checks(job, found["dev"], results)
    return Checks(tuple(made))


def score_checks(job: Job, dev: Evaluation, results: Results) -> list[Check]:
    """What dev's predictions say."""
    assert dev.labels is not None
    assert dev.predicted is not None
    names = job.task.label_names
    predicted = results.splits["dev"].predicted_counts or {}
    counts = dict(zip(names, np.bincount(dev.labels, minlength=len(names)).tolist(), strict=True))
    bag = bag_of_words(job.task, job.plain.rows)
    split = job.task.splits["dev"]
    right_of_bag = bag.predict(split.texts, split.pairs) == dev.labels
    simple = results.splits["dev"].baselines or {}
    # The bag of words has a check of its own, on the same examples; that one can tell smaller differences.
    best = max((value for name, value in simple.items() if name != "bag_of_words"), default=0.0)
    return [
        checks.collapse(predicted, counts, dev.value),
        checks.beats_bag_of_words(dev.predicted == dev.labels, right_of_bag),
        checks.evaluation_size(dev.n, dev.value, best, "always giving one label"),
    ]


def tokenizer_check(job: Job) -> Check:
    """Tokenizer and model belong together."""
    shipped = None
    if job.options.tokenizer is not None and not job.from_nothing:
        shipped = load_tokenizer(job.options.model)
    return checks.tokenizer_fits(
        job.tokenizer, job.model.config, pretrained=not job.from_nothing, shipped=shipped
    )


def truncation_check(job: Job) -> Check:
    """How much of the training text is cut off."""
    plain = job.plain
    lengths = plain.tokens["train"].lengths
    if plain.tokens["train"].truncated_rows:
        lengths = tokenize(job.task.splits["train"], job.tokenizer).lengths
    return checks.truncation(lengths, job.max_len, job.room)


def reload_check(job: Job, run: Run) -> Check:
    """Saved and loaded again, the model gives the same logits."""
    again = load_best(run, job.options.model, job.options.attention).to(job.device)
    rows = np.arange(min(16, len(job.plain.tokens["train"])))
    inputs = job.plain.inputs("train", rows).to(job.device)
    with torch.inference_mode():
        before = job.plain.logits(job.model.eval(), inputs)
        after = job.plain.logits(again.eval(), inputs)
    return reload(before, after)
