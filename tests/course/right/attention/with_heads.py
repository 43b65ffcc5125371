import math

import torch


def attention(q, k, v, mask=None, dropout=None):
    """As in the Annotated Transformer: q, k and v are [b, h, t, d], the mask is [b, 1, t, s]."""
    b, h, t, d = q.shape
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(d)
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p_attn = scores.softmax(dim=-1)
    if dropout is not None:
        p_attn = dropout(p_attn)
    return torch.matmul(p_attn, v), p_attn
