import torch
from torch import nn


class SelfAttention(nn.Module):
    """Matrices instead of layers, x @ W, and einsum over the heads."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.w_q = nn.Parameter(torch.randn(dim, dim) / dim**0.5)
        self.w_k = nn.Parameter(torch.randn(dim, dim) / dim**0.5)
        self.w_v = nn.Parameter(torch.randn(dim, dim) / dim**0.5)
        self.w_o = nn.Parameter(torch.randn(dim, dim) / dim**0.5)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = ((x @ w).reshape(b, t, self.heads, d // self.heads) for w in (self.w_q, self.w_k, self.w_v))
        weights = torch.einsum("bthd,bshd->bhts", q, k).mul((d // self.heads) ** -0.5).softmax(-1)
        return torch.einsum("bhts,bshd->bthd", weights, v).reshape(b, t, d) @ self.w_o
