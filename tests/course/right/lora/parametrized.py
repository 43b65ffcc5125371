import torch
from torch import nn
from torch.nn import functional as F


class LoRALinear(nn.Module):
    """The changed weight is computed first; the frozen one is a buffer."""

    def __init__(self, base_layer: nn.Linear, rank: int, alpha: float):
        super().__init__()
        self.register_buffer("weight", base_layer.weight.detach().clone())
        self.register_buffer("bias", base_layer.bias.detach().clone())
        self.A = nn.Parameter(torch.rand(rank, base_layer.in_features) - 0.5)
        self.B = nn.Parameter(torch.zeros(base_layer.out_features, rank))
        self.gain = alpha / rank

    def delta(self):
        return self.gain * self.B.matmul(self.A)

    def forward(self, x):
        return F.linear(x, self.weight + self.delta(), self.bias)

    def merge(self):
        self.weight += self.delta().detach()
        nn.init.zeros_(self.B)
