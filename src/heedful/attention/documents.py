"""Packed documents and left-padded rows, taken apart and put together again.

Mechanisms whose pattern or parameters count positions from the start of a text (BigBird's blocks, Linformer's
projections), or whose sums run over everything (Performer), get each document as a row of its own. So packing
changes nothing, by construction.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

import torch
from torch import Tensor

from heedful.attention.mask import Mask


def attend_each_document(
    attend: Callable[[Tensor, Tensor, Tensor, Mask], Tensor], q: Tensor, k: Tensor, v: Tensor, mask: Mask
) -> Tensor:
    """Call `attend` on every document alone, starting at its position 0; zeros where there is no document.

    Documents of about the same length share a call, so that padding them costs at most a factor of two.
    """
    (b, h, t, _), n, width = q.shape, k.shape[-2] - mask.prefix, v.shape[-1]
    real = torch.ones(b, n, dtype=torch.bool, device=q.device) if mask.keys is None else mask.keys.bool()
    # [b, h, n, d] as lists of positions [b n, h, d]
    queries, keys, values = (
        x.transpose(1, 2).flatten(0, 1) for x in (q, k[:, :, mask.prefix :], v[:, :, mask.prefix :])
    )

    def kind(document: tuple[int, int, int]) -> tuple[int, int]:
        _, first, end = document
        return (end - first - 1).bit_length(), max(0, mask.offset - first)

    documents = [d for d in mask.documents(b, n) if d[1] < mask.offset + t and d[2] > mask.offset]
    outs: list[Tensor] = []
    positions: list[Tensor] = []
    for (_, offset), some in groupby(sorted(documents, key=kind), key=kind):
        row, first, end = (torch.tensor(x, device=q.device) for x in zip(*some, strict=True))
        k_at, k_real = document_positions(row * n + first, end - first)
        q_first = first.clamp_min(mask.offset)
        q_at, q_real = document_positions(
            row * t + q_first - mask.offset, end.clamp_max(mask.offset + t) - q_first
        )
        inner = Mask(mask.causal, k_real & real.flatten()[k_at], prefix=mask.prefix, offset=offset)
        k_some, v_some = take_positions(keys, k_at), take_positions(values, k_at)
        if mask.prefix:
            k_some = torch.cat([k[row, :, : mask.prefix], k_some], 2)
            v_some = torch.cat([v[row, :, : mask.prefix], v_some], 2)
        out = attend(take_positions(queries, q_at), k_some, v_some, inner)  # [documents, h, length, d]
        outs.append(out.transpose(1, 2)[q_real])
        positions.append(q_at[q_real])
    whole = q.new_zeros(b * t, h, width)
    if outs:
        whole = whole.index_add(0, torch.cat(positions), torch.cat(outs))
    return whole.view(b, t, h, width).transpose(1, 2)


def take_positions(x: Tensor, at: Tensor) -> Tensor:
    """Return the positions `at` [documents, length] of a list, as [documents, h, length, d]."""
    return x.index_select(0, at.flatten()).view(*at.shape, *x.shape[1:]).transpose(1, 2)


def document_positions(first: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return first, first + 1, ... of each document, padded with its last position; True at the real ones."""
    step = torch.arange(int(lengths.max()), device=first.device)
    real = step < lengths[:, None]
    return first[:, None] + torch.minimum(step, lengths[:, None] - 1), real
