import torch


def additive_attention(q, k, v, W_q, W_k, w, mask=None):
    scores = torch.tanh((q @ W_q)[:, :, None, :] + (k @ W_k)[:, None, :, :]) @ w
    if mask is not None:
        scores = scores.masked_fill(mask == 0, float("-inf"))
    return scores.softmax(-1) @ v
