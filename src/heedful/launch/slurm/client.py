"""Calls Slurm's commands and parses their output, with separators that no name contains."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heedful.errors import UserError, shorten
from heedful.launch.rank_environment import read_number

FIELD, RECORD = "\x1f", "\x1e"
QUEUE_FORMAT = RECORD + FIELD.join(("%F", "%K", "%T", "%r", "%M", "%l", "%P", "%N", "%o"))
PATIENCE_SECONDS = 60
ACTIVE = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "REQUEUED", "RESIZING",
          "REQUEUE_HOLD", "REQUEUE_FED", "SIGNALING", "STAGE_OUT", "STOPPED", "SPECIAL_EXIT")  # fmt: skip
"""States of a job that is not over."""


class NoSlurmError(UserError):
    """Slurm's commands are not on this machine."""


class SlurmError(UserError):
    """Slurm was asked, and refused."""


REMEDIES = {
    "Could not establish a configuration source": "this machine belongs to no Slurm cluster",
    "Unable to process configuration file": "SLURM_CONF names no configuration of a Slurm cluster",
    "Unable to contact slurm controller": "the cluster's controller does not answer",
    "Zero Bytes were transmitted or received": "the cluster's controller does not answer",
}
"""What errors mean that come from a machine whose cluster is missing or down."""
WITHOUT_CLUSTER = (
    "log in to a node of a cluster, or set SLURM_CONF; scripts/local-slurm starts a cluster for trying out"
)


@dataclass(frozen=True)
class QueueEntry:
    """Slurm's record of one job, or of one task of an array."""

    job: str
    task: int | None
    state: str
    reason: str = ""
    elapsed: str = ""
    limit: str = ""
    partition: str = ""
    nodes: str = ""
    command: str = ""
    exit_status: int | None = None

    @property
    def active(self) -> bool:
        return self.state in ACTIVE


def run_slurm_command(words: Sequence[str], cwd: Path | None = None, stdin: bytes = b"") -> str:
    """Return what a command of Slurm prints; raise its error in one line."""
    try:
        done = subprocess.run(
            words, cwd=cwd, input=stdin, capture_output=True, timeout=PATIENCE_SECONDS, check=False
        )
    except FileNotFoundError:
        if cwd is not None and not cwd.is_dir():
            raise UserError(f"{cwd}: there is no such folder") from None
        raise NoSlurmError(
            f"there is no {words[0]} on this machine: Slurm is not installed here; "
            "log in to a cluster's node that has it"
        ) from None
    except subprocess.TimeoutExpired:
        raise SlurmError(f"{words[0]}: Slurm does not answer within {PATIENCE_SECONDS} s") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip() or f"status {done.returncode}"
        reasons = [re.sub(rf"^{re.escape(words[0])}: (?:error: |fatal: )?", "", s) for s in said.splitlines()]
        for words_of_slurm, meaning in REMEDIES.items():
            if words_of_slurm in said:
                raise SlurmError(f"{words[0]}: {meaning} ({words_of_slurm}); {WITHOUT_CLUSTER}")
        raise SlurmError(f"{words[0]}: {'; '.join(reasons)}")
    return os.fsdecode(done.stdout)


def sbatch(script: str, folder: Path) -> str:
    """Submit a script from its folder, and return the job's number."""
    said = run_slurm_command(["sbatch", "--parsable", script], cwd=folder).strip()
    number = said.splitlines()[-1].partition(";")[0] if said else ""
    if not number.isdigit():
        raise SlurmError(f'sbatch: printed "{shorten(said)}", not a job number')
    return number


def test_script(script: str) -> None:
    run_slurm_command(["sbatch", "--test-only"], stdin=os.fsencode(script))


def scancel(job: str) -> None:
    run_slurm_command(["scancel", job])


def requeue(job: str) -> None:
    """Put a running job back into the queue; Slurm ends its processes."""
    run_slurm_command(["scontrol", "requeue", job])


def read_queue() -> list[QueueEntry]:
    """List this person's jobs that Slurm still has in mind: queued, running, and ended a few minutes ago."""
    asked = ["squeue", f"--user={os.getuid()}", "--states=all", "--array", "--noheader"]
    return parse_queue(run_slurm_command([*asked, f"--format={QUEUE_FORMAT}"]))


def parse_queue(text: str) -> list[QueueEntry]:
    """Read squeue's records; a name or path may hold line breaks."""
    entries = []
    for record in text.split(RECORD)[1:]:
        parts = record.removesuffix("\n").split(FIELD)
        if len(parts) < 9:
            raise SlurmError(f'squeue: printed "{shorten(record)}", which is not what was asked for')
        job, task, state, reason, elapsed, limit, partition, nodes = parts[:8]
        number = int(task) if task.isdigit() else None
        reason = "" if reason in ("None", "(null)") else reason
        command = FIELD.join(parts[8:])
        entries.append(QueueEntry(job, number, state, reason, elapsed, limit, partition, nodes, command))
    return entries


def read_accounting(jobs: Sequence[str]) -> list[QueueEntry]:
    """Return the accounting's records of jobs that have left the queue; none if there is no accounting."""
    if not jobs:
        return []
    asked = ["sacct", "--allocations", "--noheader", "--parsable2", "--format=JobID,State,ExitCode,Elapsed"]
    try:
        return parse_accounting(run_slurm_command([*asked, f"--jobs={','.join(jobs)}"]))
    except (NoSlurmError, SlurmError):
        return []


def parse_accounting(text: str) -> list[QueueEntry]:
    """Read sacct's lines; "CANCELLED by 1000" is CANCELLED."""
    entries = []
    for line in text.splitlines():
        parts = line.split("|")
        job, _, task = parts[0].partition("_")
        if len(parts) < 4 or not job.isdigit():
            continue
        status = parse_exit_status(*parts[2].partition(":")[::2])
        number = int(task) if task.isdigit() else None
        state = parts[1].split(" ")[0] or "UNKNOWN"
        entries.append(QueueEntry(job, number, state, elapsed=parts[3], exit_status=status))
    return entries


def ask_exit_status(entry: QueueEntry) -> int | None:
    """Return the status of a job that ended a few minutes ago; None when Slurm does not know it."""
    job = entry.job if entry.task is None else f"{entry.job}_{entry.task}"
    try:
        said = run_slurm_command(["scontrol", "--oneliner", "show", "job", job])
    except (NoSlurmError, SlurmError):
        return None
    code = re.search(r"\sExitCode=(\d+):(\d+)\s", said)
    return parse_exit_status(code[1], code[2]) if code else None


def parse_exit_status(code: str, sign: str) -> int | None:
    """Return a shell's status from Slurm's CODE:SIGNAL."""
    if not code.isdigit():
        return None
    return 128 + int(sign) if sign.isdigit() and int(sign) else int(code)


@dataclass(frozen=True)
class Node:
    name: str
    state: str
    partitions: str
    cpus: int
    cpus_free: int
    memory_gb: float
    memory_free_gb: float
    gpus: int
    gpus_free: int
    gpu_types: str = ""
    reason: str = ""

    @property
    def usable(self) -> bool:
        return self.state.rstrip("*").upper().split("+")[0] in ("IDLE", "MIXED", "ALLOCATED", "COMPLETING")


def read_nodes() -> list[Node]:
    return parse_nodes(run_slurm_command(["scontrol", "--details", "--oneliner", "show", "nodes"]))


def parse_nodes(text: str) -> list[Node]:
    return [parse_node(line) for line in text.splitlines() if line.startswith("NodeName=")]


def parse_node(line: str) -> Node:
    """Read one node; of a name that comes twice (in a comment, say) the first counts."""
    values: dict[str, str] = {}
    for name, value in re.findall(r"(?:^|\s)([A-Za-z:/_]+)=(\S*)", line):
        values.setdefault(name, "" if value in ("(null)", "N/A") else value)
    reason = re.search(r"\sReason=(.*?)(?:\s\[[^\]]*\])?(?:\s+Comment=.*)?$", line)
    cpus, memory = read_number(values, "CPUTot"), read_number(values, "RealMemory")
    total, kinds = count_gpus(values.get("Gres", ""))
    used, _ = count_gpus(values.get("GresUsed", ""))
    node = Node(
        name=values["NodeName"],
        state=values.get("State", "").lower(),
        partitions=values.get("Partitions", ""),
        cpus=cpus,
        cpus_free=cpus - read_number(values, "CPUAlloc"),
        memory_gb=round(memory / 1024, 1),
        memory_free_gb=round((memory - read_number(values, "AllocMem")) / 1024, 1),
        gpus=total,
        gpus_free=total - used,
        gpu_types=kinds,
        reason=reason[1].strip() if reason else "",
    )
    if node.usable and "drain" not in node.state:
        return node
    return Node(**{**vars(node), "cpus_free": 0, "memory_free_gb": 0.0, "gpus_free": 0})


def count_gpus(gres: str) -> tuple[int, str]:
    """Count the GPUs of gpu:a100:4(S:0-1),gpu:2 and name their types."""
    total, kinds = 0, []
    for kind, count in re.findall(r"(?:^|,)gpu(?::([A-Za-z0-9_.-]+))??:(\d+)(?![\w.-])", gres):
        total += int(count)
        if kind:
            kinds.append(kind)
    return total, ",".join(dict.fromkeys(kinds))
