import torch
from torch import nn
from torch.nn import functional as F


class LoRALinear(nn.Linear):
    """A linear layer itself, as in loralib; merge returns a plain layer."""

    def __init__(self, in_features, out_features, r=4, lora_alpha=1, lora_dropout=0.0, bias=True):
        super().__init__(in_features, out_features, bias=bias)
        self.lora_down = nn.Linear(in_features, r, bias=False)
        self.lora_up = nn.Linear(r, out_features, bias=False)
        nn.init.zeros_(self.lora_up.weight)
        self.scale, self.lora_dropout = lora_alpha / r, lora_dropout
        self.weight.requires_grad = self.bias.requires_grad = False

    def forward(self, x):
        low = self.lora_down(F.dropout(x, self.lora_dropout, training=self.training))
        return F.linear(x, self.weight, self.bias) + self.lora_up(low) * self.scale

    @torch.no_grad()
    def merge(self):
        layer = nn.Linear(self.in_features, self.out_features)
        layer.weight.copy_(self.weight + self.scale * self.lora_up.weight @ self.lora_down.weight)
        layer.bias.copy_(self.bias)
        return layer
