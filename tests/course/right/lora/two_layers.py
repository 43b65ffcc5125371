import torch
from torch import nn


class LoRALayer(nn.Module):
    """The product alone, with matrices [in, r] and [r, out]."""

    def __init__(self, in_dim, out_dim, rank, alpha):
        super().__init__()
        self.A = nn.Parameter(torch.randn(in_dim, rank) / rank**0.5)
        self.B = nn.Parameter(torch.zeros(rank, out_dim))
        self.alpha, self.rank = alpha, rank

    def forward(self, x):
        return self.alpha * (x @ self.A @ self.B) / self.rank


class LinearWithLoRA(nn.Module):
    def __init__(self, linear, rank, alpha):
        super().__init__()
        self.linear, self.lora = linear, LoRALayer(linear.in_features, linear.out_features, rank, alpha)
        for p in linear.parameters():
            p.requires_grad = False

    def forward(self, x):
        return self.linear(x) + self.lora(x)
