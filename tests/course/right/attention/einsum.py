import math

import torch


def attention(query, key, value, mask=None):
    scores = torch.einsum("btd,bsd->bts", query, key) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    return torch.einsum("bts,bse->bte", scores.softmax(-1), value)
