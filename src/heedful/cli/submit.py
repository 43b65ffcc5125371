"""Commands with `--on slurm`: submit them to the cluster, and print what was submitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from heedful.cli.output import print_json
from heedful.options.launch import LaunchOptions, TrainLaunchOptions


def send(
    words: tuple[str, ...],
    launch: LaunchOptions,
    folder: Path,
    *,
    json: bool = False,
    name: str = "",
    tasks: int = 1,
    replacing: Callable[[], object] | None = None,
) -> int:
    """Submit a command as a batch job that belongs to `folder`, and return the exit status.

    `replacing` removes what the job replaces.
    """
    from heedful.launch.site import add_site_options
    from heedful.launch.slurm.submission import describe_submission, prepare_job, submit_job

    prepared = prepare_job(words, add_site_options(launch), folder, name, tasks=tasks)
    if launch.dry_run:
        facts = {"folder": str(prepared.folder), "script": prepared.script}
        print_json(facts) if json else print(prepared.script, end="")
        return 0
    submitted = submit_job(prepared, replacing)
    if not launch.wait:
        text, facts = describe_submission(prepared.folder, submitted)
        print_json(facts) if json else print(text, end="")
        return 0
    from heedful.launch.slurm.monitor import exit_status, follow_job

    return exit_status(follow_job(prepared.folder, submitted))


def send_run(
    command: str, arguments: Sequence[str], options: Any, launch: TrainLaunchOptions, *, json: bool
) -> int:
    """Submit a command that makes a run. Its folder is created now, and the job resumes it.

    With several tasks, each is one of the processes of the run.
    """
    from heedful.launch.processes import choose_run_folder
    from heedful.launch.site import add_site_options
    from heedful.launch.slurm.options import refuse_impossible
    from heedful.launch.slurm.script import count_tasks
    from heedful.options.command_line import command_words
    from heedful.runs.directory import Run
    from heedful.training.resume import resolve_resumed_folder

    site = add_site_options(launch)
    refuse_impossible(site)
    number = count_tasks(site, options.processes)
    options = resolve_resumed_folder(options)
    if options.out is not None and options.out.exists() and not options.overwrite:
        Run.create(options.out, resume=options.resume)  # refuses what is not empty, or holds no run
    out = choose_run_folder(options).expanduser().absolute()
    processes = number if number > 1 else options.processes
    resumed = replace(options, out=out, resume=True, overwrite=False, processes=processes)
    flags = ["--json"] if json and launch.wait else []
    words = (*command_words([command], arguments, resumed, leave_out=("model", "task", "corpus")), *flags)
    replacing = partial(Run.create, out, overwrite=True) if options.overwrite else None
    return send(words, launch, out, json=json, tasks=number, replacing=replacing)
