"""How long a run is: fitted to a time, or branched off another one.

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

from heedful.errors import UserError
from heedful.options.training import PretrainOptions
from heedful.runs.checksums import damage
from heedful.runs.directory import METRICS, TIMING, Run
from heedful.training import checkpoint, resume, schedules
from heedful.training.loop import Loop
from heedful.training.ranks import current_ranks
from heedful.training.running import resolved

TRIAL_SHARE, TRIAL_SECONDS, TRIAL_STEPS = 0.03, 20.0, 5
"""How long the speed is measured: a share of the budget, at most so long, at least so many steps."""
MARGIN = 0.97
"""Of the budget that is planned: a machine is not always as fast as at the beginning."""
MAY_DIFFER = (
    "epochs", "steps", "budget_min", "branch", "warmup", "eval_every", "patience", "select", "test",
    "score_test", "sentences", "tensorboard", "threads", "processes", "precision", "block", "train_eval_rows",
)  # fmt: skip
"""Options in which a branch may be another than what it goes on from; the last ones are found again."""


def measure_steps_in_budget(
    options: PretrainOptions, make: Callable[[PretrainOptions], Loop], spent: float = 0.0
) -> int:
    """How many steps take `--budget-min`, by the speed of the first ones, after `spent` seconds.

    Evaluations are counted in. The model is left as it was. Of several processes the first decides.
    """
    assert options.budget_min is not None
    budget = 60 * options.budget_min
    loop = make(replace(options, steps=10**4, budget_min=None))
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
            loop.score(split, rows)
    scoring = time.monotonic() - begun
    loop.load(before)
    loop.together = None
    between = options.eval_every or (loop.ends[0] - loop.objective.first_steps)
    steps = current_ranks().broadcast(
        int((MARGIN * (budget - spent) - 2 * scoring) / (a_step + scoring / between))
    )
    if steps < 1:
        raise UserError(
            f"--budget-min {options.budget_min:g}: is over before the first step; one takes {a_step:.2g} s, "
            f"scoring {scoring:.2g} s"
        )
    return steps


def branch_options(options: PretrainOptions, lr: float) -> tuple[PretrainOptions, checkpoint.TrainingState]:
    """Options and progress of a run that goes on from `--branch`, which must have been made with the same."""
    assert options.branch is not None
    parent = Run.open(options.branch)
    stored = resume.stored_options(parent.path, "pretrain")
    if options.schedule != "wsd":
        raise UserError("--branch needs --schedule wsd: with others the first steps depend on the last")
    resume.refuse_other_options(parent.path, stored, resolved(options, lr), options, MAY_DIFFER, "--branch")
    if stored.get("block") != options.block:
        raise resume.option_mismatch(parent.path, "block", stored.get("block"), options.block, "--branch")
    usable = checkpoints_before_decay(parent)
    if not usable:
        raise UserError(f"{parent.path}: has no checkpoint from before its decay; --branch needs one")
    progress = checkpoint.read_checkpoint(usable[-1])[0]
    return replace(options, warmup=float(progress.warmup)), progress


def checkpoints_before_decay(parent: Run) -> list[Path]:
    """The whole checkpoints of a run that a run of any greater length would have too, the newest last."""
    found = [parent.checkpoints / f"step-{step:08d}" for step in checkpoint.steps(parent)]
    whole = [folder for folder in found if damage(folder) is None]
    if not whole:
        return []
    pinned = checkpoint.read_checkpoint(whole[-1])[0].pinned
    last = pinned if pinned >= 0 else checkpoint.steps(parent)[-1]
    return [folder for folder in whole if int(folder.name.partition("-")[2]) <= last]


def copy_branch_point(
    run: Run, options: PretrainOptions, loop: Loop, progress: checkpoint.TrainingState
) -> None:
    """Copy the checkpoint that a branch goes on from, with its best weights and what was measured so far."""
    assert options.branch is not None
    if progress.step > loop.pinned:
        begins = schedules.decay_begins("wsd", loop.total, loop.warmup)
        raise UserError(
            f"--branch {options.branch}: was {progress.step:,} steps far; a run of {loop.total:,} steps "
            f"decays from step {begins:,} on; give more --steps or --epochs"
        )
    parent = Run.open(options.branch)
    for name, length in ((METRICS, progress.metrics_bytes), (TIMING, progress.timing_bytes)):
        with (parent.path / name).open("rb") as file:
            (run.path / name).write_bytes(file.read(length))
    run.checkpoints.mkdir(exist_ok=True)
    for step in {progress.step, progress.best_step} - {-1}:
        folder = f"step-{step:08d}"
        shutil.copytree(parent.checkpoints / folder, run.checkpoints / folder, dirs_exist_ok=True)
