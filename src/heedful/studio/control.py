"""Stopping and continuing runs and studies from a page."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import psutil

from heedful.errors import UserError
from heedful.options.configuration import COMMANDS
from heedful.runs.directory import CONFIG, JOB, RESULTS, STUDY
from heedful.runs.studies import LEASES, RUNS, StudyFolder
from heedful.runs.toml import read_toml
from heedful.studies import STUDIES
from heedful.studio.children import Child, Children
from heedful.studio.folder import StudioFolder
from heedful.studio.listing.activity import Activity, find_run_activity, find_study_activity
from heedful.studio.listing.study_reader import SOLVE

WORKER = "--parent"
"""The option by which a worker of a study knows the process that started it."""
NOT_REPEATED = ("--out", "--overwrite", "--on", "--wait", "--dry-run")


def stop(folder: StudioFolder, name: str) -> str:
    """Ask the process of a run, a study or a solution to stop; return what happens now.

    A run writes a checkpoint first; a solution ends with the best model so far.
    """
    path = folder.resolve(name)
    if (path / STUDY).is_file():
        return stop_study(path, name)
    activity = find_run_activity(path)
    if activity is None or activity.process is None:
        return stop_elsewhere(path, name, activity)
    if (parent := find_parent(activity.process)) is not None:
        raise UserError(f"{name}: is made by process {parent}, which makes a study; stop the study")
    send(activity.process, signal.SIGTERM, name)
    return "It writes a checkpoint, then it stops."


def stop_study(path: Path, name: str) -> str:
    activity = find_study_activity(path)
    if activity is None and (path / RUNS).is_dir():
        found = (find_run_activity(run) for run in sorted((path / RUNS).iterdir()))
        activity = next((one for one in found if one is not None), None)
    if activity is None or activity.process is None:
        return stop_elsewhere(path / "jobs", name, activity)
    if StudyFolder.open(path).read().kind == SOLVE and activity.lease == SOLVE:
        send(activity.process, signal.SIGINT, name)
        return "It ends with the best model so far."
    send(find_parent(activity.process) or activity.process, signal.SIGTERM, name)
    return "Its runs write their checkpoints, then it stops."


def stop_elsewhere(path: Path, name: str, activity: Activity | None) -> str:
    """Cancel a batch job; without one there is nothing here that could be stopped."""
    if (path / JOB).is_file():
        from heedful.launch.slurm import client
        from heedful.launch.slurm.jobs import active_jobs

        for job in active_jobs(path, client.read_queue()):
            client.scancel(job)
        return "Its job is canceled."
    if activity is None:
        raise UserError(f"{name}: nobody works on it")
    raise UserError(f"{name}: {activity.machine or 'another machine'} works on it; stop it there")


def find_parent(process: int) -> int | None:
    """Return the process that started a worker of a study; None for other processes."""
    try:
        words = psutil.Process(process).cmdline()
    except psutil.Error:
        return None
    if WORKER not in words or "worker" not in words:
        return None
    number = words[words.index(WORKER) + 1 :][:1]
    return int(number[0]) if number and number[0].isdigit() else None


def send(process: int, number: signal.Signals, name: str) -> None:
    try:
        os.kill(process, number)
    except ProcessLookupError:
        raise UserError(f"{name}: has ended meanwhile") from None
    except PermissionError:
        raise UserError(f"{name}: its process {process} belongs to another user") from None


def resume(folder: StudioFolder, children: Children, name: str) -> Child:
    """Start the command that continues a run, a study or a solution, in a process of its own."""
    path = folder.resolve(name)
    if (path / STUDY).is_file():
        return children.start(name, continue_study(path, name))
    if (path / RESULTS).is_file():
        raise UserError(f"{name}: has finished")
    if (path / JOB).is_file():
        raise UserError(f"{name}: ran as a batch job; repeat its command, which job.json has, with --resume")
    if not (path / CONFIG).is_file() or read_toml(path / CONFIG).get("command") not in COMMANDS:
        raise UserError(f"{name}: is not a run that can be continued")
    if (activity := find_run_activity(path)) is not None:
        raise UserError(f"{name}: {activity.holder.partition(' begun')[0]} works on it already")
    return children.start(name, ("run", str(path / CONFIG), f"--out={path}", "--resume"))


def continue_study(path: Path, name: str) -> tuple[str, ...]:
    """Return the command that continues a study where its folder is now."""
    record = StudyFolder.open(path).read()
    if find_study_activity(path) is not None:
        raise UserError(f"{name}: a process works on it already")
    words = record.command
    if record.kind == SOLVE and words[:1] == (SOLVE,):
        head = 1
    elif record.kind in STUDIES and words[:2] == ("study", record.kind):
        head = 2
    else:
        raise UserError(f"{name}: its {STUDY} has no command that continues it")
    if (path / LEASES).is_dir() and (path / "jobs" / JOB).is_file():
        raise UserError(f"{name}: ran on a cluster; repeat its command there: heedful {' '.join(words)}")
    rest = [word for word in words[head:] if word.partition("=")[0] not in NOT_REPEATED]
    return (*words[:head], *rest, f"--out={path}")
