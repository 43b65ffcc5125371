"""The batch script: a pure function of what it is made from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import one_line
from heedful.launch.options import LaunchOptions, RunLaunchOptions
from heedful.runs.directory import slug

SCRIPT = "submit.sh"
SIGNAL_SECONDS = 90
PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+.,:=/@%[]|&*!")


@dataclass(frozen=True)
class Batch:
    """One job: what runs, where, and where it writes."""

    words: tuple[str, ...]
    """The whole command, the program first."""
    folder: Path
    """Where script, log and output are; the job is submitted from there."""
    cwd: Path
    """Where the command was given, and runs."""
    name: str
    """What squeue shows."""
    workers: int | None = None
    """A job array of so many."""


def batch_script(batch: Batch, options: LaunchOptions) -> str:
    """The script, to read, and to submit by hand: `cd FOLDER && sbatch submit.sh`.

    Slurm's own lines hold no path, since they cannot hold every one: the job is submitted from its folder,
    and its output goes there. Everything after them is read by bash alone.
    """
    told = directives(batch, options)
    requeues = options.max_requeues if isinstance(options, RunLaunchOptions) else 0
    lines = [
        "#!/bin/bash",
        f"# By hand: cd {shown(str(batch.folder))} && sbatch {SCRIPT}",
        *(f"#SBATCH --{key}{f'={quoted(value)}' if value else ''}" for key, value in told.items()),
        "",
        f"cd -- {shlex.quote(str(batch.cwd))} || exit",
        *(f"eval {shlex.quote(line)} || exit" for line in options.setup),
        f"export HEEDFUL_JOB={shlex.quote(str(batch.folder))}  # where it says how it ended",
        f"export HEEDFUL_MAX_REQUEUES={requeues}",
        f"export HEEDFUL_STOP_SECONDS={stop_seconds(told)}  # to stop, from the signal on",
        "export HEEDFUL_TOML=none  # the options below are all that count",
        "# exec, so that Slurm's signals reach the command itself.",
        f"exec {shlex.join(batch.words)}",
    ]
    return "\n".join(lines) + "\n"


def directives(batch: Batch, options: LaunchOptions) -> dict[str, str]:
    """What Slurm is told; `--slurm` replaces what has the same key."""
    each = "" if batch.workers is None else "-%a"
    found: dict[str, str | None] = {
        "job-name": slug(batch.name),
        "output": f"out{each}.txt",
        "error": f"log{each}.txt",
        "open-mode": "append",
        "partition": options.partition,
        "account": options.account,
        "qos": options.qos,
        "constraint": options.constraint,
        "nodes": "1",
        "ntasks": "1",
        "cpus-per-task": text(options.cpus),
        "mem": text(options.mem_gb, "G"),
        "gres": text(options.gpus, before="gpu:"),
        "time": text(options.time_min),
    }
    if batch.workers is not None:
        found["array"] = f"0-{batch.workers - 1}"
    if isinstance(options, RunLaunchOptions):
        found["requeue"] = ""
        found["signal"] = f"B:USR1@{signal_seconds(options.time_min)}"
    for given in options.slurm:
        key, _, value = given.partition("=")
        found[key.removeprefix("--")] = value
    return {key: value for key, value in found.items() if value is not None}


def stop_seconds(told: Mapping[str, str]) -> int:
    """How long a command may take to stop after the signal, to be requeued before the time is over."""
    seconds = told.get("signal", "").rpartition("@")[2]
    return 2 * int(seconds) // 3 if seconds.isdigit() else 2 * SIGNAL_SECONDS // 3


def signal_seconds(time_min: int | None) -> int:
    """How long before the limit a job is told; a short one has to have time to begin as well."""
    return SIGNAL_SECONDS if time_min is None else min(SIGNAL_SECONDS, 15 * time_min)


def text(value: object, after: str = "", before: str = "") -> str | None:
    """A value for Slurm, or None."""
    return None if value is None else f"{before}{value}{after}"


def quoted(value: str) -> str:
    """A value as sbatch's reader of `#SBATCH` lines takes it."""
    if set(value) <= PLAIN:
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def shown(path: str) -> str:
    """A path in a comment: on one line whatever it holds."""
    return one_line(shlex.quote(path))


def command_line(words: Sequence[str]) -> str:
    """Words as a person would type them, on one line."""
    return one_line(shlex.join(words))
