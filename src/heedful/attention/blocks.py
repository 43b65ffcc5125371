"""Which blocks see which, and softmax attention over gathered blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from heedful.attention.dropout import Keep

CHUNK = 1 << 18
"""Scores per chunk: 1 MiB of float32, a share of the level-2 cache."""


@dataclass(frozen=True)
class Pattern:
    """BigBird's pattern between blocks: a function of position, seed and (not causal) length alone."""

    window: int
    n_global: int
    n_random: int
    seed: int

    @lru_cache(maxsize=256)  # noqa: B019, patterns are equal by value and few
    def table(self, blocks: int, length: int, causal: bool) -> Tensor:
        """Return the blocks below `length` that each of `blocks` blocks sees [blocks, slots].

        The window comes first (causal: the row's block is its last slot), then global, then random blocks; -1
        is an empty slot.
        """
        row = np.arange(blocks)[:, None]
        first = row - (self.window - 1 if causal else self.window // 2)
        last = first + self.window - 1
        near = first + np.arange(self.window)  # [blocks, window]
        near = np.where((near >= 0) & (near < length), near, -1)
        far = np.arange(min(self.n_global, length))[None]
        far = np.where((far < first) | ((far > last) & (not causal)), far, -1)  # [blocks, global]
        parts = [near, np.broadcast_to(far, (blocks, far.shape[1]))]
        other = np.arange(self.n_global, length)[None]
        if self.n_random and other.size:
            luck = hash_pairs(self.seed, row, other)
            luck = np.where((other < first) | ((other > last) & (not causal)), luck, np.inf)
            pick = np.argsort(luck, axis=1, kind="stable")[:, : self.n_random]
            parts.append(np.where(np.isfinite(np.take_along_axis(luck, pick, 1)), pick + self.n_global, -1))
        table = np.concatenate(parts, axis=1)
        used = (table >= 0).any(0) | (np.arange(table.shape[1]) < self.window)
        with torch.inference_mode(False):  # the cached table may be used for training later
            return torch.from_numpy(table[:, used].astype(np.int64))

    def matrix(self, blocks: int, causal: bool) -> Tensor:
        """Return which block sees which [blocks, blocks]; if not causal, global blocks see all."""
        table = self.table(blocks, blocks, causal)
        seen = torch.zeros(blocks, blocks + 1, dtype=torch.bool)
        seen = seen.scatter_(1, table % (blocks + 1), True)[:, :-1]  # empty slots are in the last column
        if not causal:
            seen[: self.n_global] = True
        return seen


def hash_pairs(seed: int, i: np.ndarray[Any, Any], j: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a number in [0, 1) for each pair, from the pair and the seed alone (splitmix64's finalizer)."""
    x: np.ndarray[Any, Any] = np.full((1, 1), seed % 2**64, dtype=np.uint64)
    for part in (i, j):
        x = x + (part.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    luck: np.ndarray[Any, Any] = (x >> np.uint64(11)).astype(np.float64) / 2.0**53
    return luck


@dataclass
class BlockChunk:
    """Some query blocks of some rows and heads, and where their keys are."""

    rows: slice
    heads: slice
    blocks: slice
    index: Tensor  # [blocks slots]
    additive: Tensor  # [rows or 1, 1, blocks, 1, slots block + prefix]
    masked: bool

    def queries(self, x: Tensor) -> Tensor:
        return x[self.rows, self.heads, self.blocks]

    def gather(self, x: Tensor, always: Tensor) -> Tensor:
        """Return the keys or values of every query block [rows, heads, blocks, slots block + prefix, d]."""
        count = self.blocks.stop - self.blocks.start
        got = x[self.rows, self.heads].index_select(2, self.index)  # [rows, heads, blocks slots, block, d]
        got = got.view(*got.shape[:2], count, -1, got.shape[-1])
        if always.shape[2] == 0:
            return got
        return torch.cat([got, always[self.rows, self.heads, None].expand(-1, -1, count, -1, -1)], 3)

    def scatter(self, grad: Tensor, x: Tensor, always: Tensor) -> None:
        """Add the gradient of gathered keys or values to where they came from."""
        prefix, part = always.shape[2], x[self.rows, self.heads]
        if prefix:
            always[self.rows, self.heads].add_(grad[:, :, :, grad.shape[3] - prefix :].sum(2))
            grad = grad[:, :, :, : grad.shape[3] - prefix]
        part.index_add_(2, self.index, grad.reshape(*part.shape[:2], -1, *part.shape[3:]))

    def weights(self, q: Tensor, k: Tensor, triangle: Tensor | None, slot: int | None) -> Tensor:
        scores = torch.matmul(q, k.mT)  # [rows, heads, blocks, block, slots block + prefix]
        scores += self.additive
        if triangle is not None and slot is not None:
            block = triangle.shape[0]
            scores[..., slot * block : (slot + 1) * block] += triangle
        if not self.masked:
            return torch.softmax(scores, -1, out=scores)
        alive = (scores.amax(-1, keepdim=True) > 0.5 * torch.finfo(q.dtype).min).to(q.dtype)
        return torch.softmax(scores, -1, out=scores).mul_(alive)


def chunks(q: Tensor, real: Tensor | None, tables: Tensor, prefix: int) -> Iterator[BlockChunk]:
    """Iterate over all chunks, in an order that forward and backward share: the random numbers follow it."""
    b, h, count, block, _ = q.shape
    slots = tables.shape[-1]
    low = torch.finfo(q.dtype).min
    one = block * (slots * block + prefix)
    blocks = max(1, min(count, CHUNK // one))
    heads = max(1, min(h, CHUNK // (one * blocks)))
    together = heads == h and tables.shape[0] == 1
    rows = max(1, min(b, CHUNK // (one * blocks * heads))) if together else 1
    for y in range(0, b, rows):
        table = tables[0 if tables.shape[0] == 1 else y]
        for i in range(0, count, blocks):
            stop = min(i + blocks, count)
            index = table[i:stop]
            seen = (index >= 0)[None, :, :, None].expand(-1, -1, -1, block)  # [1, blocks, slots, block]
            index = index.clamp_min(0).flatten()
            if real is not None:
                rows_real = real if real.shape[0] == 1 else real[y : y + rows]
                seen = seen & rows_real.index_select(1, index).view(len(rows_real), stop - i, slots, block)
            additive = torch.zeros(seen.shape, dtype=q.dtype, device=q.device).masked_fill_(~seen, low)
            additive = additive.view(seen.shape[0], 1, stop - i, 1, slots * block)
            if prefix:
                additive = torch.nn.functional.pad(additive, (0, prefix))
            for x in range(0, h, heads):
                yield BlockChunk(
                    slice(y, y + rows), slice(x, x + heads), slice(i, stop), index, additive, real is not None
                )


class BlockAttention(torch.autograd.Function):
    """Softmax attention of query blocks over the key blocks of a table; keeps only its inputs.

    q is [b, h, t, d], k and v [b, h, n, d], t and n multiples of the block; `real` [b or 1, n] is False at
    padding; row i of `tables` [b or 1, t / block, slots] names the blocks that query block i sees.
    `slot` is that of the own block when causal.
    """

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        k_prefix: Tensor,
        v_prefix: Tensor,
        real: Tensor | None,
        tables: Tensor,
        block: int,
        slot: int | None,
        scale: float,
        p: float,
        seed: int,
    ) -> Tensor:
        q, k, v = (x.reshape(*x.shape[:2], -1, block, x.shape[-1]) for x in (q, k, v))
        real = None if real is None else real.view(real.shape[0], -1, block)
        ctx.save_for_backward(q, k, v, k_prefix, v_prefix, real, tables)
        ctx.slot, ctx.scale, ctx.p, ctx.seed = slot, scale, p, seed
        out = torch.empty((*q.shape[:-1], v.shape[-1]), dtype=q.dtype, device=q.device)
        keep, triangle = Keep(p, seed), causal_triangle(q, slot)
        for chunk in chunks(q, real, tables, k_prefix.shape[2]):
            weights = chunk.weights(chunk.queries(q) * scale, chunk.gather(k, k_prefix), triangle, slot)
            if p:
                weights.mul_(keep.draw(weights)).mul_(keep.scale)
            chunk.queries(out).copy_(torch.matmul(weights, chunk.gather(v, v_prefix)))
        return out.flatten(2, 3)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Any, ...]:
        q, k, v, k_prefix, v_prefix, real, tables = ctx.saved_tensors
        grad = grads[0].reshape(*q.shape[:-1], v.shape[-1])
        dq, dk, dv = torch.empty_like(q), torch.zeros_like(k), torch.zeros_like(v)
        dk_prefix, dv_prefix = torch.zeros_like(k_prefix), torch.zeros_like(v_prefix)
        keep, triangle = Keep(ctx.p, ctx.seed), causal_triangle(q, ctx.slot)
        for chunk in chunks(q, real, tables, k_prefix.shape[2]):
            queries, keys = chunk.queries(q) * ctx.scale, chunk.gather(k, k_prefix)
            weights = chunk.weights(queries, keys, triangle, ctx.slot)
            g = chunk.queries(grad)
            dweights = torch.matmul(g, chunk.gather(v, v_prefix).mT)
            seen = weights
            if ctx.p:
                kept = keep.draw(weights).mul_(keep.scale)
                dweights *= kept
                seen = kept.mul_(weights)
            chunk.scatter(torch.matmul(seen.mT, g), dv, dv_prefix)
            dscores = dweights.sub_((dweights * weights).sum(-1, keepdim=True)).mul_(weights)
            chunk.queries(dq).copy_(torch.matmul(dscores, keys)).mul_(ctx.scale)
            chunk.scatter(torch.matmul(dscores.mT, queries), dk, dk_prefix)
        whole = [x.flatten(2, 3) for x in (dq, dk, dv)]
        return *whole, dk_prefix, dv_prefix, None, None, None, None, None, None, None


def causal_triangle(q: Tensor, slot: int | None) -> Tensor | None:
    """Return what is added to the scores inside a block when causal [block, block]."""
    if slot is None:
        return None
    block = q.shape[3]
    return torch.full((block, block), torch.finfo(q.dtype).min, dtype=q.dtype, device=q.device).triu_(1)
