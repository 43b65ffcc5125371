"""Batches: which examples go together in a step, and how they become rectangular arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from heedful.data.random import key, stream

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

    `order` is "grouped" (shuffled, then sorted by length within windows of about 64 batches, and the batches
    shuffled: little padding, still random), "shuffled", "sorted" (longest first, for evaluation: what does
    not fit into memory fails at once) or "file".

    A batch holds `batch_size` examples, or as many as keep examples x longest within `token_budget` (a single
    longer example forms a batch of its own), or both. Iterating yields the batches of the first epoch.
    """

    def __init__(
        self,
        lengths: Sequence[int] | Array,
        *,
        batch_size: int | None = None,
        token_budget: int | None = None,
        seed: int = 0,
        order: Order = "grouped",
    ) -> None:
        if batch_size is None and token_budget is None:
            raise ValueError("a batch needs batch_size or token_budget")
        for name, value in (("batch_size", batch_size), ("token_budget", token_budget)):
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}; it must be at least 1")
        if order not in get_args(Order):
            raise ValueError(f'order is "{order}"; it is one of {", ".join(get_args(Order))}')
        self.lengths: Ints = np.asarray(lengths, dtype=np.int64)
        self.batch_size, self.token_budget = batch_size, token_budget
        self.seed, self.order = seed, order
        self.cached_plan: tuple[int, EpochPlan] | None = None

    def plan(self, epoch: int) -> EpochPlan:
        """Return the batches of an epoch; the most recent plan is kept."""
        if self.cached_plan is None or self.cached_plan[0] != epoch:
            self.cached_plan = (epoch, self.make_plan(epoch))
        return self.cached_plan[1]

    def make_plan(self, epoch: int) -> EpochPlan:
        n, size, budget = len(self.lengths), self.batch_size, self.token_budget
        generator = stream(self.seed, "batches", epoch)
        if self.order == "sorted":
            order = np.argsort(-self.lengths, kind="stable")
        elif self.order == "file":
            order = np.arange(n)
        else:
            order = generator.permutation(n)
        if self.order != "grouped":
            return EpochPlan(order, cut_into_batches(self.lengths[order], size, budget))
        mean_length = max(1, int(self.lengths.mean()) if n else 1)
        window = WINDOW_BATCHES * (size or max(1, (budget or 0) // mean_length))
        windows = [sort_by_length(order[i : i + window], self.lengths) for i in range(0, n, window)]
        order = np.concatenate(windows or [order])
        bounds = cut_into_batches(self.lengths[order], size, budget)
        return EpochPlan(order, bounds[generator.permutation(len(bounds))])

    def __len__(self) -> int:
        return len(self.plan(0))

    def __iter__(self) -> Iterator[Ints]:
        plan = self.plan(0)
        for number in range(len(plan)):
            yield plan[number]

    def fingerprint(self) -> int:
        data = blake2b(self.lengths.tobytes(), digest_size=16).hexdigest()
        # "False" is a setting that is gone; checkpoints written while it existed still match.
        settings = f"{self.order} {self.batch_size} {self.token_budget} False"
        return key(self.seed, f"{settings} {data}") % 2**53


@dataclass(frozen=True)
class EpochPlan:
    """One epoch: the examples in order, and where each batch begins and ends among them."""

    order: Ints
    bounds: Ints
    """[batches, 2]"""

    def __len__(self) -> int:
        return len(self.bounds)

    def __getitem__(self, at: int) -> Ints:
        start, end = self.bounds[at]
        return self.order[start:end]


def sort_by_length(examples: Ints, lengths: Ints) -> Ints:
    return examples[np.argsort(lengths[examples], kind="stable")]


def cut_into_batches(lengths: Ints, size: int | None, budget: int | None) -> Ints:
    """Cut examples into batches as large as `size` and `budget` allow; return the bounds, [batches, 2]."""
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


def measure_padding(
    lengths: Sequence[int] | Array,
    *,
    batch_size: int | None = None,
    token_budget: int | None = None,
    seed: int = 0,
) -> dict[str, float]:
    """Return, for each batching strategy, the share of positions in an epoch that is padding.

    By default `batch_size` is 32 and `token_budget` is what a batch of average texts holds.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    size = batch_size or 32
    if not lengths.sum():
        raise ValueError("padding cannot be measured: there is no text")
    budget = token_budget or max(1, round(size * float(lengths.mean())))

    def share(order: Order, batch_size: int | None = size, token_budget: int | None = None) -> float:
        batches = Batches(lengths, seed=seed, order=order, batch_size=batch_size, token_budget=token_budget)
        padded = sum(len(batch) * int(lengths[batch].max()) for batch in batches)
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
    ids: Ints
    """[b, t]"""
    mask: npt.NDArray[np.bool_]
    """[b, t], True = attend"""
    types: Ints | None = None
    """[b, t]"""
    labels: Array | None = None
    """[b], or [b, t] for labels of tokens"""
    examples: Ints = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    """[b], the number of each example in the data, to put results back in order"""

    def tensors(self) -> dict[str, torch.Tensor]:
        """Return the arrays that are not None as tensors that share their memory."""
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
    """Collate examples into arrays, padded on the right to the longest.

    Labels are one number per example, or one sequence per example, which is padded with `IGNORED`.
    """
    lengths = np.fromiter((len(row) for row in ids), dtype=np.int64, count=len(ids))
    target: Array | None = None
    if labels is not None:
        is_nested = len(labels) and np.ndim(labels[0])
        target = pad(labels, IGNORED) if is_nested else np.asarray(labels, dtype=np.int64)
    return Batch(
        ids=pad(ids, pad_id),
        mask=np.arange(lengths.max(initial=0))[None] < lengths[:, None],
        types=None if types is None else pad(types, 0),
        labels=target,
        examples=np.arange(len(ids)) if examples is None else examples,
    )


def pad(rows: Sequence[Array], value: int, width: int | None = None) -> Ints:
    """Pad rows of different lengths with `value` into one array, [rows, longest or `width`]."""
    lengths = np.fromiter((len(row) for row in rows), dtype=np.int64, count=len(rows))
    out = np.full((len(rows), int(lengths.max(initial=0)) if width is None else width), value, dtype=np.int64)
    if len(rows):
        out[np.arange(out.shape[1])[None] < lengths[:, None]] = np.concatenate(rows)
    return out
