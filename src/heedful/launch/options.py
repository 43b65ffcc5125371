"""Where a command runs: the options that every command with `--on` shares."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Literal, TypeVar, get_type_hints

from cyclopts import Group, Parameter

from heedful.errors import UserError, shorten, unknown
from heedful.training.configuration import typed
from heedful.training.options import Flag, Several

L = TypeVar("L", bound="LaunchOptions")
OWN = ("array", "chdir", "error", "open-mode", "output", "parsable", "test-only", "wait", "wrap")
"""Options of sbatch that the batch script depends on."""
KEY = re.compile(r"[a-z][a-z0-9-]*")
MAX_REQUEUES, MAX_PARALLEL = 10, 4
GPUS = re.compile(r"(?:[A-Za-z0-9_.-]+:)?[1-9][0-9]*")


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """Everything that can be said about where a command runs."""

    on: Literal["here", "slurm"] = "here"
    """slurm: as a batch job, with the same result."""
    wait: Flag = False
    """Follow the job to its end, and leave with its status."""
    dry_run: Flag = False
    """Print the batch script, submit nothing."""
    partition: str | None = None
    """The partition (queue)."""
    account: str | None = None
    """Who pays."""
    qos: str | None = None
    """The quality of service."""
    constraint: str | None = None
    """Features that the node has to have, as "a100|h100"."""
    gpus: str | None = None
    """GPUs, as 1 or a100:2."""
    cpus: int | None = None
    """CPU cores."""
    mem_gb: int | None = None
    """Memory, in units of 2^30 bytes."""
    time_min: int | None = None
    """Minutes that the job may take at a time."""
    setup: Several = ()
    """Shell lines to run before, as "module load python"."""
    slurm: Several = ()
    """Any other option of sbatch, as nodelist=n1 exclusive."""

    @property
    def elsewhere(self) -> bool:
        """Whether the command is for a cluster; options that say how, without that, are a mistake."""
        if self.on == "slurm":
            return True
        for field in fields(self):
            if field.name != "on" and getattr(self, field.name) != field.default:
                raise UserError(f"{flag(field.name)} belongs to --on slurm")
        return False


@dataclass(frozen=True, kw_only=True)
class RunLaunchOptions(LaunchOptions):
    """For a command that continues after a stop."""

    max_requeues: int | None = None
    """Times that the job may go on after its time limit; by default 10."""


@dataclass(frozen=True, kw_only=True)
class TrainLaunchOptions(RunLaunchOptions):
    """For a command that several processes can share."""

    nodes: int | None = None
    """Nodes. On several, srun starts --processes, or one for each GPU (--gpus are those of a node)."""


@dataclass(frozen=True, kw_only=True)
class StudyLaunchOptions(RunLaunchOptions):
    """For a command that many workers share."""

    max_parallel: int | None = None
    """Workers, which are the tasks of a job array, at a time; by default 4."""


GROUP = Parameter(name="*", group=Group("On a cluster", sort_key=50))
Once = Annotated[LaunchOptions, GROUP]
Launch = Annotated[TrainLaunchOptions, GROUP]
Workers = Annotated[StudyLaunchOptions, GROUP]
"""How a command file takes them: a second group of options."""
ONCE, HERE, WORKERS = LaunchOptions(), TrainLaunchOptions(), StudyLaunchOptions()
NOT_OF_SITE = ("on", "wait", "dry_run")


def flag(name: str) -> str:
    """An option as it is typed."""
    return "--" + name.replace("_", "-")


def with_site(options: L, table: Mapping[str, Any], where: str) -> L:
    """Fill in from a table [slurm] what is not given; what other commands take is passed over."""
    known = get_type_hints(StudyLaunchOptions) | get_type_hints(TrainLaunchOptions)
    site = [name for name in known if name not in NOT_OF_SITE]
    values: dict[str, Any] = {}
    for key, value in table.items():
        name = key.replace("-", "_")
        if name not in site:
            raise UserError(f"{where}: [slurm] {unknown('option', key, site)}")
        if name in ("setup", "slurm") and isinstance(value, str):
            value = [value]
        if name == "gpus" and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        values[name] = typed(known[name], value, f"{where}: [slurm] {key}")
    missing = {
        field.name: values[field.name]
        for field in fields(options)
        if field.name in values and getattr(options, field.name) == field.default
    }
    if options.slurm:
        missing["slurm"] = (*values.get("slurm", ()), *options.slurm)  # the last of a key counts
    return replace(options, **missing)


def refuse_impossible(options: LaunchOptions) -> None:
    """Find mistakes before anything is written."""
    for name, least in (
        ("nodes", 1),
        ("cpus", 1),
        ("mem_gb", 1),
        ("time_min", 1),
        ("max_requeues", 0),
        ("max_parallel", 1),
    ):
        value = getattr(options, name, None)
        if value is not None and value < least:
            raise UserError(f"{flag(name)} {value}: must be at least {least}")
    if options.gpus is not None and not GPUS.fullmatch(options.gpus):
        raise UserError(f'--gpus "{shorten(options.gpus)}": is a number, or a type and a number as a100:2')
    for name in ("partition", "account", "qos", "constraint"):
        value = getattr(options, name)
        if value is not None and (not value or not value.isprintable()):
            raise UserError(f'{flag(name)} "{shorten(value)}": cannot stand in a batch script')
    for given in options.slurm:
        key, _, value = given.partition("=")
        if not KEY.fullmatch(key.removeprefix("--")):
            raise UserError(f'--slurm "{shorten(given)}": is not key=value, as nodelist=n1')
        if key.removeprefix("--") in OWN:
            raise UserError(f"--slurm {key}: the batch script depends on it; it cannot be set")
        if not value.isprintable():
            raise UserError(f'--slurm "{shorten(given)}": cannot stand in a batch script')
    for line in options.setup:
        if "\0" in line:
            raise UserError(f'--setup "{shorten(line)}": cannot stand in a batch script')
        read = subprocess.run(["bash", "-n", "-c", line], capture_output=True, text=True, check=False)
        if read.returncode:
            said = read.stderr.strip().splitlines()[:1]
            reason = said[0].removeprefix("bash: -c: ") if said else "bash cannot read it"
            raise UserError(f'--setup "{shorten(line)}": {reason}')
