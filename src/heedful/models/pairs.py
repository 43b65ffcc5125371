"""Pairs whose two texts are read by themselves, and compared by their means (Reimers and Gurevych 2019)."""

from __future__ import annotations

import torch
from torch import Tensor

from heedful.errors import UserError


def separate_pairs(ids: Tensor, mask: Tensor | None, types: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return ids and mask [2 b, s] of the first texts of b pairs, and then of their second texts.

    A pair is `[CLS] first [SEP] second [SEP]`, where the tokens of the second text have the type 1. The
    second text gets the first token of its pair, so that both look as they do alone.
    """
    places, separate_mask = find_places(ids, mask, types)
    separate_ids = torch.cat([ids, ids]).gather(1, places)
    return separate_ids.masked_fill(~separate_mask, 0), separate_mask


def find_places(ids: Tensor, mask: Tensor | None, types: Tensor | None) -> tuple[Tensor, Tensor]:
    """Return where in its pair each token of the texts is, and which of these are tokens, both [2 b, s]."""
    real = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask.bool()
    if types is None or not bool((real & (types == 1)).any(1).all()):
        raise UserError("pool apart compares the two texts of a pair; a text came without a second one")
    second = real & (types == 1)
    begins = (real & ~second).sum(1, keepdim=True)  # [b, 1]
    sizes = torch.cat([begins, second.sum(1, keepdim=True) + 1])  # [2 b, 1]
    longest = (
        ids.shape[1] if torch._C._get_tracing_state() is not None else int(sizes.max())
    )  # a graph is for any pairs
    along = torch.arange(longest, device=ids.device)[None]  # [1, s]
    places = torch.cat([along.expand(ids.shape[0], -1), (begins - 1 + along).masked_fill(along == 0, 0)])
    separate_mask = along < sizes
    return places.masked_fill(~separate_mask, 0), separate_mask


def compare_means(first: Tensor, second: Tensor) -> Tensor:
    """Return the distances, products and cosine of states [b, d], a row of 2 d + 1 values per pair.

    The states are scaled to length sqrt(d), so that their entries have a size near 1 and the mean of the
    products is the cosine. Exchanging the texts changes nothing.
    """
    scale = first.shape[1] ** 0.5
    first, second = (scale * torch.nn.functional.normalize(states, dim=1) for states in (first, second))
    products = first * second
    return torch.cat([(first - second).abs(), products, products.mean(1, keepdim=True)], 1)
