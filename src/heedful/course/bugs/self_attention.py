"""Mistakes in self-attention modules with projections and heads."""

from __future__ import annotations

from heedful.course.bugs import Bug

MODULE = """
import math
import torch
from torch import nn
from torch.nn import functional as F

class CausalSelfAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.key = nn.Linear(config.n_embd, config.n_embd)
        self.query = nn.Linear(config.n_embd, config.n_embd)
        self.value = nn.Linear(config.n_embd, config.n_embd)
        self.attn_drop = nn.Dropout(config.attn_pdrop)
        self.resid_drop = nn.Dropout(config.resid_pdrop)
        self.proj = nn.Linear(config.n_embd, config.n_embd)
        self.register_buffer("mask", torch.tril(torch.ones(config.block_size, config.block_size))[None, None])
        self.n_head = config.n_head

    def forward(self, x, layer_past=None):
        B, T, C = x.size()
        k = self.key(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        q = self.query(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        v = self.value(x).view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))
        att = F.softmax(att, dim=-1)
        att = self.attn_drop(att)
        y = att @ v
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_drop(self.proj(y))
"""
MASK = 'att = att.masked_fill(self.mask[:, :, :T, :T] == 0, float("-inf"))'
TRIL = "torch.tril(torch.ones(config.block_size, config.block_size))[None, None]"
SOFTMAX = "att = F.softmax(att, dim=-1)"
MERGE = "y = y.transpose(1, 2).contiguous().view(B, T, C)"
SCALE = "(1.0 / math.sqrt(k.size(-1)))"
HEADS = "view(B, T, self.n_head, C // self.n_head).transpose(1, 2)"


def reshape_all(new: str) -> tuple[tuple[str, str], ...]:
    """Edit how each projection is split into heads."""
    return tuple((f"self.{name}(x).{HEADS}", f"self.{name}(x).{new}") for name in ("key", "query", "value"))


BUGS = (
    Bug("heads split along the wrong axis", "view(b, heads, t, d) without a transpose cuts time into pieces, not the width.",
        "Print which token and which feature every entry of a head comes from.", MODULE,
        reshape_all("view(B, self.n_head, T, C // self.n_head)")),
    Bug("heads split along the wrong axis", "view(b, heads, t, d) without a transpose, and merged the same way.",
        "Print which token and which feature every entry of a head comes from.", MODULE,
        (*reshape_all("view(B, self.n_head, T, C // self.n_head)"), (MERGE, "y = y.contiguous().view(B, T, C)"))),
    Bug("heads split along the wrong axis", "The width is split as [d / heads, heads]: a head takes every n-th feature.",
        "Which features of a token does head 0 have? They must be neighbors.", MODULE,
        reshape_all("view(B, T, C // self.n_head, self.n_head).permute(0, 3, 1, 2)")),
    Bug("heads merged without transposing", "The heads are merged by view without transposing back: features of other tokens mix in.",
        "In which order are the numbers of [b, heads, t, d] in memory?", MODULE,
        ((MERGE, "y = y.contiguous().view(B, T, C)"),)),
    Bug("scores scaled by the whole width", "The scores are divided by the root of the whole width instead of one head's.",
        "Over how many numbers does a score of one head sum?", MODULE, ((SCALE, "(1.0 / math.sqrt(C))"),)),
    Bug("scores not scaled", "The scores are not divided by the root of the width of a head.",
        "How large is a sum of d products?", MODULE, ((SCALE, "1.0"),)),
    Bug("scaled by the length", "The scores are divided by the root of the number of tokens.",
        "Which dimension of k has the width of a head?", MODULE, ((SCALE, "(1.0 / math.sqrt(k.size(-2)))"),)),
    Bug("scaled by the number of heads", "The scores are divided by the root of the number of heads.",
        "Over how many numbers does a score of one head sum?", MODULE, ((SCALE, "(1.0 / math.sqrt(self.n_head))"),)),
    Bug("softmax over queries", "The softmax is over the queries: the columns of the weights sum to 1, not the rows.",
        "Which dimension of [b, h, queries, keys] must sum to 1?", MODULE, ((SOFTMAX, "att = F.softmax(att, dim=-2)"),)),
    Bug("softmax over heads", "The softmax is over the heads, which then share one weight.",
        "What is dimension 1 of [b, h, t, t]?", MODULE,
        ((f"{MASK}\n        {SOFTMAX}", 'att = F.softmax(att, dim=1).masked_fill(self.mask[:, :, :T, :T] == 0, 0.0)'),)),
    Bug("softmax over the batch", "The softmax is over the batch: what one example attends to depends on the others.",
        "What is dimension 0 of [b, h, t, t]?", MODULE,
        ((f"{MASK}\n        {SOFTMAX}", 'att = F.softmax(att, dim=0).masked_fill(self.mask[:, :, :T, :T] == 0, 0.0)'),)),
    Bug("mask after softmax", "The weights above the diagonal are set to 0 after the softmax, which has already counted them.",
        "Where must a score be changed so that the softmax gives it nothing?", MODULE,
        ((f"{MASK}\n        {SOFTMAX}", f"{SOFTMAX}\n        att = att.masked_fill(self.mask[:, :, :T, :T] == 0, 0.0)"),)),
    Bug("masked scores are zero", "Scores of the future are set to 0 instead of minus infinity, and exp(0) is 1.",
        "What does the softmax do with a score of 0?", MODULE, ((MASK, MASK.replace('float("-inf")', "0.0")),)),
    Bug("no causal mask", "Nothing hides the future: every token attends to all.",
        "Which line makes it causal, and is its result kept?", MODULE, ((MASK, "pass"),)),
    Bug("mask reversed", "The mask hides the past and shows the future.",
        "Is row t of your mask 1 for the keys 0 to t?", MODULE,
        ((TRIL, "torch.triu(torch.ones(config.block_size, config.block_size))[None, None]"),)),
    Bug("mask one step too wide", "The mask lets each token see the one after it, which is the one to predict.",
        "What is tril(diagonal=1) of row 0?", MODULE,
        ((TRIL, "torch.tril(torch.ones(config.block_size, config.block_size), diagonal=1)[None, None]"),)),
    Bug("mask one step too narrow", "A token cannot attend to itself, and the first one to nothing.",
        "What is tril(diagonal=-1) of row 0?", MODULE,
        ((TRIL, "torch.tril(torch.ones(config.block_size, config.block_size), diagonal=-1)[None, None]"),
         (SOFTMAX, "att = torch.nan_to_num(F.softmax(att, dim=-1))"))),
    Bug("query and key are tied", "Queries and keys come from the same projection, by accident.",
        "Which projection is never used?", MODULE, ((f"q = self.query(x).{HEADS}", f"q = self.key(x).{HEADS}"),)),
    Bug("query and key are tied", "Queries and keys come from the same projection, by accident.",
        "Which projection is never used?", MODULE, ((f"k = self.key(x).{HEADS}", f"k = self.query(x).{HEADS}"),)),
    Bug("keys instead of values", "The values are the projection of the keys.", "Which projection is never used?", MODULE,
        ((f"v = self.value(x).{HEADS}", f"v = self.key(x).{HEADS}"),)),
    Bug("values not projected", "The values are the input itself, without their projection.", "Which layer is never called?",
        MODULE, ((f"self.value(x).{HEADS}", f"x.{HEADS}"),)),
    Bug("transposed value product", "The weights are transposed in the product with the values.",
        "An output is a sum over keys: which dimension of the weights has them?", MODULE,
        (("y = att @ v", "y = att.transpose(-2, -1) @ v"),)),
    Bug("output projection missing", "The heads are put side by side, but the output projection is not applied.",
        "Which layer is never called?", MODULE, (("self.resid_drop(self.proj(y))", "self.resid_drop(y)"),)),
    Bug("dropout left on", "Dropout is active in evaluation mode: F.dropout is on unless it is told the mode.",
        "What is the default of the argument training of F.dropout?", MODULE,
        (("att = self.attn_drop(att)", "att = F.dropout(att, 0.1)"),)),
    Bug("input added twice", "The input is added inside the attention although the block adds it again.",
        "Where is the residual connection of a block?", MODULE,
        (("return self.resid_drop(self.proj(y))", "return x + self.resid_drop(self.proj(y))"),)),
)  # fmt: skip
