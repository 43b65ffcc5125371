"""Who may attend to whom."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Mask:
    """Keeps apart what linear mechanisms need apart. True always means: attend.

    - `causal`: text query i sees text key j only if j <= i + `offset`.
    - `keys` [b, n]: False at padding; n counts the text keys, without the prefix.
    - `segments` [b, n]: the document each text position belongs to; only equal ones see each other.
      A document's positions are side by side: `documents` refuses others, and with it every mechanism
      that counts positions in documents. Where the pattern alone decides (softmax), nothing depends on it.
    - `prefix`: that many leading keys belong to no text (prefix tuning); every query sees them.
    - `offset`: the text position of the first query, when earlier keys come from a cache (t != s).
    """

    causal: bool = False
    keys: Tensor | None = None
    segments: Tensor | None = None
    prefix: int = 0
    offset: int = 0

    def __post_init__(self) -> None:
        if self.prefix < 0 or self.offset < 0:
            raise ValueError(f"prefix {self.prefix} and offset {self.offset} must not be negative")

    def allowed(self, t: int, s: int, device: torch.device | None = None) -> Tensor | None:
        """Return the pattern as a boolean [b or 1, 1, t or 1, s], or None when everything may be seen."""
        n = s - self.prefix
        seen: Tensor | None = None
        if self.causal and n > self.offset + 1:
            query = torch.arange(self.offset, self.offset + t, device=device)
            seen = (torch.arange(n, device=device) <= query[:, None])[None, None]  # [1, 1, t, n]
        if self.keys is not None:
            real = self.keys.bool()[:, None, None, :]  # [b, 1, 1, n]
            seen = real if seen is None else seen & real
        if self.segments is not None:
            queries = self.segments[:, self.offset : self.offset + t]
            same = (queries[:, :, None] == self.segments[:, None, :])[:, None]  # [b, 1, t, n]
            seen = same if seen is None else seen & same
        if seen is None or self.prefix == 0:
            return seen
        always = seen.new_ones((*seen.shape[:-1], self.prefix))
        return torch.cat([always, seen], dim=-1)

    def after(self, start: int) -> Mask:
        return replace(self, offset=self.offset + start)

    def reach(self, stop: int, s: int) -> int:
        """Return how many of the s leading keys the queries before `stop` can see at most."""
        return min(s, self.prefix + self.offset + stop) if self.causal else s

    def softmax(self, scores: Tensor) -> Tensor:
        """Softmax over the visible keys of each row; a row with nothing to attend gives zeros."""
        allowed = self.allowed(scores.shape[-2], scores.shape[-1], scores.device)
        return masked_softmax(scores, allowed)

    def padded_left(self) -> bool:
        if self.keys is None:
            return False
        keys = self.keys.bool()
        return bool((~keys[:, 0] & keys.any(1)).any())

    def documents(self, b: int, n: int) -> list[tuple[int, int, int]]:
        """Return each document that has a real key: (row, first real position, one past the last)."""
        if self.keys is None and self.segments is None:
            return [(row, 0, n) for row in range(b)]
        real = torch.ones(b, n, dtype=torch.bool) if self.keys is None else self.keys.bool().cpu()
        change = torch.zeros(b, n, dtype=torch.bool)
        if self.segments is not None:
            segments = self.segments.cpu()
            change[:, 1:] = segments[:, 1:] != segments[:, :-1]
        run = change.long().cumsum(1) + torch.arange(b)[:, None] * n  # [b, n], unique over the batch
        rows, columns = real.nonzero(as_tuple=True)
        _, counts = torch.unique_consecutive(run[real], return_counts=True)
        last = counts.cumsum(0) - 1
        first = last - counts + 1
        documents = (rows[first], columns[first], columns[last] + 1)
        if self.segments is not None:
            refuse_split_documents(rows[first].tolist(), segments[rows[first], columns[first]].tolist())
        return list(zip(*(part.tolist() for part in documents), strict=True))

    def positions(self, b: int, n: int) -> Tensor:
        """Count each text position [b, n] from the first real one of its document; 0 outside of any."""
        positions = torch.zeros(b, n, dtype=torch.long)
        for row, first, end in self.documents(b, n):
            positions[row, first:end] = torch.arange(end - first)
        return positions


def refuse_split_documents(rows: list[int], numbers: list[int]) -> None:
    """Refuse a row in which a document's number returns after another's: it would count as two."""
    documents = list(zip(rows, numbers, strict=True))
    if len(set(documents)) < len(documents):
        row, number = next(document for document, n in Counter(documents).items() if n > 1)
        raise ValueError(
            f"mask.segments: document {number} of row {row} is in pieces; its positions must be side by side"
        )


def masked_softmax(scores: Tensor, allowed: Tensor | None) -> Tensor:
    """Softmax with a boolean pattern. Finite fill, because a row of -inf would poison the gradient."""
    if allowed is None:
        return scores.softmax(-1)
    weights = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min).softmax(-1)
    return weights.masked_fill(~allowed.any(-1, keepdim=True), 0.0)
