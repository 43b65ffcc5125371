"""A GPT, another attention in it, and how language models are compared."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class AdditiveAttention(nn.Module):
    """Attention whose scores are w . tanh(W q + U k) (Bahdanau et al. 2015)."""

    def __init__(self, d_model):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w = nn.Linear(d_model, 1, bias=False)

    def forward(self, q, k, v, mask=None):
        """q, k and v are [batch, tokens, d], mask is [batch, queries, keys]; True says that a query may attend."""
        # SOLUTION: every query meets every key: add [b, t, 1, d] to [b, 1, s, d], then tanh, then w
        scores = self.w(torch.tanh(self.w_q(q)[:, :, None] + self.w_k(k)[:, None])).squeeze(-1)  # [b, t, s]
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v
        # END SOLUTION


class CausalSelfAttention(nn.Module):
    """Several heads of dot-product attention; no token sees a later one."""

    def __init__(self, n_embd, n_head, dropout=0.1):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd)
        self.key = nn.Linear(n_embd, n_embd)
        self.value = nn.Linear(n_embd, n_embd)
        self.proj = nn.Linear(n_embd, n_embd)
        self.drop = nn.Dropout(dropout)
        self.n_head = n_head

    def forward(self, x):
        """x is [batch, tokens, n_embd], and so is the result."""
        # SOLUTION: split q, k and v into heads; scale by the width of a head; hide the future before the softmax
        b, t, c = x.shape
        q, k, v = (
            layer(x).view(b, t, self.n_head, c // self.n_head).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.n_head)  # [b, h, t, t]
        future = torch.ones(t, t, dtype=torch.bool, device=x.device).triu(1)
        weights = self.drop(torch.softmax(scores.masked_fill(future, float("-inf")), dim=-1))
        return self.proj((weights @ v).transpose(1, 2).reshape(b, t, c))
        # END SOLUTION


class Block(nn.Module):
    """Attention and a feed-forward network, each after a norm and with a residual sum."""

    def __init__(self, n_embd, n_head, dropout=0.1):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)
        self.attn = CausalSelfAttention(n_embd, n_head, dropout)
        self.fc = nn.Linear(n_embd, 4 * n_embd)
        self.out = nn.Linear(4 * n_embd, n_embd)
        self.drop = nn.Dropout(dropout)

    def forward(self, x):
        """x is [batch, tokens, n_embd], and so is the result; the activation is GELU."""
        # SOLUTION: the norm is before each part, and the sum after it
        x = x + self.attn(self.ln1(x))
        return x + self.drop(self.out(F.gelu(self.fc(self.ln2(x)))))
        # END SOLUTION


class GPT(nn.Module):
    """A language model: embeddings of tokens and positions, blocks, a norm and a head."""

    def __init__(self, vocab_size, block_size, n_layer, n_head, n_embd, dropout=0.1):
        super().__init__()
        self.tok_emb = nn.Embedding(vocab_size, n_embd)
        self.pos_emb = nn.Parameter(torch.zeros(1, block_size, n_embd))
        self.blocks = nn.ModuleList([Block(n_embd, n_head, dropout) for _ in range(n_layer)])
        self.ln_f = nn.LayerNorm(n_embd)
        self.head = nn.Linear(n_embd, vocab_size, bias=False)

    def forward(self, idx, targets=None):
        """Return (logits, loss); targets [batch, tokens] are the next ids, -100 where none is predicted; loss is None without."""
        # SOLUTION: embeddings, blocks, norm, head; the loss is the mean cross-entropy of the targets
        x = self.tok_emb(idx) + self.pos_emb[:, : idx.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = self.head(self.ln_f(x))
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-100)
        return logits, loss
        # END SOLUTION


def answer_perplexity(losses, tokens):
    """Question 1: return the perplexity of a text in batches: batch i has the mean loss losses[i] over tokens[i] tokens."""
    # SOLUTION: first the mean loss of all tokens, then the exponential
    total = sum(loss * count for loss, count in zip(losses, tokens, strict=True))
    return math.exp(total / sum(tokens))
    # END SOLUTION


def answer_uniform(vocabulary):
    """Question 2: return the perplexity of a model that gives all tokens of a vocabulary the same probability."""
    # SOLUTION: what is its loss?
    return float(vocabulary)
    # END SOLUTION


def answer_bits_per_character(loss, tokens, characters):
    """Question 3: return the bits per character of a text: its mean loss per token (in nats), tokens and characters."""
    # SOLUTION: how many nats has the whole text, and how many nats are a bit?
    return loss * tokens / characters / math.log(2)
    # END SOLUTION


def answer_future(weights):
    """Question 4: return the largest weight that a token gives to a later one; weights is [queries, keys]."""
    # SOLUTION: which part of the matrix has the later keys?
    return float(weights.triu(1).abs().max())
    # END SOLUTION
