import torch
from torch import nn


class ScaledDotProductAttention(nn.Module):
    """Returns the weights before the output, and has a dropout that follows the mode."""

    def __init__(self, dropout=0.1):
        super().__init__()
        self.dropout = nn.Dropout(dropout)

    def forward(self, queries, keys, values, mask=None):
        d = queries.shape[-1]
        scores = torch.bmm(queries, keys.transpose(1, 2)) / (d**0.5)
        if mask is not None:
            scores = scores + (1.0 - mask.float()) * -10000.0
        weights = nn.functional.softmax(scores, dim=-1)
        return torch.bmm(self.dropout(weights), values)
