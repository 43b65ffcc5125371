"""The batch script: a pure function of what it is made from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import UserError, one_line
from heedful.options.launch import MAX_REQUEUES, LaunchOptions, RunLaunchOptions, TrainLaunchOptions
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
    """The folder of script, log and output, from which the job is submitted."""
    cwd: Path
    """The folder in which the command runs."""
    name: str
    """The name that squeue shows."""
    workers: int | None = None
    """The number of tasks of a job array."""
    tasks: int = 1
    """Processes that `srun` starts; with 1 the command itself is the job."""


def batch_script(batch: Batch, options: LaunchOptions) -> str:
    """The script, to read, and to submit by hand: `cd FOLDER && sbatch submit.sh`.

    Slurm's own lines hold no path, since they cannot hold every one: the job is submitted from its folder,
    and its output goes there. Everything after them is read by bash alone.
    """
    sbatch_options = directives(batch, options)
    max_requeues = options.max_requeues if isinstance(options, RunLaunchOptions) else 0
    requeues = MAX_REQUEUES if max_requeues is None else max_requeues
    lines = [
        "#!/bin/bash",
        f"# By hand: cd {command_line([str(batch.folder)])} && sbatch {SCRIPT}",
        *(
            f"#SBATCH --{key}{f'={quote_for_sbatch(value)}' if value else ''}"
            for key, value in sbatch_options.items()
        ),
        "",
        f"cd -- {shlex.quote(str(batch.cwd))} || exit",
        *(f"eval {shlex.quote(line)} || exit" for line in options.setup),
        f"export HEEDFUL_JOB={shlex.quote(str(batch.folder))}  # where it says how it ended",
        f"export HEEDFUL_MAX_REQUEUES={requeues}",
        f"export HEEDFUL_STOP_SECONDS={stop_seconds(sbatch_options)}  # to stop, from the signal on",
        "export HEEDFUL_TOML=none  # the options below are all that count",
        *command_lines(batch, sbatch_options),
    ]
    return "\n".join(lines) + "\n"


def command_lines(batch: Batch, sbatch_options: Mapping[str, str]) -> list[str]:
    """Start the command, or on several tasks `srun`, which does not take over how many cores each has."""
    if batch.tasks == 1:
        comment = "# exec, so that Slurm's signals reach the command itself."
        return [comment, *explain_resume(batch), f"exec {shlex.join(batch.words)}"]
    cores = [f"--{key}={value}" for key, value in sbatch_options.items() if key == "cpus-per-task"]
    return [
        "# One process per task. Slurm's signals reach each of them; one that fails ends the others.",
        *explain_resume(batch),
        f"exec {shlex.join(['srun', '--kill-on-bad-exit=1', *cores, *batch.words])}",
    ]


def explain_resume(batch: Batch) -> list[str]:
    """Say why the command has --resume, which nobody may have asked for."""
    reason = "# --resume: begins the run, and continues it when the job is requeued."
    return [reason] if "--resume" in batch.words else []


def count_tasks(options: TrainLaunchOptions, processes: int | None) -> int:
    """Return how many processes `srun` starts: as `--slurm` says, or else one or more per node.

    On one node it is 1: there the command itself starts its processes.
    """
    sbatch_options = dict(option.removeprefix("--").partition("=")[::2] for option in options.slurm)
    nodes = positive_number(sbatch_options, "nodes", options.nodes or 1)
    if "ntasks" in sbatch_options:
        tasks = positive_number(sbatch_options, "ntasks", 1)
    elif "ntasks-per-node" in sbatch_options:
        tasks = nodes * positive_number(sbatch_options, "ntasks-per-node", 1)
    elif nodes == 1:
        return 1
    else:
        tasks = processes or nodes * int((options.gpus or "1").rpartition(":")[2])
    if tasks > 1 and processes not in (None, tasks):
        raise UserError(f"--processes {processes}: the job has {tasks} tasks, and each is a process")
    if tasks % nodes:
        raise UserError(f"--processes {tasks}: cannot be shared by {nodes} nodes")
    return tasks


def tasks_per_node(batch: Batch, options: LaunchOptions) -> int | None:
    """Return how many tasks each of several nodes has: Slurm would fill the first node before the others."""
    nodes = getattr(options, "nodes", None) or 1
    asked = any(option.removeprefix("--").startswith(("nodes=", "ntasks")) for option in options.slurm)
    return None if asked or nodes == 1 else batch.tasks // nodes


def positive_number(sbatch_options: Mapping[str, str], name: str, otherwise: int) -> int:
    value = sbatch_options.get(name, str(otherwise))
    if not value.isdigit() or int(value) < 1:
        raise UserError(f"--slurm {name}={value}: is not a number of at least 1")
    return int(value)


def directives(batch: Batch, options: LaunchOptions) -> dict[str, str]:
    """Return the directives for Slurm; `--slurm` replaces those with the same key."""
    each = "" if batch.workers is None else "-%a"
    values: dict[str, str | None] = {
        "job-name": slug(batch.name),
        "output": f"out{each}.txt",
        "error": f"log{each}.txt",
        "open-mode": "append",
        "partition": options.partition,
        "account": options.account,
        "qos": options.qos,
        "constraint": options.constraint,
        "nodes": text_or_none(getattr(options, "nodes", None) or 1),
        "ntasks": text_or_none(batch.tasks),
        "ntasks-per-node": text_or_none(tasks_per_node(batch, options)),
        "cpus-per-task": text_or_none(options.cpus),
        "mem": text_or_none(options.mem_gb, "G"),
        "gres": text_or_none(options.gpus, before="gpu:"),
        "time": text_or_none(options.time_min),
    }
    if batch.workers is not None:
        values["array"] = f"0-{batch.workers - 1}"
    if isinstance(options, RunLaunchOptions):
        values["requeue"] = ""
        # B: to the command that takes the script's place; without, to what srun has started.
        values["signal"] = f"{'B:' if batch.tasks == 1 else ''}USR1@{signal_seconds(options.time_min)}"
    for option in options.slurm:
        key, _, value = option.partition("=")
        values[key.removeprefix("--")] = value
    return {key: value for key, value in values.items() if value is not None}


def stop_seconds(sbatch_options: Mapping[str, str]) -> int:
    """Return how many seconds a command may take to stop after the signal, so that it is requeued in time."""
    seconds = sbatch_options.get("signal", "").rpartition("@")[2]
    return 2 * int(seconds) // 3 if seconds.isdigit() else 2 * SIGNAL_SECONDS // 3


def signal_seconds(time_min: int | None) -> int:
    """Return how many seconds before the limit a job gets the signal; a short job needs time to begin."""
    return SIGNAL_SECONDS if time_min is None else min(SIGNAL_SECONDS, 15 * time_min)


def text_or_none(value: object, after: str = "", before: str = "") -> str | None:
    return None if value is None else f"{before}{value}{after}"


def quote_for_sbatch(value: str) -> str:
    """A value as sbatch's reader of `#SBATCH` lines takes it."""
    if set(value) <= PLAIN:
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def command_line(words: Sequence[str]) -> str:
    """Words as a person would type them, on one line."""
    return one_line(shlex.join(words))
