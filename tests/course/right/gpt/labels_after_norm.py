import math

import torch
from torch import nn


class DecoderBlock(nn.Module):
    """Norms after the sums, ReLU, one module per head, a mask that is given."""

    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.heads = nn.ModuleList([Head(d_model, d_model // n_heads) for _ in range(n_heads)])
        self.out = nn.Linear(d_model, d_model)
        self.mlp = nn.Sequential(
            nn.Linear(d_model, d_ff), nn.ReLU(), nn.Linear(d_ff, d_model), nn.Dropout(0.2)
        )
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)

    def forward(self, x, mask):
        x = self.norm1(x + self.out(torch.cat([head(x, mask) for head in self.heads], dim=-1)))
        return self.norm2(x + self.mlp(x))


class Head(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_model, d_head, bias=False) for _ in range(3))

    def forward(self, x, mask):
        scores = torch.einsum("bqd,bkd->bqk", self.q(x), self.k(x)) / self.q.out_features**0.5
        return torch.softmax(scores + mask, dim=-1) @ self.v(x)


class TransformerLM(nn.Module):
    """Fixed sine positions; labels are the ids, as in transformers."""

    def __init__(self, vocab_size, d_model, n_heads, n_layers, d_ff, max_len):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        angle = torch.arange(max_len)[:, None] / 10000 ** (torch.arange(0, d_model, 2) / d_model)
        self.register_buffer("pe", torch.stack([angle.sin(), angle.cos()], -1).flatten(1))
        self.layers = nn.ModuleList(DecoderBlock(d_model, n_heads, d_ff) for _ in range(n_layers))
        self.lm_head = nn.Linear(d_model, vocab_size)

    def forward(self, input_ids, labels=None):
        t = input_ids.shape[1]
        mask = torch.full((t, t), -math.inf).triu(1)
        x = self.embed(input_ids) + self.pe[:t]
        for layer in self.layers:
            x = layer(x, mask)
        logits = self.lm_head(x)
        out = {"logits": logits}
        if labels is not None:
            shifted = logits[:, :-1].transpose(1, 2)
            out["loss"] = nn.functional.cross_entropy(shifted, labels[:, 1:])
        return out
