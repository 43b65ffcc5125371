import math

import torch


def scaled_dot_product_attention(q, k, v, mask=None):
    """One query at a time, as the formula reads."""
    rows = []
    for b in range(q.shape[0]):
        outputs = []
        for t in range(q.shape[1]):
            scores = torch.stack([q[b, t] @ k[b, s] for s in range(k.shape[1])]) / math.sqrt(q.shape[2])
            if mask is not None:
                scores = torch.where(mask[b, t].bool(), scores, torch.tensor(-math.inf))
            weights = torch.exp(scores - scores.max())
            weights = weights / weights.sum()
            outputs.append(sum(w * v[b, s] for s, w in enumerate(weights)))
        rows.append(torch.stack(outputs))
    return torch.stack(rows)
