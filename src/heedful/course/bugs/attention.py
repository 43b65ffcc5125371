"""Mistakes in attention functions of q, k, v and a mask, and in additive attention."""

from __future__ import annotations

from heedful.course.bugs import Bug

DOT = """
import math
import torch
import torch.nn.functional as F

def dot_product_attention(q, k, v, mask=None):
    scores = q @ k.transpose(-2, -1)
    scores = scores / math.sqrt(q.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask.bool(), float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    return weights @ v
"""
"""The right function that the first bugs are edits of."""
ADDITIVE = """
import torch
from torch import nn

class AdditiveAttention(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model, bias=False)
        self.w = nn.Linear(d_model, 1, bias=False)

    def forward(self, q, k, v, mask=None):
        features = torch.tanh(self.w_q(q).unsqueeze(2) + self.w_k(k).unsqueeze(1))
        scores = self.w(features).squeeze(-1)
        if mask is not None:
            scores = scores.masked_fill(~mask.bool(), float("-inf"))
        return torch.softmax(scores, dim=-1) @ v
"""
FILL = 'scores = scores.masked_fill(~mask.bool(), float("-inf"))'
SOFTMAX = "weights = torch.softmax(scores, dim=-1)"
SCALE = "scores = scores / math.sqrt(q.shape[-1])"
MASKING = f"    if mask is not None:\n        {FILL}\n    {SOFTMAX}"
AFTER = "The mask is applied to the weights after the softmax, so masked keys still take part of its sum."
AFTER_HINT = "Where must a score be changed so that the softmax gives it nothing?"

BUGS = (
    Bug("mask after softmax", AFTER, AFTER_HINT, DOT,
        ((MASKING, f"    {SOFTMAX}\n    if mask is not None:\n        weights = weights.masked_fill(~mask.bool(), 0.0)"),)),
    Bug("masked scores are zero", "Masked scores are set to 0 instead of minus infinity, and exp(0) is 1.",
        "What does the softmax do with a score of 0?", DOT,
        ((FILL, "scores = scores.masked_fill(~mask.bool(), 0.0)"),)),
    Bug("masked scores are zero", "Scores are multiplied with the mask, so that masked ones are 0, and exp(0) is 1.",
        "What does the softmax do with a score of 0?", DOT, ((FILL, "scores = scores * mask.bool()"),)),
    Bug("masked scores are zero", "Masked scores are set to the smallest positive number instead of minus infinity.",
        "torch.finfo(dtype).tiny is almost 0; .min is the most negative number.", DOT,
        ((FILL, "scores = scores.masked_fill(~mask.bool(), torch.finfo(scores.dtype).tiny)"),)),
    Bug("mask ignored", "The mask is an argument, but no line applies it to the scores.",
        "masked_fill returns a new tensor; masked_fill_ changes its own.", DOT,
        ((FILL, 'scores.masked_fill(~mask.bool(), float("-inf"))'),)),
    Bug("scores not scaled", "The scores are not divided by the square root of the width.",
        "How large is a sum of d products, and what does the softmax make of large numbers?", DOT,
        ((SCALE, "pass"),)),
    Bug("scale without square root", "The scores are divided by the width itself, not by its square root.",
        "The variance of a sum of d products is d; which number has to be divided by?", DOT,
        ((SCALE, "scores = scores / q.shape[-1]"),)),
    Bug("scores multiplied by the square root", "The scores are multiplied by sqrt(d) instead of divided by it.",
        "Should the scores of wider vectors become larger or smaller?", DOT,
        ((SCALE, "scores = scores * math.sqrt(q.shape[-1])"),)),
    Bug("scaled by the length", "The scores are divided by the root of the number of keys instead of the width.",
        "Which dimension of q is summed over in a score? shape[1] of [b, t, d] is the length.", DOT,
        ((SCALE, "scores = scores / math.sqrt(k.shape[-2])"),)),
    Bug("scale after softmax", "The weights are divided by sqrt(d) after the softmax, and no longer sum to 1.",
        "What must the sum of the weights of one query be?", DOT,
        ((SCALE, "pass"), (SOFTMAX, SOFTMAX + " / math.sqrt(q.shape[-1])"))),
    Bug("softmax over queries", "The softmax is over the queries: the columns of the weights sum to 1, not the rows.",
        "Which dimension of [.., queries, keys] must sum to 1?", DOT, ((SOFTMAX, "weights = torch.softmax(scores, dim=-2)"),)),
    Bug("transposed value product", "The weights are transposed in the product with the values.",
        "An output row is a sum over keys: which dimension of the weights has the keys?", DOT,
        (("return weights @ v", "return weights.transpose(-2, -1) @ v"),)),
    Bug("transposed scores", "The scores are k q^T: rows are keys and columns are queries.",
        "Row t of the scores must belong to query t.", DOT,
        (("scores = q @ k.transpose(-2, -1)", "scores = k @ q.transpose(-2, -1)"),)),
    Bug("no softmax", "The scores themselves are used as weights.", "Weights are at least 0 and sum to 1.", DOT,
        ((MASKING, "    weights = scores if mask is None else scores.masked_fill(~mask.bool(), 0.0)"),)),
    Bug("softmax twice", "The softmax is applied to weights that went through it before.",
        "How many softmaxes are between scores and weights?", DOT,
        ((SOFTMAX, "weights = torch.softmax(torch.softmax(scores, dim=-1), dim=-1)"),)),
    Bug("log of the weights", "log_softmax is used where the weights themselves are needed.",
        "Are your weights at least 0?", DOT, ((SOFTMAX, "weights = torch.log_softmax(scores, dim=-1)"),)),
    Bug("keys instead of values", "The weights average the keys instead of the values.",
        "Which of q, k and v never appears in your output?", DOT, (("return weights @ v", "return weights @ k"),)),
    Bug("dropout left on", "Dropout is active in evaluation mode: F.dropout is on unless it is told the mode.",
        "What is the default of the argument training of F.dropout?", DOT,
        (("return weights @ v", "return F.dropout(weights, 0.1) @ v"),)),
    Bug("softmax over queries", "The softmax of additive attention is over the queries.",
        "Which dimension of [batch, queries, keys] must sum to 1?", ADDITIVE,
        (("torch.softmax(scores, dim=-1)", "torch.softmax(scores, dim=1)"),)),
    Bug("additive without tanh", "The tanh between the projections and the vector is missing, so the query cancels out.",
        "Without it, does the query change which key has the largest weight?", ADDITIVE,
        (("torch.tanh(self.w_q(q).unsqueeze(2) + self.w_k(k).unsqueeze(1))", "self.w_q(q).unsqueeze(2) + self.w_k(k).unsqueeze(1)"),)),
    Bug("transposed scores", "The keys are the rows of the scores of additive attention, the queries the columns.",
        "Row t of the scores must belong to query t.", ADDITIVE,
        (("self.w_q(q).unsqueeze(2) + self.w_k(k).unsqueeze(1)", "self.w_q(q).unsqueeze(1) + self.w_k(k).unsqueeze(2)"),)),
    Bug("mask after softmax", AFTER, AFTER_HINT, ADDITIVE,
        ((f"        if mask is not None:\n            {FILL}\n        return torch.softmax(scores, dim=-1) @ v",
          "        weights = torch.softmax(scores, dim=-1)\n        if mask is not None:\n"
          "            weights = weights.masked_fill(~mask.bool(), 0.0)\n        return weights @ v"),)),
    Bug("query missing", "The scores of additive attention come from the keys alone.",
        "Does your query reach the scores?", ADDITIVE, (("self.w_q(q).unsqueeze(2) + ", "0 * q.unsqueeze(2) + "),)),
)  # fmt: skip
