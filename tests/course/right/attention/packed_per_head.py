import torch
from torch import nn


class CausalSelfAttention(nn.Module):
    """GPT-NeoX: query, key and value of one head lie beside each other."""

    def __init__(self, d_model, n_heads, max_len=1024):
        super().__init__()
        self.qkv = nn.Linear(d_model, 3 * d_model)
        self.out = nn.Linear(d_model, d_model)
        self.n_heads = n_heads

    def forward(self, x):
        b, t, d = x.shape
        qkv = self.qkv(x).view(b, t, self.n_heads, -1).permute(0, 2, 1, 3)
        q, k, v = qkv.chunk(3, dim=-1)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.permute(0, 2, 1, 3).flatten(2))
