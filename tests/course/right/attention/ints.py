import math

import torch


def self_attention(Q, K, V, mask):
    """The mask has ones and zeros, and is needed."""
    scores = torch.matmul(Q, K.transpose(-1, -2)) / math.sqrt(K.size(-1))
    scores = scores * mask + -1e9 * (1 - mask)
    p = torch.softmax(scores, dim=-1)
    return torch.matmul(p, V), p
