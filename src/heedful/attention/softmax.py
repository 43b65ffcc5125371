"""Scaled dot-product attention."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.attention.chunked import ChunkedAttention, Dot
from heedful.attention.dropout import draw_seed
from heedful.attention.mask import Mask
from heedful.attention.mechanism import Mechanism

SHORT = 1 << 15
"""Weights per head up to which torch's own way is quicker with a trainable bias: it keeps them all."""


class Softmax(Mechanism):
    """Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1).

    Goes through torch's fused kernel; with dropout or a trainable bias on a CPU, which the kernel does not
    take, through `ChunkedAttention` wherever that is quicker. The weights are made only when asked for.
    """

    name = "softmax"
    paper = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"
    cost = "t s d"
    causal = cross = bias = explicit_weights = prefix = segments = cache = True
    sixteen_bits = True

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        return mask.softmax(dot_scores(q, k, self.scale, bias))

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        return attend_with_softmax(q, k, v, mask, bias, self.scale, self.dropout if self.training else 0.0)


def dot_scores(q: Tensor, k: Tensor, scale: float, bias: Tensor | None = None) -> Tensor:
    scores = scale * (q @ k.mT)
    return scores if bias is None else scores + bias


def attend_with_softmax(
    q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None, scale: float, dropout: float
) -> Tensor:
    """Compute softmax attention in the quickest way that this mask, bias and dropout allow."""
    t, s = q.shape[-2], k.shape[-2]
    trained = bias is not None and bias.requires_grad and torch.is_grad_enabled()
    if q.device.type == "cpu" and (dropout or (trained and t * s > SHORT)):
        seed = draw_seed() if dropout else 0
        out: Tensor = ChunkedAttention.apply(  # type: ignore[no-untyped-call]
            Dot, q, k, v, None, bias, mask, scale, dropout, seed
        )
        return out
    bare = mask.keys is None and mask.segments is None and mask.prefix == 0 and mask.offset == 0
    if mask.causal and t == s and bare and bias is None:
        return F.scaled_dot_product_attention(q, k, v, dropout_p=dropout, is_causal=True, scale=scale)
    pattern = mask.allowed(t, s, q.device)
    if bias is not None and pattern is not None:
        pattern = bias.masked_fill(~pattern, float("-inf"))
    elif bias is not None:
        pattern = bias
    return F.scaled_dot_product_attention(q, k, v, attn_mask=pattern, dropout_p=dropout, scale=scale)
