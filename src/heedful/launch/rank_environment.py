"""The rank of this process among several, from the environment that torch's launcher or `srun` sets."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heedful.training.ranks import Ranks

LAUNCHED = "HEEDFUL_LAUNCHED"
"""Set by our own command around torch's launcher, which tells what there is to tell."""
FIRST_PORT, PORTS = 10_000, 20_000
"""Ports below those that systems give out."""


def detect_ranks(environment: MutableMapping[str, str] | None = None) -> Ranks | None:
    """Find the rank of this process among several; None when it is alone."""
    variables = os.environ if environment is None else environment
    if "TORCHELASTIC_RUN_ID" not in variables and not is_slurm_task(variables):
        return None
    # Advice about torch's settings is not for this terminal.
    variables.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    return ranks_from_torch(variables) if "TORCHELASTIC_RUN_ID" in variables else ranks_from_slurm(variables)


def ranks_from_torch(variables: Mapping[str, str]) -> Ranks:
    """Read the variables of torch's launcher, ours or `torchrun` by hand."""
    from heedful.training.ranks import Ranks

    return Ranks(
        rank=int(variables["RANK"]),
        size=int(variables["WORLD_SIZE"]),
        local_rank=int(variables["LOCAL_RANK"]),
        local_size=int(variables["LOCAL_WORLD_SIZE"]),
        launched=LAUNCHED in variables,
    )


def is_slurm_task(variables: Mapping[str, str]) -> bool:
    """Whether `srun` started this process as one of several; a batch script itself has no step."""
    return read_number(variables, "SLURM_STEP_NUM_TASKS") > 1 and "SLURM_PROCID" in variables


def is_slurm_follower(variables: Mapping[str, str]) -> bool:
    """Whether this is a task of a job, but not the first one, which prints for the job."""
    return is_slurm_task(variables) and read_number(variables, "SLURM_PROCID") > 0


def ranks_from_slurm(variables: MutableMapping[str, str]) -> Ranks:
    """Read the variables of `srun`, and tell torch where the processes meet: at the first node."""
    from heedful.training.ranks import Ranks

    counts = tasks_by_node(variables.get("SLURM_STEP_TASKS_PER_NODE", ""))
    node = read_number(variables, "SLURM_NODEID")
    apart = read_number(variables, "SLURM_JOB_ID") + 101 * read_number(variables, "SLURM_STEP_ID")
    variables.setdefault("MASTER_ADDR", first_node(variables))
    variables.setdefault("MASTER_PORT", str(FIRST_PORT + apart % PORTS))
    return Ranks(
        rank=read_number(variables, "SLURM_PROCID"),
        size=read_number(variables, "SLURM_STEP_NUM_TASKS"),
        local_rank=read_number(variables, "SLURM_LOCALID"),
        local_size=counts[node] if node < len(counts) else 1,
        cores=read_number(variables, "SLURM_CPUS_PER_TASK") or None,
    )


def first_node(variables: Mapping[str, str]) -> str:
    from heedful.launch.slurm import client

    nodes = variables.get("SLURM_STEP_NODELIST") or variables.get("SLURM_JOB_NODELIST", "")
    if read_number(variables, "SLURM_STEP_NUM_NODES") <= 1 or not nodes:
        return "127.0.0.1"
    return client.run_slurm_command(["scontrol", "show", "hostnames", nodes]).split()[0]


def tasks_by_node(text: str) -> list[int]:
    """Return the number of tasks on each node: Slurm's 2(x3),1 means 2, 2, 2, 1."""
    counts: list[int] = []
    for tasks, times in re.findall(r"(\d+)(?:\(x(\d+)\))?", text):
        counts += [int(tasks)] * int(times or 1)
    return counts


def read_number(variables: Mapping[str, str], name: str) -> int:
    return int(variables[name]) if variables.get(name, "").isdigit() else 0
