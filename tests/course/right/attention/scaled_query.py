import torch


class DotProductAttention(torch.nn.Module):
    def __init__(self, d_k):
        super().__init__()
        self.scale = d_k**-0.5

    def forward(self, Q, K, V, mask=None):
        scores = (Q * self.scale) @ K.mT
        if mask is not None:
            scores.masked_fill_(mask.logical_not(), torch.finfo(scores.dtype).min)
        return scores.softmax(-1) @ V
