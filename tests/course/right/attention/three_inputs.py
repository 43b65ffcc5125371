import math

import torch
from torch import nn


class MultiHeadAttention(nn.Module):
    """Takes query, key and value, and a mask [b, 1, t, s] of zeros and ones."""

    def __init__(self, d_model, num_heads, dropout=0.1):
        super().__init__()
        self.d_k, self.h = d_model // num_heads, num_heads
        self.W_q = nn.Linear(d_model, d_model)
        self.W_k = nn.Linear(d_model, d_model)
        self.W_v = nn.Linear(d_model, d_model)
        self.W_o = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        b = query.size(0)
        q, k, v = (
            f(x).view(b, -1, self.h, self.d_k).transpose(1, 2)
            for f, x in ((self.W_q, query), (self.W_k, key), (self.W_v, value))
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(self.d_k)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -1e9)
        x = self.dropout(scores.softmax(-1)) @ v
        return self.W_o(x.transpose(1, 2).contiguous().view(b, -1, self.h * self.d_k))
