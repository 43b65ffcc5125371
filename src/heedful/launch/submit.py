"""A training run as a batch job: its folder, its command and its script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from heedful.launch.processes import COMMANDS, Options, choose_run_folder
from heedful.launch.site import add_site_options
from heedful.launch.slurm.options import refuse_impossible
from heedful.launch.slurm.script import count_tasks
from heedful.launch.slurm.submission import PreparedJob, prepare_job, submit_job
from heedful.options.command_line import command_words
from heedful.options.configuration import DATA_ARGUMENT
from heedful.options.launch import TrainLaunchOptions
from heedful.paths import expand_path
from heedful.runs.directory import Run
from heedful.training.resume import resolve_resumed_folder
from heedful.training.validation import validate


@dataclass(frozen=True)
class PreparedRun:
    """A run that is ready to be submitted."""

    folder: Path
    job: PreparedJob
    replacing: Callable[[], object] | None
    """Removes the run that this one replaces."""


def prepare_run(options: Options, launch: TrainLaunchOptions, flags: Sequence[str] = ()) -> PreparedRun:
    """Check the options and make the script of a run; the job resumes the folder that is chosen now.

    With several tasks, each is one of the processes of the run.
    """
    validate(options)
    site = add_site_options(launch)
    refuse_impossible(site)
    number = count_tasks(site, options.processes)
    options = resolve_resumed_folder(options)
    if options.out is not None and options.out.exists() and not options.overwrite:
        Run.create(options.out, resume=options.resume)  # refuses what is not empty, or holds no run
    out = expand_path(choose_run_folder(options)).absolute()
    processes = number if number > 1 else options.processes
    resumed = replace(options, out=out, resume=True, overwrite=False, processes=processes)
    arguments = (options.model, getattr(options, DATA_ARGUMENT[type(options)]))
    command = COMMANDS[type(options)]
    words = (*command_words([command], arguments, resumed, leave_out=("model", "task", "corpus")), *flags)
    replacing = partial(Run.create, out, overwrite=True) if options.overwrite else None
    return PreparedRun(out, prepare_job(words, site, out, tasks=number), replacing)


def submit_run(options: Options, launch: TrainLaunchOptions) -> PreparedRun:
    """Submit a run, unless `dry_run` only asks for its script; with `wait`, follow it until it ends."""
    prepared = prepare_run(options, launch)
    if not launch.dry_run:
        submitted = submit_job(prepared.job, prepared.replacing)
        if launch.wait:
            from heedful.launch.slurm.monitor import follow_job

            follow_job(prepared.job.folder, submitted)
    return prepared
