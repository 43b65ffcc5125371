def attention(q, k, v, mask=None):
    """The mask has 0 where a key is seen, and minus infinity where it is not; it is added."""
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if mask is not None:
        scores = scores + mask
    return scores.softmax(dim=-1) @ v
