import torch


def dot_product_attention(q, k, v, mask=None):
    """The mask is True where a key must not be seen."""
    scores = torch.bmm(q, k.transpose(1, 2)) / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(mask, float("-inf"))
    return torch.bmm(torch.nn.functional.softmax(scores, dim=2), v)
