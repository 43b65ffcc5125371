"""Attention by hand: the assignment's code and the answers to its questions."""

import math

import torch
from torch import nn


def dot_product_attention(q, k, v, mask=None):
    """Return softmax(q k^T / sqrt(d)) v.

    q is [batch, queries, d], k is [batch, keys, d] and v is [batch, keys, e]. mask is [batch, queries, keys];
    True says that the query may attend to the key. The result is [batch, queries, e].
    """
    # SOLUTION: first the scores, then hide the masked ones, then a softmax over the keys, then the values
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])  # [b, t, s]
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v
    # END SOLUTION


class AdditiveAttention(nn.Module):
    """Attention whose scores are w . tanh(W q + U k) (Bahdanau et al. 2015)."""

    def __init__(self, d_model):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w = nn.Linear(d_model, 1, bias=False)

    def forward(self, q, k, v, mask=None):
        """Shapes are those of dot_product_attention."""
        # SOLUTION: every query meets every key: add [b, t, 1, d] to [b, 1, s, d], then tanh, then w
        features = torch.tanh(self.w_q(q)[:, :, None] + self.w_k(k)[:, None])  # [b, t, s, d]
        scores = self.w(features).squeeze(-1)  # [b, t, s]
        if mask is not None:
            scores = scores.masked_fill(~mask, float("-inf"))
        return torch.softmax(scores, dim=-1) @ v
        # END SOLUTION


class CausalSelfAttention(nn.Module):
    """Several heads of dot-product attention, each over its part of the width; no token sees a later one."""

    def __init__(self, n_embd, n_head, dropout=0.1):
        super().__init__()
        self.query = nn.Linear(n_embd, n_embd)
        self.key = nn.Linear(n_embd, n_embd)
        self.value = nn.Linear(n_embd, n_embd)
        self.proj = nn.Linear(n_embd, n_embd)
        self.drop = nn.Dropout(dropout)
        self.n_head = n_head

    def forward(self, x):
        """x is [batch, tokens, n_embd], and so is the result: the heads side by side, through self.proj."""
        # SOLUTION: split q, k and v into [batch, head, token, width of a head]; scale by the width of a head
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


def answer_copy(keys, j):
    """Question 1: return a query q whose attention over the keys gives (almost) the value number j alone.

    keys is [n, d]; its rows are orthogonal and have length 1. Scores are q . k, without a scale.
    """
    # SOLUTION: which q has a large product with keys[j] and none with the others?
    return 100.0 * keys[j]
    # END SOLUTION


def answer_average(keys, a, b):
    """Question 2: return a query that gives (almost) the mean of the values a and b."""
    # SOLUTION: the two scores must be equal and much larger than all others
    return 100.0 * (keys[a] + keys[b])
    # END SOLUTION


def answer_two_heads(means, a, b):
    """Question 3: return two queries, one per head, whose outputs average to (almost) the mean of the values a and b.

    The keys vary: key i is (1 + e) means[i] with a number e of its own from -0.5 to 0.5; the rows of means are
    orthogonal and have length 1.
    """
    # SOLUTION: with one query for both, the longer key wins; what does each head have to do alone?
    return 100.0 * means[a], 100.0 * means[b]
    # END SOLUTION


def answer_uniform():
    """Question 4: return q [d], K [4, d] and V [4, e], with which q attends to all four keys equally.

    No two keys are the same, and q is not zero.
    """
    # SOLUTION: on what do the scores depend, if the keys differ only in directions that q does not see?
    q = torch.tensor([1.0, 0.0])
    keys = torch.tensor([[1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [1.0, 3.0]])
    return q, keys, torch.eye(4)
    # END SOLUTION


def answer_longest_loses():
    """Question 5: return q [d], K [3, d] and V [3, e], where the longest key has the smallest weight."""
    # SOLUTION: a score is a product of lengths and a cosine; which cosine makes length a disadvantage?
    return torch.tensor([1.0, 0.0]), torch.tensor([[1.0, 0.0], [0.5, 0.0], [-3.0, 0.0]]), torch.eye(3)
    # END SOLUTION


def answer_ratio(difference):
    """Question 6: return how many times the weight of a key is that of another, if its score is larger by `difference`."""
    # SOLUTION: divide the two weights; which factors cancel?
    return math.exp(difference)
    # END SOLUTION


def answer_variance(d):
    """Question 7: return the variance of q . k, if all 2 d components are independent with mean 0 and variance 1."""
    # SOLUTION: what is the variance of one product, and what do variances of independent numbers do in a sum?
    return float(d)
    # END SOLUTION
