import torch
from torch import nn
from torch.nn import functional as F


def rotate(x):
    t, d = x.shape[-2:]
    angle = torch.arange(t)[:, None] / 10000 ** (torch.arange(0, d, 2) / d)
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * angle.cos() - b * angle.sin(), a * angle.sin() + b * angle.cos()], -1).flatten(-2)


class RotaryAttention(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.qkv, self.o, self.h = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False), h

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.h, d // self.h).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True)
        return self.o(y.transpose(1, 2).reshape(b, t, d))


class GPT(nn.Module):
    """Rotary positions, no table; the loss comes first."""

    def __init__(self, vocab_size, n_embd=64, n_head=4, n_layer=2):
        super().__init__()
        self.emb = nn.Embedding(vocab_size, n_embd)
        self.attn = nn.ModuleList(RotaryAttention(n_embd, n_head) for _ in range(n_layer))
        self.ff = nn.ModuleList(
            nn.Sequential(nn.Linear(n_embd, 4 * n_embd), nn.SiLU(), nn.Linear(4 * n_embd, n_embd))
            for _ in range(n_layer)
        )
        self.norm = nn.RMSNorm(n_embd)

    def forward(self, x, y=None):
        h = self.emb(x)
        for attn, ff in zip(self.attn, self.ff):
            h = h + attn(self.norm(h))
            h = h + ff(self.norm(h))
        logits = self.norm(h) @ self.emb.weight.T
        if y is None:
            return logits
        return F.cross_entropy(logits.flatten(0, 1), y.flatten()), logits
