"""`heedful jobs`: show and cancel batch jobs, show the nodes of a cluster."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cyclopts import App

from heedful.cli.output import Json, JsonArray, print_json, print_table
from heedful.errors import UserError, one_line

if TYPE_CHECKING:
    from heedful.launch.slurm.jobs import SlurmJob

NUMBER = re.compile(r"\d+(_\d+)?", re.ASCII)
app = App(name="jobs")


@app.default
def show(*folders: Path, json: JsonArray = False) -> None:
    """Show batch jobs: queued, running, finished, failed and why, with the progress of each.

    Jobs are found in the folders that --on slurm made, below ./runs and
    ./studies, and in Slurm's queue; or only below the given folders. squeue and,
    if the site has it, sacct add what the folders do not contain.

    Examples:
      heedful jobs
      heedful jobs runs/sst2 --json

    Parameters
    ----------
    folders
        Show only the jobs below these folders.
    json
        Print one JSON array.
    """
    from heedful.launch.slurm.jobs import find_jobs

    jobs, trouble = find_jobs(folders)
    if trouble is not None and not jobs:
        raise UserError(trouble)
    if trouble is not None:
        print(f"heedful: {trouble}; showing only what the folders of the jobs say", file=sys.stderr)
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
    from heedful.launch.slurm.jobs import study_progress
    from heedful.launch.slurm.records import task_file
    from heedful.runs.directory import LOG

    return {
        "job": job.job,
        "state": job.state,
        "folder": str(job.folder),
        "submitted": job.submitted.submitted,
        "command": list(job.submitted.command),
        "progress": study_progress(job.folder),
        "tasks": [
            {"task": task.task, "state": task.state, "why": task.reason, "progress": task.progress}
            | {"elapsed": task.elapsed, "status": task.status}
            | {"log": str(task_file(job.folder, LOG, task.task))}
            for task in job.tasks
        ],
    }


def rows_of(job: SlurmJob) -> list[Sequence[str]]:
    """Return one line per job; workers of an array in the same state share a line."""
    from heedful.launch.slurm.jobs import study_progress

    here = Path.cwd()
    shown = one_line(str(job.folder.relative_to(here) if job.folder.is_relative_to(here) else job.folder))
    if job.submitted.workers is None:
        task = job.tasks[0]
        return [(job.job, task.state, shown, task.elapsed, task.progress, task.reason)]
    alike: dict[tuple[str, str], list[str]] = {}
    for task in job.tasks:
        alike.setdefault((task.state, task.reason), []).append(str(task.task))
    rows: list[Sequence[str]] = []
    for (state, reason), numbers in alike.items():
        where, progress = ("", "") if rows else (shown, study_progress(job.folder))
        rows.append((f"{job.job}_{','.join(numbers)}", state, where, "", progress, reason))
    return rows


@app.command
def cancel(*jobs: str, json: Json = False) -> None:
    """Cancel jobs by number or folder. A run writes a checkpoint first, and --resume continues it.

    Examples:
      heedful jobs cancel 1234
      heedful jobs cancel runs/sst2

    Parameters
    ----------
    jobs
        Job numbers, such as 1234 or 1234_0 for one worker of a study, or folders of runs and studies.
    json
        Print one JSON object.
    """
    from heedful.launch.slurm import client
    from heedful.launch.slurm.jobs import active_jobs

    if not jobs:
        raise UserError("give a job to cancel: its number, or the folder of its run; heedful jobs lists them")
    queue = client.read_queue()
    numbers = []
    for name in jobs:
        if not NUMBER.fullmatch(name):
            numbers += active_jobs(Path(name), queue)
            continue
        job, _, task = name.partition("_")
        if not any(k.job == job and k.active and (not task or str(k.task) == task) for k in queue):
            raise UserError(f"job {name}: is not yours, or has ended; heedful jobs lists yours")
        numbers.append(name)
    for number in numbers:
        client.scancel(number)
    print_json({"cancelled": numbers}) if json else print(f"cancelled {', '.join(numbers)}")


@app.command
def nodes(*, json: JsonArray = False) -> None:
    """Show the nodes of the cluster: CPUs, memory and GPUs, in total and free.

    Example: heedful jobs nodes --json
    """
    from heedful.launch.slurm import client

    cluster = client.read_nodes()
    if json:
        print_json([vars(node) for node in cluster])
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
        for node in cluster
    ]
    print_table("nodes", ("node", "state", "partitions", *numbers, "why"), rows, right=numbers)
