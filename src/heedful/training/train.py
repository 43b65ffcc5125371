"""A training run from beginning to end, for `adapt` and `pretrain` alike. Read this file first.

    validate -> build -> open the run -> loop -> score -> save -> check -> write

The two commands differ only in how the parts of a run are built (`heedful.training.build`). Where a run
happens (how many processes, on which machine) was decided before, by `heedful.launch`, which calls
`train_run` once in each process. What is written, and when, is the run directory (`heedful.runs.directory`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from heedful.errors import UserError
from heedful.evaluation.scorer import leave_out_bag
from heedful.linear.folders import is_linear
from heedful.options.training import AdaptOptions, LoopOptions, named_after
from heedful.runs.directory import RESULTS, Run, new_run_path
from heedful.runs.schemas import Metrics
from heedful.training import budget, record, resume
from heedful.training.build import Job, build_job
from heedful.training.build.objective import resolve_objective
from heedful.training.linear import train_linear
from heedful.training.ranks import current_ranks
from heedful.training.record import Finished, config_values, read_finished
from heedful.training.self_check import check_run_itself
from heedful.training.signals import StopSignals
from heedful.training.trackers import Tracker, begin_trackers
from heedful.training.validation import validate

O = TypeVar("O", bound=LoopOptions)  # noqa: E741


def train_run(
    options: LoopOptions,
    trackers: Sequence[Tracker] = (),
    on_row: Callable[[Metrics], None] | None = None,
    deadline: float | None = None,
    *,
    with_bag: bool = True,
) -> Finished:
    """Train a model and leave a run directory; resuming a finished run returns its results again.

    Parameters
    ----------
    options
        An `AdaptOptions` or a `PretrainOptions`.
    trackers
        Objects that follow the run, besides those that the options name.
    on_row
        Called with each row of metrics; an exception in it ends the run.
    deadline
        When to stop training, by `time.monotonic`; the run ends with the best model that it has scored.
    with_bag
        Whether a model of labels is compared with a bag of words, which is fitted after the training.

    """
    begun = time.monotonic()
    # Mistakes in options are found here, before anything is loaded, and nowhere else.
    validate(options)
    options = use_current_processes(options)
    if options.resume and options.out is not None:
        out, options = options.out, restore_options(options)
        if (out / RESULTS).is_file():
            return read_finished(Run.open(out))
    options = budget.take_over_choices(options)
    refuse_used_folder(options)

    # Until the loop begins, a signal ends the run at once: there is nothing to save yet.
    ranks = current_ranks()
    stop_signals = StopSignals(silent=ranks.launched or not ranks.first, deadline=deadline)
    with stop_signals.listen():
        if isinstance(options, AdaptOptions) and is_linear(options.model):
            return train_linear(options, trackers, on_row)
        # The first process fills the caches (tokenized text, trained tokenizer); the others read them.
        with ranks.first_process_first():
            job = build_job(options)
        if not with_bag:
            leave_out_bag(job.scorer)
        return train_job(job, stop_signals, trackers, on_row, begun)


def train_job(
    job: Job,
    stop_signals: StopSignals | None = None,
    trackers: Sequence[Tracker] = (),
    on_row: Callable[[Metrics], None] | None = None,
    begun: float | None = None,
) -> Finished:
    """Train a job that is built, as the only owner of its run directory; its time counts since `begun`."""
    ranks, options = current_ranks(), job.options
    out = ranks.broadcast(options.out or new_run_path("runs", *named_after(options)))
    with resume.open_run(out, options) as (run, lease), record.report_progress(run):
        # A time budget or a branch decides the number of steps, which config.toml then has.
        job = budget.plan_length(job, run, begun)
        record.write_description(run, job)

        followers = begin_trackers(run, job.options, trackers)
        loop = job.make_loop(
            run, trackers=followers, on_row=on_row, stopping=stop_signals or StopSignals(), lost=lease.lost
        )
        # Afterwards the model has the weights of the best evaluation.
        loop.train(resume=options.resume or getattr(options, "branch", None) is not None)
        if not ranks.first:
            ranks.barrier()  # until the first process has written everything
            return read_finished(run)

        job.objective.complete(job.model)
        # The test split is scored once, with the selected model; dev was scored when it was selected.
        evaluations, decision = record.score_splits(job, loop)
        results = record.collect_results(run, job, loop, evaluations)
        record.save_best(run, job, decision)
        job.scorer.write_scored(run, evaluations)
        job.scorer.write_unscored(run, job.model)
        checks = check_run_itself(run, job, loop, evaluations, results)
        run.write_checks(checks)
        # Results come last: a run that has them is finished, and is never trained again.
        run.write_results(results)
        for tracker in followers:
            tracker.end(results)
        ranks.barrier()
        return Finished(run.path, results, checks)


def use_current_processes(options: O) -> O:
    """Record the number of processes that train together; another number than asked for is refused."""
    size = current_ranks().size
    if options.processes not in (None, size):
        raise UserError(f"--processes {options.processes}: here it is {size}")
    return replace(options, processes=size)


def restore_options(options: O) -> O:
    """Return the options of a resumed run: what was measured or found when it began stays the same."""
    options = budget.restore_length(options)
    if isinstance(options, AdaptOptions):
        options = resume.restore_choices(options)
        return resume.restore_stored_options(options, config_values(resolve_objective(options)), "adapt")
    return resume.restore_stored_options(options, config_values(options), "pretrain")


def refuse_used_folder(options: LoopOptions) -> None:
    """Refuse a folder that is not empty, before anything is loaded."""
    new = current_ranks().first and not (options.resume or options.overwrite)
    if new and options.out is not None and options.out.exists():
        Run.create(options.out)
