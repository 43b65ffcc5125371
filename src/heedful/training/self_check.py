"""A finished run checks itself, with everything that it still has in memory."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch

from heedful.evaluation import checks
from heedful.inference.networks import load_best_of, shipped_tokenizer
from heedful.models import Decoder, EncoderDecoder
from heedful.objectives import Evaluation
from heedful.options.training import LoopOptions
from heedful.runs.directory import Run
from heedful.runs.schemas import Check, Checks, Results
from heedful.training.build import Job
from heedful.training.loop import Loop


def check_run_itself(
    run: Run, job: Job, loop: Loop, evaluations: Mapping[str, Evaluation], results: Results
) -> Checks:
    options = job.options
    shipped = shipped_tokenizer(job.model, options.model, options.tokenizer, job.tokenizer)
    run_checks = [
        checks.tokenizer_fits(
            job.tokenizer, job.model.config, pretrained=not job.from_scratch, shipped=shipped
        ),
        *job.scorer.data_checks(job.length, job.room),
        checks.warmup(loop.plan.warmup, loop.plan.total),
        checks.dev_falls_while_train_rises(run.read_metrics(), loop.metric),
        checks.still_improving(run.read_metrics(), loop.metric, suggest_longer(options, loop.epoch())),
        check_reload(run, job),
    ]
    if isinstance(job.model.body, Decoder) or (
        job.command == "pretrain" and isinstance(job.model.body, EncoderDecoder)
    ):
        run_checks.append(checks.causality(job.model))
    if "dev" in evaluations:
        run_checks += job.scorer.dev_checks(evaluations["dev"], results)
    return Checks(tuple(run_checks))


def suggest_longer(options: LoopOptions, epochs: float) -> str:
    """Return the option that makes a run twice as long as one that took this many epochs."""
    for name in ("minutes", "budget_min"):
        if (minutes := getattr(options, name, None)) is not None:
            return f"--{name.replace('_', '-')} {2 * minutes:g}"
    return f"--epochs {math.ceil(2 * epochs)}" if options.steps is None else f"--steps {2 * options.steps}"


def check_reload(run: Run, job: Job) -> Check:
    """Check that the saved model, loaded again, computes the same on a few training rows."""
    reloaded = load_best_of(run).to(job.device)
    with torch.inference_mode():
        return checks.reload(job.scorer.probe(job.model.eval()), job.scorer.probe(reloaded.eval()))
