"""Who works on a run or a study now, by its leases."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from heedful.errors import UserError
from heedful.runs.directory import CHECKPOINTS
from heedful.runs.json_files import read_record
from heedful.runs.leases import Holder
from heedful.runs.processes import find_process, is_gone, machine_name, parse_process_name
from heedful.runs.studies import LEASES

RUN_LEASE = ".lease"
"""The lease of a run, in its folder of checkpoints."""
NUMBERED = re.compile(r"(?P<name>.+)\.(?P<number>[0-9]+)", re.ASCII)
CLOCKS_SECONDS = 30.0
"""By how much the clocks of two machines that share a folder may differ."""


@dataclass(frozen=True)
class Activity:
    """A process that holds a lease."""

    holder: str
    process: int | None
    """Its number, if it runs on this machine."""
    lease: str = ""
    """What it holds: the name of a study's run, or of what a study does."""

    @property
    def machine(self) -> str:
        return parse_process_name(self.holder)[0].partition(" ")[0]

    @property
    def started(self) -> float:
        """When the process began, in seconds since 1970; 0 if that is not known."""
        try:
            return 0.0 if self.process is None else psutil.Process(self.process).create_time()
        except psutil.Error:
            return 0.0


def find_run_activity(run: Path) -> Activity | None:
    """Return who trains a run; None if nobody does."""
    return next(iterate_activity(run / CHECKPOINTS, RUN_LEASE), None)


def find_study_activity(study: Path) -> Activity | None:
    """Return a process that works on a study; None if none does."""
    return next(iterate_activity(study / LEASES), None)


def iterate_activity(folder: Path, name: str | None = None) -> Iterator[Activity]:
    """Yield the processes that hold leases in a folder, or the lease of a name there."""
    newest: dict[str, int] = {}
    try:
        for entry in folder.iterdir():
            match = NUMBERED.fullmatch(entry.name)
            if match and (name is None or match["name"] == name):
                newest[match["name"]] = max(newest.get(match["name"], 0), int(match["number"]))
    except OSError:
        return
    for lease, number in sorted(newest.items()):
        if (activity := read_activity(folder / f"{lease}.{number}", lease)) is not None:
            yield activity


def read_activity(file: Path, lease: str) -> Activity | None:
    """Return who holds a lease, given its newest file."""
    try:
        age = time.time() - file.stat().st_mtime
        holder = read_record(Holder, file)
    except (UserError, OSError):
        return None
    if holder.released or is_gone(holder.holder):
        return None
    process = find_process(holder.holder)
    here = parse_process_name(holder.holder)[0] == machine_name()
    expired = age > holder.ttl + (0 if here else CLOCKS_SECONDS)
    return None if expired and process is None else Activity(holder.holder, process, lease)
