"""The length of a run: fitted to a time budget, or branched off another run.

With warm-up-stable-decay, all runs that differ in their length alone are the same up to where the shorter
one begins to decay. So a longer run need not start anew: `--branch` takes the checkpoint that a run keeps
from there (or one before it) and goes on to the same bits as a run of the new length from the start. The
warm-up is as many steps as the first run's.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from heedful.errors import UserError
from heedful.logs import notice
from heedful.options.training import LoopOptions, PretrainOptions
from heedful.runs.checksums import find_damage
from heedful.runs.directory import CONFIG, METRICS, TIMING, Run
from heedful.training import checkpoint, resume, time_plan
from heedful.training.build import Job
from heedful.training.loop import Loop
from heedful.training.ranks import current_ranks
from heedful.training.record import config_values

O = TypeVar("O", bound=LoopOptions)  # noqa: E741
TRIAL_SHARE, TRIAL_SECONDS, TRIAL_STEPS = 0.03, 20.0, 5
"""How long the speed is measured: a share of the budget, at most 20 seconds, at least 5 steps."""
MARGIN = 0.97
"""The share of the budget that is planned: a machine is not always as fast as at the beginning."""
MAY_DIFFER = (
    "epochs", "steps", "minutes", "budget_min", "branch", "warmup", "eval_every", "patience", "select",
    "test", "score_test", "sentences", "tensorboard", "track", "threads", "processes", "precision", "block",
    "train_eval_rows",
)  # fmt: skip
"""Options in which a branch may be another than what it goes on from; the last ones are found again."""


def plan_length(job: Job, run: Run, begun: float | None = None) -> Job:
    """Fix the number of steps of a new run, by its time budget or by the run that it branches from.

    The checkpoint of that run is copied. A job of `adapt`, and a run that is resumed, stay as they are.
    `begun` is when the run began, by `time.monotonic`; all that has passed since is part of `--minutes`.
    """
    options, ranks = job.options, current_ranks()
    resumed = options.resume and (run.path / CONFIG).is_file()
    if not isinstance(options, PretrainOptions) or ranks.broadcast(resumed):
        return job
    if options.minutes is not None and options.steps is None:
        return plan_minutes(job, run, begun or time.monotonic())
    if options.minutes is not None:
        notice(f"--steps {options.steps:,} decides the length of the run, not --minutes")
    spent, state = 0.0, None
    if options.branch is not None:
        options, state = branch_options(replace(options, block=job.length))
        spent = state.seconds
    if options.budget_min is not None and options.steps is None:
        steps = measure_steps_in_budget(options, lambda trial: job.make_loop(run, trial), spent)
        options = replace(options, steps=steps + (0 if state is None else state.step))
        notice(f"{options.steps:,} steps take {options.budget_min:g} minutes here")
    if state is not None:
        loop = job.make_loop(run, options)
        if ranks.first:
            copy_branch_point(run, options, loop, state)
    return replace(job, options=options)


def plan_minutes(job: Job, run: Run, begun: float) -> Job:
    """Choose the size, the batches, the steps and the evaluations of a run by `--minutes`."""
    assert isinstance(job.options, PretrainOptions)
    minutes = job.options.minutes or 0.0
    end = begun + 60 * minutes
    job = time_plan.choose_size(job, run, MARGIN * (end - time.monotonic()))
    options, ranks = job.options, current_ranks()
    assert isinstance(options, PretrainOptions)
    loop = job.make_loop(run, replace(options, steps=10**4, minutes=None))
    speed = ranks.broadcast(measure_speed(loop, 60 * minutes))
    left = ranks.broadcast(MARGIN * (end - time.monotonic()))
    job = replace(job, options=time_plan.plan_steps(options, left, *speed))
    notice(time_plan.describe(job))
    return job


def restore_length(options: O) -> O:
    """For a run that is resumed, take over what a measurement or a branch decided when it began."""
    if (
        not isinstance(options, PretrainOptions)
        or options.out is None
        or not (options.out / CONFIG).is_file()
    ):
        return options
    stored = resume.stored_options(options.out, "pretrain")
    changes: dict[str, Any] = {}
    if options.budget_min is not None and options.steps is None:
        changes["steps"] = stored.get("steps")
    if options.minutes is not None and options.steps is None:
        decided = {name: stored.get(name, getattr(options, name)) for name in time_plan.DECIDED}
        changes |= decided | {"model_options": tuple(decided["model_options"])}
    if options.branch is not None:
        changes["warmup"] = stored.get("warmup", options.warmup)
    return replace(options, **changes)


def take_over_choices(options: O) -> O:
    """For a branch, take over the precision and the threads of the run that it goes on from.

    Both change bits, and the precision may have been decided by a measurement, which is never made twice.
    """
    if not isinstance(options, PretrainOptions) or options.branch is None:
        return options
    stored = resume.stored_options(options.branch, "pretrain")
    changes: dict[str, Any] = {}
    if options.precision == "auto":
        changes["precision"] = stored.get("precision", options.precision)
    if options.threads is None and stored.get("processes", 1) == current_ranks().size:
        changes["threads"] = stored.get("threads")
    return replace(options, **changes)


def measure_steps_in_budget(
    options: PretrainOptions, make: Callable[[PretrainOptions], Loop], spent: float = 0.0
) -> int:
    """Return how many steps fit in `--budget-min` minus `spent` seconds, by the speed of the first ones.

    Evaluations are included. The model stays as it was. The first of several processes decides.
    """
    assert options.budget_min is not None
    budget = 60 * options.budget_min
    loop = make(replace(options, steps=10**4, budget_min=None))
    a_step, scoring = measure_speed(loop, budget)
    between = options.eval_every or (loop.plan.epoch_ends[0] - loop.objective.first_steps)
    steps = current_ranks().broadcast(
        int((MARGIN * (budget - spent) - 2 * scoring) / (a_step + scoring / between))
    )
    if steps < 1:
        raise UserError(
            f"--budget-min {options.budget_min:g}: is over before the first step; one takes {a_step:.2g} s, "
            f"scoring {scoring:.2g} s"
        )
    return steps


def measure_speed(loop: Loop, budget: float) -> tuple[float, float]:
    """Return the seconds of a step and of an evaluation, measured for a part of the budget (in seconds).

    The model stays as it was.
    """
    before = loop.weights()
    loop.model.train()
    allowed = min(TRIAL_SHARE * budget, TRIAL_SECONDS)
    begun, done, first = time.monotonic(), 0, 0.0
    while current_ranks().broadcast(done < TRIAL_STEPS or time.monotonic() - begun - first < allowed):
        loop.step(done)
        done += 1
        if done == 1:
            first = time.monotonic() - begun  # slower: memory is found and threads are started
    a_step = (time.monotonic() - begun - first) / (done - 1)
    begun = time.monotonic()
    for split, rows in (("train", loop.train_rows), ("dev", None)):
        if current_ranks().first and split in loop.objective.splits and (rows is None or len(rows)):
            loop.score_split(split, rows)
    scoring = time.monotonic() - begun
    checkpoint.copy_weights(before, loop.parameters)
    loop.exchange = None
    return a_step, scoring


def branch_options(options: PretrainOptions) -> tuple[PretrainOptions, checkpoint.TrainingState]:
    """Options and progress of a run that goes on from `--branch`, which must have been made with the same."""
    assert options.branch is not None
    parent = Run.open(options.branch)
    stored = resume.stored_options(parent.path, "pretrain")
    if options.schedule != "wsd":
        raise UserError("--branch needs --schedule wsd: with others the first steps depend on the last")
    resume.refuse_other_options(parent.path, stored, config_values(options), options, MAY_DIFFER, "--branch")
    if stored.get("block") != options.block:
        raise resume.option_mismatch(parent.path, "block", stored.get("block"), options.block, "--branch")
    usable = checkpoints_before_decay(parent)
    if not usable:
        raise UserError(f"{parent.path}: has no checkpoint from before its decay; --branch needs one")
    progress = checkpoint.read_checkpoint(usable[-1])[0]
    return replace(options, warmup=float(progress.warmup)), progress


def checkpoints_before_decay(parent: Run) -> list[Path]:
    """Return the intact checkpoints that a longer run would have too, the newest last."""
    folders = {step: checkpoint.checkpoint_folder(parent, step) for step in checkpoint.steps(parent)}
    intact = {step: folder for step, folder in folders.items() if find_damage(folder) is None}
    if not intact:
        return []
    pinned = checkpoint.read_checkpoint(intact[max(intact)])[0].pinned
    last = pinned if pinned >= 0 else max(folders)
    return [folder for step, folder in intact.items() if step <= last]


def copy_branch_point(
    run: Run, options: PretrainOptions, loop: Loop, progress: checkpoint.TrainingState
) -> None:
    """Copy the checkpoint that a branch goes on from, with its best weights and what was measured so far."""
    assert options.branch is not None
    if progress.step > loop.plan.decay_start:
        raise UserError(
            f"--branch {options.branch}: was {progress.step:,} steps far; a run of {loop.plan.total:,} steps "
            f"decays from step {loop.plan.decay_start:,} on; give more --steps or --epochs"
        )
    parent = Run.open(options.branch)
    for name, length in ((METRICS, progress.metrics_bytes), (TIMING, progress.timing_bytes)):
        with (parent.path / name).open("rb") as file:
            (run.path / name).write_bytes(file.read(length))
    run.checkpoints.mkdir(exist_ok=True)
    for step in {progress.step, progress.best_step} - {-1}:
        source, target = (checkpoint.checkpoint_folder(one, step) for one in (parent, run))
        shutil.copytree(source, target, dirs_exist_ok=True)
