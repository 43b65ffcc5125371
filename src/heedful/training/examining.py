"""A run of pretraining examines itself, with everything it has at hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from heedful import checkpoints
from heedful.evaluation import checks
from heedful.evaluation.checks.language import rows_cut, shared_lines, unknown_tokens
from heedful.evaluation.sentences import unknown_rate
from heedful.inference.loading import shipped_tokenizer
from heedful.models import LanguageModel
from heedful.runs.directory import Run
from heedful.runs.schemas import Check, Checks, Results
from heedful.training.loop import Loop

if TYPE_CHECKING:
    from heedful.training.build.pretrain import Job

PROBED = 8
"""Rows of train whose losses are computed again with the saved model."""


def examine(job: Job, loop: Loop, results: Results, run: Run) -> Checks:
    """All checks of a finished run."""
    o, tokens = job.options, job.text.texts
    shipped = shipped_tokenizer(job.model, o.model, o.tokenizer, job.tokenizer)
    made = [
        checks.tokenizer_fits(
            job.tokenizer, job.model.config, pretrained=not job.from_nothing, shipped=shipped
        ),
        unknown_tokens({split: unknown_rate(own, job.tokenizer) for split, own in tokens.items()}),
        shared_lines(job.texts.splits),
        rows_cut(tokens["train"].lengths, job.block, job.room, o.pack and o.objective != "span"),
        checks.warmup(loop.warmup, loop.total),
        checks.dev_falls_while_train_rises(run.metrics(), loop.metric),
        reload_check(job, run),
    ]
    if job.model.config.kind != "encoder":
        made.append(checks.causality(job.model))
    return Checks(tuple(made))


def reload_check(job: Job, run: Run) -> Check:
    """Saved and loaded again, the model gives the same losses."""
    again = checkpoints.load(run.best, head=job.model.kind)
    assert isinstance(again, LanguageModel)
    return checks.reload(probe(job, job.model), probe(job, again.to(job.device)))


def probe(job: Job, model: LanguageModel) -> Tensor:
    """The loss of some rows of train, one number each."""
    rows = np.arange(min(PROBED, len(job.text.train_lengths())))
    model.eval()
    with torch.inference_mode():
        parts = (part.to(job.device) for part in job.text.prepare(rows, 0, len(rows)))
        return torch.stack([total for part in parts for total in job.text.losses(model, part).sums.values()])
