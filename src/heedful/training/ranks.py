"""Several processes that train one model: which of them this is, and what all of them agree on.

A launcher (`heedful.launch.processes`) joins them. Without one there is a single process, the first of one,
and whatever would be agreed on is what it says itself. Torch is imported when there is something to exchange.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from heedful.errors import UserError
from heedful.runs.environment import usable_cores

if TYPE_CHECKING:
    import torch

T = TypeVar("T")
STATUS_LOST = 70
"""One of the processes died (EX_SOFTWARE)."""
EXCHANGE = timedelta(minutes=10)
"""The longest that processes wait for each other within a step, or to find each other."""
WAIT = timedelta(hours=6)
"""The longest that they wait while the first one reads data, scores or writes."""


class LostError(UserError):
    """One of the processes is gone, and the others cannot go on."""

    status = STATUS_LOST


@dataclass(frozen=True)
class Ranks:
    """One process among those that train together."""

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    local_size: int = 1
    """Processes on this node."""
    launched: bool = False
    """Whether another process speaks for all of them: they say nothing about signals and errors."""
    cores: int | None = None
    """Cores of this process alone, where the launcher knows; else its share of the node's."""
    group: Any = field(default=None, repr=False)

    @property
    def first(self) -> bool:
        """Whether this is the first process, which writes and prints; the others only compute."""
        return self.rank == 0

    @property
    def alone(self) -> bool:
        return self.size == 1

    @property
    def threads(self) -> int:
        """The number of threads: this process's share of the cores."""
        return self.cores or max(1, usable_cores() // self.local_size)

    def broadcast(self, value: T) -> T:
        """Return the first process's value in all of them."""
        if self.alone:
            return value
        from torch import distributed as dist

        box = [value if self.first else None]
        with report_lost_process():
            dist.broadcast_object_list(box, src=0, group=self.group)
        return box[0]  # type: ignore[return-value]

    def barrier(self) -> None:
        self.sum([[0.0]])

    def maximum(self, values: Sequence[int]) -> list[int]:
        """Return the largest of each value over all processes."""
        return self.reduce(values, "MAX", "int64")

    def sum(self, rows: Sequence[Sequence[float]]) -> list[list[float]]:
        """Return the sum of each value over all processes."""
        return self.reduce(rows, "SUM", "float64")

    def reduce(self, values: Sequence[Any], operation: str, dtype: str) -> list[Any]:
        if self.alone:
            return list(values)
        import torch
        from torch import distributed as dist

        reduced = torch.tensor(values, dtype=getattr(torch, dtype))
        with report_lost_process():
            dist.all_reduce(reduced, getattr(dist.ReduceOp, operation), group=self.group)
        return reduced.tolist()

    @contextmanager
    def first_process_first(self) -> Iterator[None]:
        """Let the first process work before the others, which then find in the cache what it put there."""
        if not self.first:
            self.barrier()
        yield
        if self.first:
            self.barrier()

    def device(self, found: torch.device) -> torch.device:
        """Return this process's own GPU, or the device as it is."""
        if self.alone or found.type != "cuda":
            return found
        import torch

        visible = torch.cuda.device_count()
        if visible > 1 and self.local_rank >= visible:
            raise UserError(f"there are {visible} GPUs for {self.local_size} processes on this node")
        gpu = torch.device("cuda", self.local_rank if visible > 1 else 0)
        torch.cuda.set_device(gpu)
        return gpu


_current = [Ranks()]


def current_ranks() -> Ranks:
    return _current[-1]


@contextmanager
def join_processes(ranks: Ranks, device: str) -> Iterator[Ranks]:
    """Meet the others, where MASTER_ADDR and MASTER_PORT say; inside, all but the first are silent."""
    import torch
    from torch import distributed as dist

    on_gpus = torch.cuda.is_available() and device in ("auto", "cuda")
    try:
        dist.init_process_group(
            "cpu:gloo,cuda:nccl" if on_gpus else "gloo",
            rank=ranks.rank,
            world_size=ranks.size,
            timeout=EXCHANGE,
        )
    except (RuntimeError, ValueError) as error:
        reason = str(error).partition("\n")[0]
        raise LostError(f"the {ranks.size} processes do not find each other: {reason}") from None
    _current.append(replace(ranks, group=dist.new_group(backend="gloo", timeout=WAIT)))
    try:
        current_ranks().barrier()  # connects them: from now on the end of one is noticed by all
        with silence(not ranks.first):
            yield current_ranks()
    finally:
        _current.pop()
        dist.destroy_process_group()


@contextmanager
def silence(silent: bool) -> Iterator[None]:
    if not silent:
        yield
        return
    with Path(os.devnull).open("w") as nowhere, redirect_stderr(nowhere), redirect_stdout(nowhere):
        yield


@contextmanager
def report_lost_process(only: Sequence[str] = ()) -> Iterator[None]:
    """Tell an error of the exchange in one line; with `only`, errors that hold one of these words."""
    try:
        yield
    except RuntimeError as error:
        if only and not any(word in str(error) for word in only):
            raise
        raise LostError("another process of this run is gone") from error
