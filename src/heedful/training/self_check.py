"""A run examines itself, with everything it has at hand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch

from heedful.evaluation import checks
from heedful.evaluation.checks import causality, reload
from heedful.inference.loading import load_best_model, shipped_tokenizer
from heedful.models import Decoder
from heedful.objectives import Evaluation
from heedful.runs.directory import Run
from heedful.runs.schemas import Check, Checks, Results
from heedful.training.loop import Loop

if TYPE_CHECKING:
    from heedful.training.build.adapt import Job


def examine(job: Job, loop: Loop, found: Mapping[str, Evaluation], results: Results, run: Run) -> Checks:
    """All checks of a finished run."""
    made = [
        tokenizer_check(job),
        checks.shared_texts(job.task),
        checks.shared_parts(job.task),
        checks.labels_everywhere(job.task),
        job.scoring.truncation(job.max_len, job.room),
        checks.warmup(loop.warmup, loop.total),
        checks.dev_falls_while_train_rises(run.metrics(), loop.metric),
        reload_check(job, run),
    ]
    if isinstance(job.model.body, Decoder):
        made.append(causality(job.model))
    if "dev" in found:
        made += job.scoring.checks(found["dev"], results)
    return Checks(tuple(made))


def tokenizer_check(job: Job) -> Check:
    """Tokenizer and model belong together."""
    shipped = shipped_tokenizer(job.model, job.options.model, job.options.tokenizer, job.tokenizer)
    return checks.tokenizer_fits(
        job.tokenizer, job.model.config, pretrained=not job.from_nothing, shipped=shipped
    )


def reload_check(job: Job, run: Run) -> Check:
    """Saved and loaded again, the model gives the same logits."""
    again = load_best_model(run.best, run.config()["adapt"]).to(job.device)
    with torch.inference_mode():
        return reload(job.scoring.probe(job.model.eval()), job.scoring.probe(again.eval()))
