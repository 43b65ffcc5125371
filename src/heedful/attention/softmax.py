"""Scaled dot-product attention."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from heedful.attention.chunked import ChunkedAttention
from heedful.attention.dropout import draw_seed
from heedful.attention.mask import Mask
from heedful.attention.mechanism import Mechanism


class Softmax(Mechanism):
    """Scaled dot-product attention (Vaswani et al. 2017, section 3.2.1).

    Goes through torch's fused kernel; with dropout or a trainable bias on a CPU, which the kernel does not
    take, through `ChunkedAttention`. The weights are made only when asked for.
    """

    name = "softmax"
    paper = "Vaswani et al. 2017, Attention Is All You Need, arXiv:1706.03762"
    cost = "t s d"
    causal = cross = bias = explicit_weights = prefix = segments = cache = True

    def weights(self, q: Tensor, k: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """softmax(scale q k^T + bias) over the visible keys."""
        scores = self.scale * (q @ k.mT)  # [b, h, t, s]
        if bias is not None:
            scores = scores + bias
        return mask.softmax(scores)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, mask: Mask, bias: Tensor | None = None) -> Tensor:
        """The same as `weights(...) @ v` without making the weights."""
        p = self.dropout if self.training else 0.0
        t, s = q.shape[-2], k.shape[-2]
        trainable_bias = bias is not None and bias.requires_grad and torch.is_grad_enabled()
        if q.device.type == "cpu" and (p or trainable_bias):
            allowed = mask.allowed(t, s, q.device)
            out: Tensor = ChunkedAttention.apply(
                q, k, v, bias, allowed, self.scale, p, draw_seed() if p else 0
            )
            return out
        if mask.causal and t == s and mask.keys is None and mask.segments is None and bias is None:
            return F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=True, scale=self.scale)
        pattern = mask.allowed(t, s, q.device)
        if bias is not None and pattern is not None:
            pattern = bias.masked_fill(~pattern, float("-inf"))
        elif bias is not None:
            pattern = bias
        return F.scaled_dot_product_attention(q, k, v, attn_mask=pattern, dropout_p=p, scale=self.scale)
