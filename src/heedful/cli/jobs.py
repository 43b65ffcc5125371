"""`heedful jobs`: batch jobs and the cluster they run on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App

from heedful.cli.output import Json, print_json, print_table
from heedful.errors import UserError, one_line

if TYPE_CHECKING:
    from heedful.launch.slurm.jobs import SlurmJob

NUMBER = re.compile(r"\d+(_\d+)?", re.ASCII)
app = App(name="jobs")


@app.default
def show(*folders: Path, json: Json = False) -> None:
    """Show batch jobs: what is queued, running, done, failed and why, and how far each is.

    From the folders that --on slurm made, below ./runs and ./studies and in
    Slurm's queue; or only from those below the folders named here. squeue and,
    where there is one, sacct say what the folders cannot know.

    Examples:
      heedful jobs
      heedful jobs runs/sst2 --json

    Parameters
    ----------
    folders
        Look below these folders only.
    json
        Print one JSON array.
    """
    import sys

    from heedful.launch.slurm.jobs import find_jobs

    jobs, trouble = find_jobs(folders)
    if trouble is not None and not jobs:
        raise UserError(trouble)
    if trouble is not None:
        print(f"heedful: {trouble}; what follows is from the jobs' folders alone", file=sys.stderr)
    if json:
        print_json([facts(job) for job in jobs])
        return
    if not jobs:
        where = ", ".join(map(str, folders)) or "./runs, ./studies and Slurm's queue"
        print(one_line(f"no jobs in {where}; heedful adapt ... --on slurm submits one"))
        return
    rows = [row for job in jobs for row in rows_of(job)]
    print_table("jobs", ("job", "state", "folder", "time", "progress", "why"), rows, right=("time",))


def facts(job: SlurmJob) -> dict[str, Any]:
    """A job for a program."""
    from heedful.launch.slurm.jobs import study_progress
    from heedful.launch.slurm.records import log_file

    return {
        "job": job.job,
        "state": job.state,
        "folder": str(job.folder),
        "submitted": job.submitted.submitted,
        "command": list(job.submitted.command),
        "progress": study_progress(job.folder),
        "tasks": [
            {
                "task": task.task,
                "state": task.state,
                "why": task.reason,
                "progress": task.progress,
                "elapsed": task.elapsed,
                "status": task.status,
                "log": str(log_file(job.folder, task.task)),
            }
            for task in job.tasks
        ],
    }


def rows_of(job: SlurmJob) -> list[Sequence[str]]:
    """A line for a job; workers of an array that are alike share one."""
    from heedful.launch.slurm.jobs import study_progress

    folder = job.folder.relative_to(Path.cwd()) if job.folder.is_relative_to(Path.cwd()) else job.folder
    shown = one_line(str(folder))
    if job.submitted.workers is None:
        task = job.tasks[0]
        return [(job.job, task.state, shown, task.elapsed, task.progress, task.reason)]
    alike: dict[tuple[str, str], list[str]] = {}
    for task in job.tasks:
        alike.setdefault((task.state, task.reason), []).append(str(task.task))
    rows: list[Sequence[str]] = []
    for (state, reason), numbers in alike.items():
        first = not rows
        progress = study_progress(job.folder) if first else ""
        which = f"{job.job}_{','.join(numbers)}"
        rows.append((which, state, shown if first else "", "", progress, reason))
    return rows


@app.command
def cancel(*jobs: str, json: Json = False) -> None:
    """Cancel jobs, by number or by folder. A run that trains writes a checkpoint; --resume continues it.

    Examples:
      heedful jobs cancel 1234
      heedful jobs cancel runs/sst2

    Parameters
    ----------
    jobs
        Job numbers, one worker of a study as 1234_0, or folders of runs and studies.
    json
        Print one JSON object.
    """
    from heedful.launch.slurm import client
    from heedful.launch.slurm.jobs import active_jobs

    if not jobs:
        raise UserError("which jobs? heedful jobs cancel 1234, or a run's folder; heedful jobs lists them")
    queue = client.read_queue()
    numbers = []
    for given in jobs:
        if not NUMBER.fullmatch(given):
            numbers += active_jobs(Path(given), queue)
            continue
        job, _, task = given.partition("_")
        if not any(k.job == job and k.active and (not task or str(k.task) == task) for k in queue):
            raise UserError(f"job {given}: is not yours, or is over; heedful jobs lists what there is")
        numbers.append(given)
    for number in numbers:
        client.scancel(number)
    if json:
        print_json({"cancelled": numbers})
        return
    print(f"cancelled {', '.join(numbers)}")


@app.command
def nodes(*, json: Json = False) -> None:
    """Show the cluster's nodes: CPUs, memory, GPUs, and what is free now.

    Example: heedful jobs nodes --json

    Parameters
    ----------
    json
        Print one JSON array.
    """
    from heedful.launch.slurm import client

    found = client.read_nodes()
    if json:
        print_json([vars(node) for node in found])
        return
    numbers = ("CPUs free", "memory free (GB)", "GPUs free")
    rows = [
        (
            node.name,
            node.state,
            node.partitions,
            f"{node.cpus_free} of {node.cpus}",
            f"{node.memory_free_gb:g} of {node.memory_gb:g}",
            f"{node.gpus_free} of {node.gpus} {node.gpu_types}".strip() if node.gpus else "",
            node.reason,
        )
        for node in found
    ]
    print_table("nodes", ("node", "state", "partitions", *numbers, "why"), rows, right=numbers)
