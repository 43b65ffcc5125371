import torch
from torch import nn

from heedful.attention import Mask, make
from heedful.models import PRESETS
from heedful.models.blocks import Attention


def attention(q, k, v, causal=False):
    """The package's own mechanism, with one head."""
    softmax = make("softmax", n_heads=1, d_head=q.shape[-1], max_len=64)
    return softmax(q[:, None], k[:, None], v[:, None], Mask(causal=causal))[:, 0]


class AdditiveAttention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.w_q, self.w_k = nn.Linear(d_model, d_model, bias=False), nn.Linear(d_model, d_model, bias=False)
        self.w2 = nn.Linear(d_model, 1, bias=False)

    def forward(self, q, k, v, causal=False):
        d = q.shape[-1]
        additive = make("additive", n_heads=1, d_head=d, max_len=64, scale=1.0)
        additive.w1_q, additive.w1_k = (
            nn.Parameter(self.w_q.weight.T[None]),
            nn.Parameter(self.w_k.weight.T[None]),
        )
        additive.w2 = nn.Parameter(self.w2.weight)
        return additive(q[:, None], k[:, None], v[:, None], Mask(causal=causal))[:, 0]


class CausalSelfAttention(Attention):
    def __init__(self, n_embd, n_head):
        config = PRESETS["gpt-nano"].config.replace(d_model=n_embd, n_heads=n_head, d_head=0, max_len=128)
        super().__init__(config, causal=True, cross=False)

    def forward(self, x):
        return super().forward(x, Mask(causal=True))
