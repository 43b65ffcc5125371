"""Where a command runs: the options that every command with `--on` shares."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from heedful.errors import UserError
from heedful.options.types import Bounds, Count, Flag, Positive, Several
from heedful.options.values import flag

MAX_REQUEUES, MAX_PARALLEL = 10, 4


@dataclass(frozen=True, kw_only=True)
class LaunchOptions:
    """Where a command runs, and what it asks of a cluster."""

    on: Literal["here", "slurm"] = "here"
    """Where to run: on this machine, or as a Slurm batch job with the same result."""
    wait: Flag = False
    """Follow the job until it ends, and exit with its status."""
    dry_run: Flag = False
    """Print the batch script and submit nothing."""
    partition: str | None = None
    """Partition (queue)."""
    account: str | None = None
    """Account that is charged."""
    qos: str | None = None
    """Quality of service."""
    constraint: str | None = None
    """Features that the node must have, such as "a100|h100"."""
    gpus: str | None = None
    """GPUs per node, such as 1 or a100:2."""
    cpus: Positive | None = None
    """Number of CPU cores per task."""
    mem_gb: Positive | None = None
    """Memory per node, in GiB."""
    time_min: Annotated[int, Bounds(least=1, cap=10_000_000)] | None = None
    """Time limit of the job, in minutes."""
    setup: Several = ()
    """Shell lines to run first, such as "module load python"."""
    slurm: Several = ()
    """Other options of sbatch, such as nodelist=n1 exclusive."""

    @property
    def elsewhere(self) -> bool:
        """Whether the command is for a cluster; options that only a cluster has are refused without it."""
        if self.on == "slurm":
            return True
        for field in fields(self):
            if field.name != "on" and getattr(self, field.name) != field.default:
                raise UserError(f"{flag(field.name)} belongs to --on slurm")
        return False


@dataclass(frozen=True, kw_only=True)
class RunLaunchOptions(LaunchOptions):
    """For a command that can continue after it was stopped."""

    max_requeues: Count | None = None
    """How often the job may continue after its time limit. By default 10."""


@dataclass(frozen=True, kw_only=True)
class TrainLaunchOptions(RunLaunchOptions):
    """For a command that several processes can share."""

    nodes: Positive | None = None
    """Number of nodes. On several, srun starts --processes, or one per GPU (--gpus are per node)."""


@dataclass(frozen=True, kw_only=True)
class StudyLaunchOptions(RunLaunchOptions):
    """For a command that many workers share."""

    max_parallel: Positive | None = None
    """Largest number of workers at a time, each a task of a job array. By default 4."""


GROUP = Parameter(name="*", group=Group("On a cluster", sort_key=50))
Once = Annotated[LaunchOptions, GROUP]
Launch = Annotated[TrainLaunchOptions, GROUP]
Workers = Annotated[StudyLaunchOptions, GROUP]
"""How a command takes these options: in a panel of their own."""
ONCE, HERE, WORKERS = LaunchOptions(), TrainLaunchOptions(), StudyLaunchOptions()
