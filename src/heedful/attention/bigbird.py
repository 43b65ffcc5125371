"""Attention to a window, to global and to random blocks."""

from __future__ import annotations

from typing import Annotated, Unpack

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.attention.blocks import BlockAttention, Pattern
from heedful.attention.dropout import draw_seed
from heedful.attention.mask import Mask, masked_softmax
from heedful.attention.mechanism import CommonOptions, Mechanism
from heedful.attention.softmax import attend_with_softmax, dot_scores
from heedful.errors import UserError
from heedful.options.types import Bounds, Count, Positive


class Bigbird(Mechanism):
    """Sliding window, global and random blocks (Zaheer et al. 2020, section 2 and appendix D).

    A sequence is cut into blocks of `block` tokens. A block sees `window` blocks around itself, the first
    `n_global` blocks, and `n_random` others drawn by `seed`; the global blocks see everything.
    Causal, which the paper leaves out: the window ends with the own block, random blocks come from before it,
    and nobody sees what lies ahead, so that a row's blocks depend on its position alone.
    Differs from the paper's code in that all heads share the random blocks.
    Grade: same mathematics as softmax under the same pattern.
    """

    name = "bigbird"
    paper = "Zaheer et al. 2020, Big Bird: Transformers for Longer Sequences, arXiv:2007.14062"
    cost = "t (w + g + r) d"
    causal = explicit_weights = prefix = segments = cache = True
    positional = True

    def __init__(
        self,
        *,
        block: Positive = 64,
        window: Positive = 3,
        n_global: Count = 2,
        n_random: Count = 3,
        seed: Annotated[int, Bounds(least=0)] = 0,
        **common: Unpack[CommonOptions],
    ) -> None:
        super().__init__(**common)
        if window % 2 == 0:
            raise UserError(f"bigbird attention: window is an odd number of blocks, not {window}")
        self.block = block
        self.pattern = Pattern(window, n_global, n_random, seed)

    def splits_documents(self, mask: Mask) -> bool:
        # Blocks are counted from the first real position of each document.
        return mask.segments is not None or mask.padded_left()

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        (b, _, t, _), s = q.shape, k.shape[-2]
        allowed = self.dense(mask, b, t, s).to(q.device)
        causal = mask.allowed(t, s, q.device)
        return masked_softmax(dot_scores(q, k, self.scale), allowed if causal is None else allowed & causal)

    def dense(self, mask: Mask, b: int, t: int, s: int) -> Tensor:
        """Return the pattern between tokens [b, 1, t, s], without causality and padding inside a block."""
        n = s - mask.prefix
        seen = torch.zeros(b, t, s, dtype=torch.bool)
        seen[:, :, : mask.prefix] = True
        for row, first, end in mask.documents(b, n):
            blocks = self.pattern.matrix(-(-(end - first) // self.block), mask.causal)
            tokens = blocks.repeat_interleave(self.block, 0).repeat_interleave(self.block, 1)
            start, stop = max(first, mask.offset), min(end, mask.offset + t)
            if start < stop:
                seen[
                    row, start - mask.offset : stop - mask.offset, mask.prefix + first : mask.prefix + end
                ] = tokens[start - first : stop - first, : end - first]
        return seen[:, None]

    def reaches(self, t: int, s: int) -> Tensor:
        seen = self.dense(Mask(causal=True, offset=t), 1, 1, s)[0, 0, 0]
        return seen[: t + 1].nonzero()[:, 0]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """Global rows see everything; the others gather their blocks. A few rows alone go the dense way."""
        (b, _, t, _), n = q.shape, k.shape[-2] - mask.prefix
        if mask.offset or t != n:
            return self.attend_rows(q, k, v, mask, bias)
        p = self.dropout if self.training else 0.0
        dense = 0 if mask.causal else min(t, self.pattern.n_global * self.block)
        parts: list[Tensor] = []
        if dense:
            parts.append(attend_with_softmax(q[:, :, :dense], k, v, mask, None, self.scale, p))
        if dense < t:
            tables = self.tables(mask, b, n)[:, dense // self.block :]
            parts.append(self.attend_blocks(q[:, :, dense:], k, v, mask, tables, p))
        return parts[0] if len(parts) == 1 else torch.cat(parts, 2)

    def tables(self, mask: Mask, b: int, n: int) -> Tensor:
        """Return the blocks that each block sees [b or 1, blocks, slots]; -1 is an empty slot."""
        blocks = -(-n // self.block)
        if mask.causal or mask.keys is None:
            return self.pattern.table(blocks, blocks, mask.causal)[None]
        ends = {row: end for row, _, end in mask.documents(b, n)}
        lengths = [-(-ends.get(row, 1) // self.block) for row in range(b)]
        if len(set(lengths)) == 1:
            return self.pattern.table(blocks, lengths[0], False)[None]
        each = [self.pattern.table(blocks, x, False) for x in lengths]
        slots = max(table.shape[1] for table in each)
        return torch.stack([F.pad(table, (0, slots - table.shape[1]), value=-1) for table in each])

    def attend_blocks(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, tables: Tensor, p: float) -> Tensor:
        n = k.shape[-2] - mask.prefix
        short = -n % self.block
        real = None if mask.keys is None else F.pad(mask.keys.bool(), (0, short))
        if short and real is None:
            real = torch.arange(n + short, device=q.device)[None] < n
        text = [F.pad(x, (0, 0, 0, short)) for x in (q, k[:, :, mask.prefix :], v[:, :, mask.prefix :])]
        out: Tensor = BlockAttention.apply(  # type: ignore[no-untyped-call]
            *text,
            k[:, :, : mask.prefix],
            v[:, :, : mask.prefix],
            real,
            tables.to(q.device),
            self.block,
            self.pattern.window - 1 if mask.causal else None,
            self.scale,
            p,
            draw_seed() if p else 0,
        )
        return out[:, :, : q.shape[-2]]

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, block={self.block}, {self.pattern}"
