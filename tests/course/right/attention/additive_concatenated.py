import torch
from torch import nn


class BahdanauAttention(nn.Module):
    """One layer over query and key side by side."""

    def __init__(self, hidden_size):
        super().__init__()
        self.attn = nn.Linear(2 * hidden_size, hidden_size)
        self.v = nn.Parameter(torch.rand(hidden_size))

    def forward(self, query, keys, values, mask=None):
        t, s = query.shape[1], keys.shape[1]
        q = query.unsqueeze(2).expand(-1, -1, s, -1)
        k = keys.unsqueeze(1).expand(-1, t, -1, -1)
        energy = torch.tanh(self.attn(torch.cat([q, k], dim=-1))) @ self.v
        if mask is not None:
            energy = energy.masked_fill(mask, -1e10)
        weights = torch.softmax(energy, dim=-1)
        return torch.bmm(weights, values), weights
