"""A time budget chooses the size of a new model, its batches, its steps and about 20 evaluations.

Sizes are tried from the smallest up, for a few steps each. The largest one that still reads 20 tokens per
parameter in the time is taken (Hoffmann et al. 2022, Training Compute-Optimal Large Language Models), because
a larger one would stop before it has learned much. What was chosen is stored in config.toml, so that the run
can be resumed and repeated with the same numbers on any machine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from heedful import methods
from heedful.errors import UserError
from heedful.logs import notice
from heedful.options.training import PretrainOptions
from heedful.runs.directory import Run
from heedful.training.build import Job, build_pretrain
from heedful.training.build.model import build_language_model, parse_model_options, starts_from_scratch
from heedful.training.ranks import current_ranks

SCALES = ((0.25, 0.5), (0.5, 0.5), (0.5, 1.0), (1.0, 1.0), (1.5, 1.5), (2.0, 2.0))
"""Candidate sizes: factors of the preset's number of heads (and so its width) and of its layers."""
TOKENS_PER_PARAMETER = 20
BATCHES = (32, 16, 8, 4)
LEAST_STEPS = 500
"""Smaller batches are taken where there would be fewer steps."""
TRIAL_ROWS, TRIAL_STEPS = 4, 3
EVALUATIONS, EVALUATION_SHARE = 20, 0.15
"""Number of evaluations, unless they would take more than this share of the time."""
END_SECONDS = 2.0
"""Time for what follows the training: saving, baselines, samples, checks."""
DECIDED = ("steps", "batch_size", "eval_every", "model_options")
"""What a plan decides where it is not given."""


@dataclass(frozen=True)
class Candidate:
    options: PretrainOptions
    parameters: int
    """Number of parameters without the embedding of tokens."""
    row_seconds: float
    """Time to train on one row."""


def choose_size(job: Job, run: Run, seconds: float) -> Job:
    """Return a job with the size and batch size that suit a time budget; what was given explicitly stays."""
    options = job.options
    assert isinstance(options, PretrainOptions)
    if not current_ranks().alone:
        notice("--minutes: several processes train the model and the batches that are given")
        return job
    tokens = float(job.objective.train_lengths().mean())
    best: Candidate | None = None
    for trial in list_sizes(options, job):
        candidate = measure(trial, job, run)
        if best is not None and seconds / candidate.row_seconds * tokens < (
            TOKENS_PER_PARAMETER * candidate.parameters
        ):
            break
        best = candidate
    assert best is not None
    chosen = best.options
    if chosen.batch_size == PretrainOptions.batch_size and chosen.token_budget is None:
        chosen = replace(chosen, batch_size=choose_batch(seconds, best.row_seconds))
    return build_pretrain(chosen)  # with the weights that the same options have without a plan


def list_sizes(options: PretrainOptions, job: Job) -> Iterator[PretrainOptions]:
    """Yield the options of all candidates, the smallest first; only the given one if its size is given."""
    given = parse_model_options(options.model, options.model_options)
    if not starts_from_scratch(options.model) or {"n_layers", "d_model", "n_heads", "d_head"} & given.keys():
        yield options
        return
    config, sizes = job.model.config, []
    for heads, layers in SCALES:
        n_heads, n_layers = max(1, round(heads * config.n_heads)), max(1, round(layers * config.n_layers))
        if (n_heads, n_layers) not in sizes:
            sizes.append((n_heads, n_layers))
            width = config.d_model // config.n_heads * n_heads
            chosen = [f"n_layers={n_layers}", f"n_heads={n_heads}", f"d_model={width}"]
            if config.n_decoder_layers:
                chosen.append(f"n_decoder_layers={n_layers}")
            yield replace(options, model_options=(*options.model_options, *chosen))


def measure(options: PretrainOptions, job: Job, run: Run) -> Candidate:
    """Train a new model for a few small steps, and see how long they take."""
    torch.manual_seed(options.seed)
    model = build_language_model(options, job.tokenizer)
    method = methods.make("full")
    method.attach(model)
    model.to(job.device)
    rows = min(TRIAL_ROWS, len(job.objective.train_lengths()))
    trial = replace(options, batch_size=rows, token_budget=None, steps=TRIAL_STEPS + 1, minutes=None)
    loop = replace(job, options=trial, model=model, method=method).make_loop(run)
    loop.model.train()
    loop.step(0)  # slower: memory is found and threads are started
    begun = time.monotonic()
    for step in range(1, TRIAL_STEPS + 1):
        loop.step(step)
    seconds = (time.monotonic() - begun) / (TRIAL_STEPS * rows)
    body: Any = model.body
    parameters = sum(p.numel() for p in model.parameters()) - body.embed.tokens.weight.numel()
    return Candidate(options, parameters, max(seconds, 1e-9))


def choose_batch(seconds: float, row_seconds: float) -> int:
    """Return the largest batch size with enough steps in the time."""
    enough = (batch for batch in BATCHES if seconds / (batch * row_seconds) >= LEAST_STEPS)
    return next(enough, BATCHES[-1])


def plan_steps(options: PretrainOptions, seconds: float, step: float, scoring: float) -> PretrainOptions:
    """Return the options with the steps and evaluations that fit in the time, from what each takes."""
    left = seconds - END_SECONDS - scoring  # test is scored at the end
    evaluations = max(1, min(EVALUATIONS, int(EVALUATION_SHARE * left / max(scoring, 1e-9))))
    if options.eval_every is None:
        steps = int((left - evaluations * scoring) / step)
        every = math.ceil(steps / evaluations)
    else:
        every = options.eval_every
        steps = int(left / (step + scoring / every))
    if steps < 1:
        raise UserError(
            f"--minutes {options.minutes:g}: is over before the first step; one takes {step:.2g} s, "
            f"scoring {scoring:.2g} s"
        )
    return replace(options, steps=steps, eval_every=every)


def describe(job: Job) -> str:
    o, config = job.options, job.model.config
    assert isinstance(o, PretrainOptions)
    batches = f"{o.token_budget:,} tokens" if o.token_budget else f"{o.batch_size} rows"
    parameters = sum(p.numel() for p in job.model.parameters())
    return (
        f"--minutes {o.minutes:g}: {config.n_layers} layers of width {config.d_model} "
        f"({parameters:,} parameters), {o.steps:,} steps of {batches}, an evaluation every {o.eval_every:,}"
    )
