"""Commands with `--on slurm`: submit them to the cluster, and print what was submitted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from heedful.cli.output import print_json
from heedful.options.configuration import Options
from heedful.options.launch import LaunchOptions, TrainLaunchOptions

if TYPE_CHECKING:
    from heedful.launch.slurm.submission import PreparedJob


def send(
    words: tuple[str, ...],
    launch: LaunchOptions,
    folder: Path,
    *,
    json: bool = False,
    name: str = "",
) -> int:
    """Submit a command as a batch job that belongs to `folder`, and return the exit status."""
    from heedful.launch.site import add_site_options
    from heedful.launch.slurm.submission import prepare_job

    return send_job(prepare_job(words, add_site_options(launch), folder, name), launch, json=json)


def send_job(
    prepared: PreparedJob,
    launch: LaunchOptions,
    *,
    json: bool,
    replacing: Callable[[], object] | None = None,
) -> int:
    """Submit a job, and follow it if the options say so; `replacing` removes what the job replaces."""
    from heedful.launch.slurm.submission import describe_submission, submit_job

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


def send_run(options: Options, launch: TrainLaunchOptions, *, json: bool) -> int:
    """Submit a command that makes a run. Its folder is created now, and the job resumes it."""
    from heedful.launch.submit import prepare_run

    prepared = prepare_run(options, launch, ["--json"] if json and launch.wait else [])
    return send_job(prepared.job, launch, json=json, replacing=prepared.replacing)
