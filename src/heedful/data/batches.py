"""Batches: which examples go together in a step, and how they become rectangular arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from heedful.data.random import key, stream
from heedful.errors import UserError

if TYPE_CHECKING:
    import torch

Array = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]
Order = Literal["grouped", "shuffled", "sorted", "file"]

WINDOW_BATCHES = 64
IGNORED = -100
"""The label of a position without loss, torch's default `ignore_index`."""


class Batches:
    """The batches of every epoch, as arrays of example numbers; a pure function of the seed and the epoch.

    `order` is "grouped" (shuffled, then sorted by length within windows of some 64 batches, and the batches
    shuffled: little padding, still random), "shuffled", "sorted" (longest first, for evaluation: what does
    not fit into memory fails at once) or "file".

    A batch holds `batch_size` examples, or as many as keep examples x longest within `token_budget` (a single
    longer example stands alone), or both. These count the whole step: rank r of `world_size` takes every
    world_size-th example of it, so that the optimisation is the same on any number of ranks, every rank makes
    the same number of steps, and every example is seen exactly once. A rank's part of a small batch may be
    empty; that rank still takes part in the step.

    Iterating gives the rest of the current epoch and then moves on to the next. `state()` between two batches
    and `restore()` continue exactly.
    """

    def __init__(
        self,
        lengths: Sequence[int] | Array,
        *,
        batch_size: int | None = None,
        token_budget: int | None = None,
        seed: int = 0,
        order: Order = "grouped",
        drop_last: bool = False,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        if batch_size is None and token_budget is None:
            raise ValueError("a batch needs batch_size or token_budget")
        for name, value in (("batch_size", batch_size), ("token_budget", token_budget)):
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")
        if order not in get_args(Order):
            raise ValueError(f'order is "{order}"; it is one of {", ".join(get_args(Order))}')
        if drop_last and token_budget is not None:
            raise ValueError(
                "drop_last needs batches of a fixed size; with token_budget no batch is incomplete"
            )
        if not 0 <= rank < world_size:
            raise ValueError(f"rank is {rank} of {world_size}")
        self.lengths: Ints = np.asarray(lengths, dtype=np.int64)
        self.batch_size, self.token_budget = batch_size, token_budget
        self.seed, self.order, self.drop_last = seed, order, drop_last
        self.rank, self.world_size = rank, world_size
        self.epoch = self.position = 0
        self.planned: tuple[int, Plan] | None = None

    def plan(self, epoch: int) -> Plan:
        """Arrange an epoch; the arrangement of the last epoch asked for is kept."""
        if self.planned is None or self.planned[0] != epoch:
            self.planned = (epoch, self.arrange(epoch))
        return self.planned[1]

    def arrange(self, epoch: int) -> Plan:
        n, size, budget = len(self.lengths), self.batch_size, self.token_budget
        generator = stream(self.seed, "batches", epoch)
        if self.order == "sorted":
            order = np.argsort(-self.lengths, kind="stable")
        elif self.order == "file":
            order = np.arange(n)
        else:
            order = generator.permutation(n)
        if self.drop_last and size is not None:
            # Dropped before sorting: dropping the last batch after it would always lose the longest texts.
            order = order[: n - n % size]
        if self.order != "grouped":
            return Plan(order, cuts(self.lengths[order], size, budget))
        window = WINDOW_BATCHES * (
            size or max(1, (budget or 0) // max(1, int(self.lengths.mean()) if n else 1))
        )
        order = np.concatenate(
            [by_length(order[i : i + window], self.lengths) for i in range(0, n, window)] or [order]
        )
        plan = Plan(order, cuts(self.lengths[order], size, budget))
        return plan.shuffled(generator)

    def __len__(self) -> int:
        """Count the batches of the current epoch."""
        return len(self.plan(self.epoch))

    def __iter__(self) -> Iterator[Ints]:
        plan = self.plan(self.epoch)
        while self.position < len(plan):
            self.position += 1
            yield plan[self.position - 1][self.rank :: self.world_size]
        self.epoch, self.position = self.epoch + 1, 0

    def state(self) -> dict[str, int]:
        """Say where we are: batches already given out count as done."""
        return {"epoch": self.epoch, "position": self.position, "fingerprint": self.fingerprint()}

    def restore(self, state: dict[str, int]) -> None:
        """Go back to a saved position; refused when the data or the settings would give other batches."""
        if state["fingerprint"] != self.fingerprint():
            raise UserError(
                "the saved position in the data belongs to other data or other batch settings; "
                "resume with the same data, seed and batch size"
            )
        self.epoch, self.position = state["epoch"], state["position"]

    def fingerprint(self) -> int:
        """Name everything that batches depend on; the number of ranks is not among it."""
        data = blake2b(self.lengths.tobytes(), digest_size=16).hexdigest()
        settings = f"{self.order} {self.batch_size} {self.token_budget} {self.drop_last}"
        return key(self.seed, f"{settings} {data}") % 2**53


@dataclass(frozen=True)
class Plan:
    """An epoch: the examples in order, and where each batch begins and ends in it."""

    order: Ints
    bounds: Ints
    """[batches, 2]"""

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, at: int) -> Ints:
        start, end = self.bounds[at]
        return self.order[start:end]

    def shuffled(self, generator: np.random.Generator) -> Plan:
        """Give the same batches in random order."""
        return Plan(self.order, self.bounds[generator.permutation(len(self.bounds))])


def by_length(examples: Ints, lengths: Ints) -> Ints:
    return examples[np.argsort(lengths[examples], kind="stable")]


def cuts(lengths: Ints, size: int | None, budget: int | None) -> Ints:
    """Cut a row of examples into batches, each as large as `size` and `budget` allow: [batches, 2]."""
    n = len(lengths)
    if budget is None:
        starts = np.arange(0, n, size)
    else:
        most = size or n
        begins, begin, longest = [0] if n else [], 0, 0
        for at, length in enumerate(lengths.tolist()):
            longest = max(longest, length)
            if at > begin and (longest * (at - begin + 1) > budget or at - begin == most):
                begins.append(at)
                begin, longest = at, length
        starts = np.asarray(begins, dtype=np.int64)
    return np.stack([starts, np.append(starts[1:], n)[: len(starts)]], axis=1)


def padding_waste(
    lengths: Sequence[int] | Array,
    *,
    batch_size: int | None = None,
    token_budget: int | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Measure for each strategy the share of positions in an epoch that is padding.

    Without `token_budget` the budget is what a batch of average texts holds (`batch_size` defaults to 32).
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    size = batch_size or 32
    if not lengths.sum():
        raise ValueError("padding cannot be measured: there is no text")
    budget = token_budget or max(1, round(size * float(lengths.mean())))

    def share(order: Order, batch_size: int | None = size, token_budget: int | None = None) -> float:
        limited = Batches(lengths, seed=seed, order=order, batch_size=batch_size, token_budget=token_budget)
        plan = limited.plan(0)
        padded = sum(
            len(batch) * int(lengths[batch].max()) for batch in map(plan.__getitem__, range(len(plan)))
        )
        return 1 - float(lengths.sum()) / padded

    return {
        "all to the longest": 1 - float(lengths.sum()) / (len(lengths) * int(lengths.max())),
        "file order": share("file"),
        "shuffled": share("shuffled"),
        "length-grouped": share("grouped"),
        "length-grouped, token budget": share("grouped", batch_size=None, token_budget=budget),
    }


@dataclass(frozen=True)
class Batch:
    """Examples as rectangular arrays."""

    ids: Ints
    """[b, t]"""
    mask: npt.NDArray[np.bool_]
    """[b, t], True = attend"""
    types: Ints | None = None
    """[b, t]"""
    labels: Array | None = None
    """[b], or [b, t] for labels of tokens"""
    examples: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """[b], the numbers of the examples in the data, to put results back in order"""

    def tensors(self) -> dict[str, torch.Tensor]:
        """Give the arrays that there are as tensors that share their memory."""
        import torch

        arrays = {"ids": self.ids, "mask": self.mask, "types": self.types, "labels": self.labels}
        return {name: torch.from_numpy(array) for name, array in arrays.items() if array is not None}


def collate(
    ids: Sequence[Array],
    *,
    pad_id: int,
    types: Sequence[Array] | None = None,
    labels: Sequence[Any] | None = None,
    examples: Ints | None = None,
) -> Batch:
    """Put examples side by side, padded on the right to the longest.

    Labels are one number an example, or one sequence an example, which is padded with `IGNORED`.
    """
    lengths = np.fromiter((len(row) for row in ids), dtype=np.int64, count=len(ids))
    target: Array | None = None
    if labels is not None:
        target = (
            pad(labels, IGNORED) if len(labels) and np.ndim(labels[0]) else np.asarray(labels, dtype=np.int64)
        )
    return Batch(
        ids=pad(ids, pad_id),
        mask=np.arange(lengths.max(initial=0))[None] < lengths[:, None],
        types=None if types is None else pad(types, 0),
        labels=target,
        examples=np.arange(len(ids)) if examples is None else examples,
    )


def pad(rows: Sequence[Array], value: int, width: int | None = None) -> Ints:
    """Make rows of different lengths one array, [rows, longest or `width`], filled up with `value`."""
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    out = np.full((len(rows), int(lengths.max(initial=0)) if width is None else width), value, dtype=np.int64)
    if len(rows):
        out[np.arange(out.shape[1])[None] < lengths[:, None]] = np.concatenate(rows)
    return out
