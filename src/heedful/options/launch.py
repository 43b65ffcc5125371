"""Where a command runs: the options that every command with `--on` shares."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Literal

from cyclopts import Group, Parameter

from heedful.errors import UserError
from heedful.options.types import Flag, Several
from heedful.options.values import flag

MAX_REQUEUES, MAX_PARALLEL = 10, 4


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
