import torch


def attention(q, k, v, mask=None):
    """The mask is [t, s], the same for every row of the batch."""
    if mask is not None:
        assert mask.dim() == 2
    scores = q @ k.transpose(1, 2) / k.size(2) ** 0.5
    if mask is not None:
        scores[:, ~mask.bool()] = -torch.inf
    return torch.softmax(scores, 2) @ v
